"""Host calls, by the ids of their own recording."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import readers, schema
from pyprof.parse import parse
from pyprof.readers.rocpd.host import messages
from tests.builders import Range, Work, rocpd_db
from tests.damage import OP, sql
from tests.damage import ROCPD_SUFFIX as SUFFIX
from tests.readers.test_nsys import rows


@pytest.mark.parametrize("one_table", [False, True], ids=["suffixes", "guids"])
def test_recordings_of_one_file_are_joined_by_their_own_ids(
    tmp_path: Path, *, one_table: bool
) -> None:
    """Each process counts ids from 1, so kernels could get another process's names."""
    work = [
        Work("first", at=(1000, 1100), call=(10, 20), pid=41, tid=41, corr=1),
        Work("second", at=(1000, 1200), call=(11, 21), pid=42, tid=43, corr=1, device=1),
    ]
    ranges = [Range(OP, (5, 30), pid=41, tid=41), Range("layer:second", (5, 30), pid=42, tid=43)]
    path = rocpd_db(tmp_path / "net.db", work, ranges, one_table=one_table)
    capture = readers.read(path)
    assert rows(capture.activities, "pid", "device", "name") == [
        (41, 0, "first"),
        (42, 1, "second"),
    ]
    found = parse(capture).table().to_pylist()
    assert [(row["tid"], row["launch"], row["op"], row["layer"]) for row in found] == [
        (41, [10, 20], ["relu"], []),
        (43, [11, 21], [], ["second"]),
    ]
    assert readers.identity(path).pids == (41, 42)


def test_work_of_a_call_inside_another_counts_as_launched_by_the_outer_one(tmp_path: Path) -> None:
    """With a trace of HSA, a kernel may refer to the inner call."""
    work = [
        Work("hsa", at=(900, 910), call=(12, 15), api="hsa_signal_store_screlease", corr=2),
        Work("gemm", at=(1000, 1100), call=(10, 20), corr=1),
    ]
    path = rocpd_db(tmp_path / "net.db", work)
    sql(path, f"UPDATE rocpd_event{SUFFIX} SET parent_stack_id = 1 WHERE stack_id = 2")  # noqa: S608
    found = parse(readers.read(path)).table().to_pylist()
    assert [row["launch"] for row in found] == [[10, 20], [10, 20]]


@pytest.mark.parametrize("texts", [["aten::mm, seq = 1"], ['say "hi"', "a\\b\n", "plain", "é"]])
def test_texts_of_ranges_are_what_their_events_hold_as_json(
    texts: list[str], tmp_path: Path
) -> None:
    ranges = [Range(text, (place, 100 - place)) for place, text in enumerate(texts)]
    capture = readers.read(rocpd_db(tmp_path / "net.db", [Work()], ranges))
    found = capture.ranges.to_pylist()
    spelt = [row["text"] + ("" if row["seq"] is None else str(row["seq"])) for row in found]
    assert spelt == texts


def test_a_text_may_be_an_argument_or_the_name_of_the_region(tmp_path: Path) -> None:
    """As in ROCm 6.4, and in files of ROCm Systems Profiler."""
    names = {59: "roctxRangePushA", 60: "forward"}
    ranges = [Range("pushed", (5, 30)), Range("ignored", (6, 20), style=60)]
    path = rocpd_db(tmp_path / "net.db", [Work(call=(10, 20))], ranges, names=names)
    event = f"(SELECT event_id FROM rocpd_region{SUFFIX} WHERE start = 5)"  # noqa: S608
    sql(
        path,
        f"UPDATE rocpd_event{SUFFIX} SET extdata = '{{}}'",  # noqa: S608
        f"CREATE TABLE rocpd_arg{SUFFIX} (event_id, position, name, value)",
        f"INSERT INTO rocpd_arg{SUFFIX} VALUES ({event}, 0, 'message', 'from an argument')",  # noqa: S608
    )
    capture = readers.read(path)
    assert rows(capture.ranges, "style", "text") == [
        (schema.NESTED, "forward"),
        (schema.NESTED, "from an argument"),
    ]
    assert rows(capture.calls, "name") == [("hipLaunchKernel",)]


def _messages(documents: list[str | None]) -> list[str | None]:
    listed: list[str | None] = messages(
        pa.chunked_array([pa.array(documents, pa.string())])
    ).to_pylist()
    return listed


@given(
    st.lists(st.text(st.characters(codec="utf-8"))),
    st.sampled_from([(",", ":"), (", ", ": ")]),
    st.sampled_from([None, 4]),
)
def test_any_text_comes_out_of_its_json(
    texts: list[str], separators: tuple[str, str], indent: int | None
) -> None:
    documents: list[str | None] = [
        json.dumps({"message": text}, separators=separators, indent=indent, ensure_ascii=False)
        for text in texts
    ]
    assert _messages(documents) == texts


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ('{"message":"a","other":"b"}', "a"),
        *((text, None) for text in ("{}", "", None, "}{", '["message"]', '{"message":7}')),
        *((text, None) for text in ('{"message":"cut', '{"message":"}')),
        ('{"message":"a"},{"message":"b"}', None),
    ],
)
def test_other_json_has_no_text(document: str | None, message: str | None) -> None:
    sound = '{"message":"aten::mm"}'
    assert _messages([document]) == [message]
    assert _messages([sound, document]) == ["aten::mm", message]
    assert _messages([document, sound]) == [message, "aten::mm"]
