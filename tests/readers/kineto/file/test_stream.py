"""Trace files that are large, compressed, truncated or slightly broken."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import readers, schema
from pyprof.errors import CaptureError
from pyprof.readers import kineto
from pyprof.readers.kineto.file import stream
from pyprof.readers.kineto.file.events import repaired
from tests.readers.kineto_json import kernel, read_text, text, trace_file

EVENTS = [kernel(corr, corr * 10.5, name=f'void f<"{corr}">(int)') for corr in range(1, 400)]


ALL = list(range(1, 400))


def corrs(capture: schema.Capture) -> list[int]:
    found: list[int] = capture.activities["corr"].to_pylist()
    return found


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK_BYTES", 4096)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_of_many_blocks_has_each_event_once(
    tmp_path: Path, *, zipped: bool, indent: int | None
) -> None:
    header = {"a": 1, "baseTimeNanoseconds": 0}
    written = json.dumps(
        {**header, "traceEvents": EVENTS, "z": [{"b": 1}, {"c": 2}]}, indent=indent
    )
    capture = read_text(tmp_path, written, zipped=zipped)
    assert corrs(capture) == ALL
    assert not any("ends before" in warning for warning in capture.warnings)


def test_compressed_blocks_without_output_are_read_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first bytes of a compressed file may hold no text yet."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", 64)
    monkeypatch.setattr(stream, "_EVENT_BYTES", 4096)
    assert corrs(read_text(tmp_path, text(EVENTS[:20]), zipped=True)) == list(range(1, 21))


@pytest.mark.usefixtures("small_blocks")
def test_a_bare_list_of_events_is_a_trace(tmp_path: Path) -> None:
    """As the Chrome format allows."""
    assert corrs(read_text(tmp_path, json.dumps(EVENTS))) == ALL


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("share", [0.3, 0.5, 0.77, 0.999])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_truncated_file_has_its_complete_events(
    tmp_path: Path, share: float, indent: int | None
) -> None:
    written = json.dumps({"traceEvents": EVENTS}, indent=indent)
    part = written[: int(len(written) * share)]
    capture = read_text(tmp_path, part)
    whole = part.count('"est"') if '"est"' in part else part.count('"shared memory": 2048')
    assert corrs(capture) == list(range(1, len(corrs(capture)) + 1))
    assert whole - 1 <= len(corrs(capture)) <= whole
    assert any("the trace is truncated" in w for w in capture.warnings)


def test_a_truncated_gzip_file_has_what_it_still_holds(tmp_path: Path) -> None:
    packed = gzip.compress(text(EVENTS).encode())
    capture = read_text(tmp_path, packed[: len(packed) * 2 // 3])
    assert 1 < len(corrs(capture)) < 399
    assert any("the trace is truncated" in w for w in capture.warnings)


def test_a_gzip_file_damaged_before_its_events_is_said_to_be_damaged(tmp_path: Path) -> None:
    packed = gzip.compress(text(EVENTS).encode())[:-8] + bytes(8)  # no checksum
    with pytest.raises(CaptureError, match="the gzip file is damaged"):
        read_text(tmp_path, packed)


@pytest.mark.parametrize("behind", [b"garbage", bytes(512)])
def test_what_follows_the_last_gzip_member_is_ignored(tmp_path: Path, behind: bytes) -> None:
    capture = read_text(tmp_path, gzip.compress(text(EVENTS).encode()) + behind)
    assert corrs(capture) == ALL
    assert not any("truncated" in w for w in capture.warnings)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("2048", "nan"),
        ("2048", "-inf"),
        ("2048", "Infinity"),
        ('"shared memory"', '"shared \\memory"'),
        ('"shared memory"', '"shared\x02memory"'),
    ],
)
def test_known_mistakes_of_kineto_cost_no_event(tmp_path: Path, good: str, bad: str) -> None:
    written = text(EVENTS[:9]).replace(good, bad, 1)
    with pytest.raises(json.JSONDecodeError):
        json.loads(written, parse_constant=lambda _: json.loads("no"))
    assert corrs(read_text(tmp_path, written)) == list(range(1, 10))


@pytest.mark.parametrize(("good", "bad"), [("]}", ",\n]}"), ("]}", "],\n}"), ("}}", "},}")])
def test_a_comma_behind_a_last_item_costs_no_event(tmp_path: Path, good: str, bad: str) -> None:
    before, _, behind = text(EVENTS).rpartition(good)
    capture = read_text(tmp_path, before + bad + behind)
    assert (corrs(capture), capture.warnings) == (ALL, read_text(tmp_path, text(EVENTS)).warnings)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (r"a\ud83d", "a\ufffd"),
        (r"\ude00b", "\ufffdb"),
        (r"\ud83d\ude00\ude00", "\U0001f600\ufffd"),
        (r"\\ud83d", r"\ud83d"),
        (r"C:\\dir \u00e9 \ud83d", "C:\\dir \u00e9 \ufffd"),
    ],
)
def test_half_a_character_does_not_cost_an_event(
    tmp_path: Path, written: str, expected: str
) -> None:
    """Some writers cut names within a character, which JSON readers refuse."""
    capture = read_text(tmp_path, text(EVENTS[:3]).replace("shared memory", f"{written}x"))
    assert corrs(capture) == [1, 2, 3]
    events = [kernel(1, 1), kernel(2, 5, name="NAME")]
    capture = read_text(tmp_path, text(events).replace("NAME", written))
    assert capture.activities["name"].to_pylist() == ["gemm", expected]


@pytest.mark.usefixtures("small_blocks")
def test_an_event_beyond_repair_is_dropped_and_counted(tmp_path: Path) -> None:
    written = text(EVENTS).replace('"tid": 7', '"tid": 7 7', 1)
    capture = read_text(tmp_path, written)
    assert corrs(capture) == list(range(2, 400))
    assert any("1 event left out: not valid JSON" in warning for warning in capture.warnings)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("between", ["", "\n"])
def test_traces_behind_one_another_are_refused(tmp_path: Path, between: str) -> None:
    """As `cat` joins them: the file is not truncated, and the events at the seam would be lost."""
    ends = ', "traceName": "a.json"}'
    first = text(EVENTS, deviceProperties=[{"id": 0}, {"id": 1}])[:-1] + ends
    with pytest.raises(CaptureError, match="several traces follow one another in this file"):
        read_text(tmp_path, first + between + first)


_DECOY = {"traceEvents": [kernel(7, 7)], "deviceProperties": [{"id": 0, "name": "decoy"}]}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("broken", ["", r"C:\temp"])
def test_events_of_an_object_within_the_header_are_not_the_events(
    tmp_path: Path, broken: str
) -> None:
    """The list of the outermost object counts, even if the header needs repair."""
    header = {
        "note": 'a "traceEvents": [ in a text, and a } too',
        "metadata": {"before": [_DECOY], **_DECOY, "path": "PATH"},
        "more": [[_DECOY] * 20],
        "distributedInfo": {"rank": 3},
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
    }
    written = json.dumps({**header, "traceEvents": EVENTS}).replace("PATH", broken)
    capture = read_text(tmp_path, written)
    assert corrs(capture) == ALL
    assert capture.devices["name"].to_pylist() == ["NVIDIA A100"]
    assert readers.identity(tmp_path / "trace.json").rank == 3


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_text_of_windows_programs(tmp_path: Path, encoding: str, *, zipped: bool) -> None:
    data = text([kernel(1, 1, name="ä€😀")]).encode(encoding)
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(data) if zipped else data)
    assert readers.read(path).activities["name"].to_pylist() == ["ä€😀"]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'{"schemaVersion": 1, "traceEvents": [', True),
        (b'  {\n  "schemaVersion": 1,', True),
        (b'[{"ph": "X"}]', True),
        (b'{"kShortName": "gemm", "kDuration": 1}', False),
        (b"SQLite format 3\0", False),
        (b"", False),
        (b"\x1f\x8b broken", False),
        (gzip.compress(b'{"traceEvents": []}', mtime=0), True),
        (gzip.compress(b"some text", mtime=0), False),
    ],
)
def test_a_trace_is_recognised_by_its_content(
    tmp_path: Path, head: bytes, *, expected: bool
) -> None:
    path = tmp_path / "anything"
    path.write_bytes(head)
    assert kineto.sniff(path, head[:16]) is expected


@given(st.binary(max_size=200))
def test_repair_never_raises(piece: bytes) -> None:
    assert isinstance(repaired(piece), bytes)


def test_a_trace_that_grows_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error, whether the rest was read or not."""
    path = trace_file(tmp_path, EVENTS)
    assert not any("changed" in said for said in readers.read(path).warnings)
    monkeypatch.setattr(stream, "BLOCK_BYTES", path.stat().st_size // 4)
    last_boundary, left = stream._last_boundary, [1]

    def meanwhile(piece: bytes) -> object:
        if left:
            left.pop()
            with path.open("a") as file:
                file.write(" " * 100)
        return last_boundary(piece)

    monkeypatch.setattr(stream, "_last_boundary", meanwhile)
    found = readers.read(path)
    assert found.activities.num_rows == len(EVENTS)
    assert not left
    assert sum("changed while it was read" in said for said in found.warnings) == 1


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No trace unzips to hundreds of times its size."""
    monkeypatch.setattr(stream, "_ANY_BYTES", 1 << 16)
    with pytest.raises(CaptureError, match="more than 250 times"):
        read_text(tmp_path, '{"traceEvents": [' + " " * (1 << 20), zipped=True)


@pytest.mark.parametrize(
    ("tail", "truncated"),
    [('{"ph": "X", "name": "' + "a" * (1 << 18), True), (" " * (1 << 18), False)],
    ids=["an event", "whitespace"],
)
def test_events_before_an_endless_one_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str, *, truncated: bool
) -> None:
    monkeypatch.setattr(stream, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(stream, "_EVENT_BYTES", 1 << 16)
    capture = read_text(tmp_path, f"{text([kernel(1, 10), kernel(2, 20)])[:-2]},{tail}")
    assert capture.activities.num_rows == 2
    assert ("the trace is truncated" in capture.warnings[0]) >= truncated


def test_a_small_file_may_unzip_to_much(tmp_path: Path) -> None:
    """Equal events compress well."""
    capture = read_text(tmp_path, text([kernel(1, 10)] * 5000), zipped=True)
    assert capture.activities.num_rows == 5000
