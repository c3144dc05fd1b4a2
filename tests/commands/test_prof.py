"""`pyprof prof`: columns, formats, grouping, sorting, and messages on stderr."""

import csv
import io
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.commands import prof
from pyprof.marker import Call, Tensor, encode_layer, encode_op, encode_trace
from pyprof.prof.columns.standard import COLUMNS
from tests import strategies
from tests.builders import Range, Work, nsys_db
from tests.commands import misused, refused, run

MM = encode_op(Call("torch", "mm", (Tensor((64, 64), "float16"), Tensor((64, 64), "float16"))))
MUL = encode_op(Call("torch", "mul", (Tensor((64, 64), "float32"), Tensor((64, 64), "float32"))))
WORK = (
    Work("ampere_h16816gemm_128x64", at=(1000, 1300), call=(20, 30)),
    Work("ampere_h16816gemm_128x64", at=(1400, 1500), call=(120, 130)),
    Work("void mul_kernel<float>(int)", at=(1600, 1650), call=(220, 230), stream=9),
    Work(kind="memcpy", at=(1700, 1740), call=(300, 310), bytes=4096),
    Work("alone", at=(1800, 1810), call=(400, 410)),
)
RECORD = {"kShortName": "k", "kLongName": "k", "kDuration": 5}
OLD = "idx seq altseq tid layer trace dir sub mod op kernel params sil tc device stream grid block flops bytes"  # noqa: E501


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a capture of two products, a multiplication, a copy, and a kernel outside all ops."""
    ranges = [
        Range(encode_layer("net"), (1, 351)),
        Range(encode_trace(["/app/net.py:3"]), (2, 350)),
        *(Range(MM, (start, start + 50)) for start in (10, 110)),
        Range(MUL, (210, 260)),
    ]
    return nsys_db(tmp_path / "net.sqlite", WORK, ranges)


def table(*arguments: str | Path, stdin: str | None = None) -> list[dict[str, str]]:
    """Run prof --csv and read what it wrote."""
    return run("prof", "--csv", *arguments, stdin=stdin).rows


def column(rows: list[dict[str, str]], header: str) -> list[str]:
    return [row[header] for row in rows]


def test_the_twenty_old_columns_keep_their_names_and_headers(path: Path) -> None:
    names = OLD.split()
    (header, *_) = run("prof", "--csv", "-c", ",".join(names), path).stdout.splitlines()
    assert header == (
        '"Idx","SeqId","AltSeqId","TId","Layer","Trace","Direction","Sub","Module","Op","Kernel",'
        '"Params","Sil(ns)","TC","Device","Stream","Grid","Block","FLOPs","Bytes"'
    )
    assert list(COLUMNS)[:20] == names


def test_the_default_columns_are_the_originals(path: Path) -> None:
    (header, *_) = run("prof", path).stdout.splitlines()
    assert header == "Idx Direction Sub Module Op Kernel Params Sil(ns)"


FORMATS: tuple[list[str], ...] = (["--csv"], ["-w", "200"], [])


def test_every_column_can_be_shown_in_every_format(path: Path) -> None:
    everything = ",".join(COLUMNS)
    for options in FORMATS:
        assert run("prof", "-q", *options, "-c", everything, path).code == 0
    rows = table("-c", everything, path)
    assert len(rows) == 5
    assert list(rows[0]) == [entry.header for entry in COLUMNS.values()]


def test_values_are_those_of_the_capture(path: Path) -> None:
    rows = table("-c", "layer,line,mod,op,kernel,sil,tc,stream,kind,flops,bytes,gap,queue", path)
    assert column(rows, "Op") == ["mm", "mm", "mul", "", ""]
    assert column(rows, "Sil(ns)") == ["300", "100", "50", "40", "10"]
    assert column(rows, "FLOPs") == ["524288", "524288", "4096", "0", ""]
    assert column(rows, "Bytes") == ["24576", "24576", "49152", "4096", ""]
    assert column(rows, "TC")[:2] == ["1", "1"]
    assert column(rows, "Stream") == ["7", "7", "9", "7", "7"]
    assert column(rows, "Kind") == ["kernel", "kernel", "kernel", "memcpy", "kernel"]
    assert column(rows, "Line")[:3] == ["/app/net.py:3"] * 3
    assert column(rows, "Gap(ns)") == ["", "100", "100", "50", "60"]
    assert column(rows, "Queue(ns)") == ["980", "1280", "1380", "1400", "1400"]


@pytest.mark.parametrize("width", [100, 123, 150, 200, 400])
def test_no_line_is_wider_than_asked(width: int, path: Path) -> None:
    done = run("prof", "-w", str(width), path)
    assert done.code == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert max(len(line) for line in lines) <= width
    place = lines[0].index("Kernel")
    assert lines[1][place:].startswith("ampere_h16816gemm"[:12])


def test_too_little_width_is_refused_with_the_minimum(path: Path) -> None:
    said = refused("prof", "-w", "2", path)
    needed = next(word for word in said.replace(";", "").split() if word.isdigit())
    assert run("prof", "-w", needed, path).code == 0
    assert run("prof", "-w", str(int(needed) - 1), path).code == 1


def test_groups_add_up(path: Path) -> None:
    rows = table("--by", "op", path)
    assert column(rows, "Op") == ["mm", "mul", ""]
    first = rows[0]
    assert (first["Calls"], first["Total(ns)"], first["Mean(ns)"]) == ("2", "400", "200")
    assert (first["Min(ns)"], first["Max(ns)"], first["Share(%)"]) == ("100", "300", "80")
    assert (first["FLOPs"], first["Bytes"]) == ("1048576", "49152")
    assert sum(int(row["Calls"]) for row in rows) == 5
    assert sum(int(row["Total(ns)"]) for row in rows) == 500
    assert sum(float(row["Share(%)"]) for row in rows) == pytest.approx(100)


def test_numbers_of_groups_leave_room_for_names(path: Path) -> None:
    shown = run("prof", "--by", "kernel", "-w", "110", path).stdout
    assert "ampere_h16816gemm_128x64 " in shown


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "key",
    [
        *("op", "dir", "kernel", "layer", "line", "mod", "device", "stream"),
        *("window", "rank", "step", "phase", "family", "params", "via", "tc", "bound"),
    ],
)
def test_every_key_groups_all_rows(key: str, path: Path) -> None:
    rows = table("--by", key, path)
    assert key == "params" or sum(int(row["Calls"]) for row in rows) == 5
    assert sum(int(row["Total(ns)"]) for row in rows) == 500


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("keys", ["op,dir", "kernel, line", "rank,op,kernel", "op,op"])
def test_several_keys_group_rows_equal_in_all(keys: str, path: Path) -> None:
    names = list(dict.fromkeys(name.strip() for name in keys.split(",")))
    captures = path, path.with_name("other.sqlite")
    shutil.copy(*captures)
    expected: dict[tuple[str, ...], int] = {}
    headers = [COLUMNS[name].header for name in names]
    for row in table("-c", ",".join([*names, "sil"]), *captures):
        key = tuple(row[header] for header in headers)
        expected[key] = expected.get(key, 0) + int(row["Sil(ns)"])
    rows = table("--by", keys, *captures)
    assert {tuple(row[h] for h in headers): int(row["Total(ns)"]) for row in rows} == expected


@pytest.mark.slow
def test_no_match_is_reported(path: Path) -> None:
    """And not that the cost of 100 % of nothing is known."""
    done = run("prof", "--where", "op=nonsense and sil>5", path)
    assert (done.code, done.stderr) == (0, "pyprof: no row matches op=nonsense and sil>5\n")
    assert len(done.stdout.splitlines()) == 1
    assert "cost known for" in run("prof", "--where", "sil>5", path).stderr


@pytest.mark.slow
def test_rows_are_sorted_and_limited(path: Path) -> None:
    assert column(table("--sort", "sil", path), "Sil(ns)") == ["300", "100", "50", "40", "10"]
    assert column(table("--sort", "sil-", path), "Sil(ns)") == ["10", "40", "50", "100", "300"]
    assert column(table("--sort", "sil-", "--top", "2", path), "Sil(ns)") == ["10", "40"]
    assert column(table("--sort", "start-", "-c", "idx", path), "Idx") == ["1", "2", "3", "4", "5"]
    assert len(table("--by", "op", "--top", "1", path)) == 1
    assert column(table("--by", "op", "--sort", "calls-", path), "Calls")[-1] == "2"
    misused("prof", "--sort", "nonsense", path)
    said = misused("prof", "--by", "op", "--sort", "totl", path)
    assert "did you mean 'total'? columns are op, calls, total," in said


def test_a_terminal_shows_the_longest_rows_and_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless --top or --by is given."""
    monkeypatch.setattr(prof, "_choose_format", lambda *_: "terminal")
    assert prof._SCREEN_ROWS == 30
    monkeypatch.setattr(prof, "_SCREEN_ROWS", 2)
    for options, rows in (([], 2), (["--top", "1"], 1), (["--by", "op"], 3)):
        done = run("prof", *options, path)
        assert len(done.stdout.splitlines()) == 1 + rows
        assert ("top 2 of 5 rows; --top N or --full shows more" in done.stderr) == (not options)


def test_the_share_of_known_costs_is_on_stderr(path: Path) -> None:
    done = run("prof", path)
    assert "cost known for 98.0 % of GPU time; unknown for 1 row: no marker (2.0 % in 1)" in (
        done.stderr
    )
    assert run("prof", "-q", path).stderr == ""


@pytest.mark.parametrize("options", [(), ("-w", "120"), ("--by", "layer")])
def test_a_name_of_several_lines_is_printed_on_one(options: tuple[str, ...]) -> None:
    record = RECORD | {"kShortName": "k\x1b[31m", "layer": ["a\nb"]}
    columns = () if "--by" in options else ("-c", "idx,kernel,layer")
    lines = run("prof", *options, *columns, "-", stdin=f"{record}\n").stdout.splitlines()
    assert len(lines) == 2
    assert "a b" in lines[1]
    assert "\x1b" not in lines[1]


def test_an_op_without_a_module_has_none(tmp_path: Path) -> None:
    """The original wrote `na`; here it is empty in CSV and `-` in text."""
    path = tmp_path / "net.dict"
    path.write_text(f"{RECORD | {'mod': ['na'], 'op': ['relu']}}\n")
    assert column(table("-c", "mod,op", path), "Module") == [""]
    assert run("prof", "-q", "-c", "mod,op", path).stdout.splitlines()[1] == "- relu"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kDuration": 0}, "no marker (0.0 % in 1)"),
        ({"layer": ["attention"]}, "only ranges, no op (100.0 % in 1)"),
    ],
    ids=["0 ns", "in a user's range"],
)
def test_a_row_without_an_op_has_a_reason(fields: dict[str, object], why: str) -> None:
    assert f"unknown for 1 row: {why}" in run("prof", "-", stdin=f"{RECORD | fields}\n").stderr


def test_a_device_without_a_number_has_none() -> None:
    """Records may not say which GPU it was: no -1."""
    said = run("summary", "-", stdin=f"{RECORD | {'start': 0, 'end': 5}}\n").stdout
    (header,) = (line.split() for line in said.splitlines() if line.startswith("Total ("))
    assert header == ["Total", "(us)", "GPU", "%"]


@pytest.mark.parametrize(("percent", "code"), [("98", 0), ("98.1", 1), ("0", 0), ("100", 1)])
def test_strict_fails_where_too_little_is_known(percent: str, code: int, path: Path) -> None:
    done = run("prof", "-q", "--strict", percent, path)
    assert done.code == code
    assert bool(done.stderr) is bool(code)


@pytest.mark.parametrize("percent", ["nan", "inf", "-1", "100.1", "most"])
def test_an_invalid_percentage_is_a_usage_error(percent: str, path: Path) -> None:
    """A nan would let everything pass."""
    said = misused("prof", f"--strict={percent}", path)
    assert "is not a number from 0 to 100, such as 95" in said


@pytest.mark.slow
def test_peaks_can_be_given(path: Path) -> None:
    flops, moved = 2 * 64**3 / 300e-9, 24576 / 300e-9
    (row, *_) = table("-c", "eff,tflops,gbs", "--gpu", "flops=1e13,bandwidth=1e15", path)
    assert float(row["Eff(%)"]) == pytest.approx(100 * flops / 1e13)
    assert float(row["TFLOP/s"]) == pytest.approx(flops / 1e12)
    assert float(row["GB/s"]) == pytest.approx(moved / 1e9)
    (row, *_) = table("-c", "eff", "--gpu", "flops=1e20,bandwidth=1e12", path)
    assert float(row["Eff(%)"]) == pytest.approx(100 * moved / 1e12)
    (slow, *_) = table("-c", "eff", "--gpu", "Tesla T4", path)
    (fast, *_) = table("-c", "eff", "--gpu", "NVIDIA H100 80GB HBM3", path)
    assert float(slow["Eff(%)"]) > float(fast["Eff(%)"]) > 0


@pytest.mark.slow
@given(names=st.lists(strategies.TEXT, min_size=1, max_size=3))
def test_csv_parses_back_to_the_rows(names: list[str]) -> None:
    names = [name.replace("\0", "") for name in names]
    lines = [RECORD | {"kDuration": n, "layer": [name], "trace": [name]}
             for n, name in enumerate(names)]  # fmt: skip
    text = "\n".join(map(repr, lines))
    done = run("prof", "--csv", "--raw", "-q", "-c", "sil,layer,trace", "-", stdin=text)
    assert done.code == 0
    rows = list(csv.reader(io.StringIO(done.stdout, newline="")))
    assert rows[0] == ["Sil(ns)", "Layer", "Trace"]
    assert rows[1:] == [[str(n), name, name] for n, name in enumerate(names)]


def test_every_field_is_quoted(path: Path) -> None:
    """As before, by RFC 4180, numbers and empty fields too."""
    for line in run("prof", "--csv", "-c", "idx,op,flops", path).stdout.splitlines():
        assert (line[0], line[-1], line.count('","')) == ('"', '"', 2)


def test_help_names_every_column() -> None:
    text = run("prof", "--help").stdout
    for entry in COLUMNS.values():
        assert f"\n  {entry.name} " in text
        assert entry.help.split()[0] in text
