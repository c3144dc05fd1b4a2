"""The CSV of Nsight Compute: both pages, versions, locales, damage."""

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import readers
from pyprof.errors import CaptureError
from pyprof.readers.ncu import tables
from pyprof.schema import Capture
from tests.builders import Work, nsys_db
from tests.capture_files.ncu import FORMS, METRICS, Profiled, details, ncu_csv, raw, summary
from tests.commands import refused, run

KERNELS = (
    Profiled("void gemm<float>(T1)", (96, 1, 1), (128, 1, 1), 94, (0, 33792), METRICS),
    Profiled("void add(int)", (7, 1, 1), (64, 1, 1), 16, (16, 0),
             {**METRICS, "gpu__time_duration.sum": 2.5e-3, "dram__bytes_read.sum": "n/a"}),
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ncu.csv"


def _rows(capture: Capture) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = capture.activities.to_pylist()
    return rows


@pytest.mark.parametrize("form", FORMS)
def test_both_pages_of_every_version_give_the_same_kernels(form: str, path: Path) -> None:
    first, second = _rows(readers.read(ncu_csv(path, KERNELS, form)))
    assert [first["name"], second["name"]] == [kernel.name for kernel in KERNELS]
    assert [first["regs"], first["smem"], second["smem"]] == [94, 33792, 16]
    assert [first[f"grid_{axis}"] for axis in "xyz"] == [96, 1, 1]
    assert [first[f"block_{axis}"] for axis in "xyz"] == [128, 1, 1]
    assert [first["start"], first["end"], second["start"], second["end"]] == [
        *(0, 12_346, 12_346, 2_512_346)
    ]
    counters = json.loads(str(first["counters"]))
    assert counters == {
        "source": "ncu",
        "dram_bytes": pytest.approx(1_236_567),
        "tensor_insts": 6144,
        "tensor_pct": 41.25,
        "occupancy_pct": 24.5,
        "clock_hz": pytest.approx(1_098_765_432, rel=1e-6),
        "flops": 601_020,
        "l1_hit_pct": 7.25,
        "l2_hit_pct": 55.5,
    }
    assert "dram_bytes" not in json.loads(str(second["counters"])), "a half of it is unknown"


PROFILED = '==PROF== Profiling "gemm" - 0: 0%....50%....100% - 12 passes\n'


@pytest.mark.parametrize(
    ("encoding", "before"),
    [("utf-16", ""), ("utf-8-sig", ""), ("utf-8", PROFILED * 10_000)],
    ids=["PowerShell", "BOM", "the profiler's lines for thousands of kernels"],
)
def test_the_table_is_found_in_any_encoding_and_anywhere(
    encoding: str, before: str, path: Path
) -> None:
    path.write_text(before + raw(KERNELS), encoding=encoding)
    assert readers.read(path).activities.num_rows == len(KERNELS)


def test_traffic_follows_from_its_rate(path: Path) -> None:
    """Default sections only have bytes per second; times the duration they are bytes."""
    metrics = {"gpu__time_duration.sum": 2e-3, "dram__bytes.sum.per_second": 1.5e12}
    ncu_csv(path, [Profiled(metrics=metrics)])
    (row,) = _rows(readers.read(path))
    assert json.loads(str(row["counters"]))["dram_bytes"] == pytest.approx(3e9)


def test_a_kernel_without_a_time(path: Path) -> None:
    """If none has one, they keep their order."""
    report = ("prof", "--csv", "-c", "kernel,sil")
    ncu_csv(path, [Profiled("a"), Profiled("b", metrics=METRICS)])
    done = run(*report, path)
    assert done.stdout.splitlines()[1:] == ['"a",""', '"b","12346"']
    assert "1 of 2 kernels have no time; add gpu__time_duration.sum" in done.stderr
    ncu_csv(path, [Profiled(name) for name in "cab"])
    assert run(*report, path).stdout.splitlines()[1:] == ['"c",""', '"a",""', '"b",""']


@pytest.mark.parametrize("form", FORMS)
def test_a_table_that_is_there_twice_counts_once(form: str, path: Path) -> None:
    ncu_csv(path, KERNELS, form)
    text = path.read_bytes()
    path.write_bytes(text + text)
    capture = readers.read(path)
    assert capture.activities.num_rows == len(KERNELS)
    assert sum("2 duplicates among kernels" in each for each in capture.warnings) == 1


def test_a_summary_has_a_row_per_call(path: Path) -> None:
    path.write_text(summary(Profiled("a", metrics=METRICS), 3))
    done = run("prof", "--csv", "-c", "kernel,sil,occmeas,grid", path)
    assert done.stdout.splitlines()[1:] == ['"a","12346","24.5","4,2,1"'] * 3
    assert "each kernel has the averages over the calls of its kind" in done.stderr


def test_a_summary_of_more_calls_than_there_can_be(path: Path) -> None:
    """A damaged number of calls must not use up the memory."""
    path.write_text(summary(Profiled("a", metrics=METRICS), 10**15))
    assert "export without --print-summary" in refused("prof", path)


def test_kernels_of_two_devices_leave_no_gaps(path: Path) -> None:
    """They are back to back on each device: it was not idle while another was profiled."""
    kernels = [Profiled(metrics=METRICS, device=at % 2, pid=at % 2) for at in range(6)]
    rows = _rows(readers.read(ncu_csv(path, kernels)))
    for number in (0, 1):
        times = [(row["start"], row["end"]) for row in rows if row["device"] == number]
        assert times == [(at * 12_346, (at + 1) * 12_346) for at in range(3)]


_TENSOR = "sm__inst_executed_pipe_tensor.sum"
_CYCLES = "sm__pipe_tensor{}_cycles_active.avg.pct_of_peak_sustained_active"


@pytest.mark.parametrize(
    ("cc", "metrics", "used"),
    [
        ("10.0", {_TENSOR: 0.0, "sm__inst_executed_pipe_tc.sum": 64.0}, "1"),
        ("10.0", {_TENSOR: 0.0, "sm__inst_executed_pipe_tc.sum": 0.0}, "0"),
        ("10.0", {_TENSOR: 0.0}, ""),
        ("12.0", {_TENSOR: 0.0}, "0"),
        ("10.3", {_CYCLES.format(""): 0.0, "sm__pipe_tc_cycles_active.avg."
                  "pct_of_peak_sustained_elapsed": 80.0}, "1"),
        ("9.0", {"sm__inst_executed_pipe_tensor_op_hmma.sum": 0.0}, ""),
        ("9.0", {"sm__inst_executed_pipe_tensor_op_hmma.sum": 9.0}, "1"),
        ("12.0", {"sm__inst_executed_pipe_tensor_subpipe_hmma.sum": 9.0}, "1"),
        ("8.0", {_CYCLES.format("_op_imma"): 0.0}, ""),
        ("8.0", {_CYCLES.format("_op_imma"): 50.0}, "1"),
        ("8.0", {_CYCLES.format(""): 0.0}, "0"),
    ],
)  # fmt: skip
def test_all_pipes_of_tensor_cores(
    cc: str, metrics: dict[str, float], used: str, path: Path
) -> None:
    """A kernel that used one pipe used Tensor Cores; an idle pipe says nothing about the others."""
    path.write_text(raw([Profiled(metrics=metrics)], cc=cc))
    assert run("prof", "-q", "--csv", "-c", "tcmeas", path).stdout.split()[1] == f'"{used}"'


@pytest.mark.parametrize("make", [details, raw])
def test_a_header_that_is_damaged(make: Callable[[Sequence[Profiled]], str], path: Path) -> None:
    """A column whose name is only a part of the right one is not used."""
    path.write_text(make(KERNELS).replace('"Kernel Name",', '"Kernel Name"x,'))
    assert "no kernel in this output of ncu" in refused("prof", path)


def test_lines_lost_to_a_missing_quote_are_warned_of(path: Path) -> None:
    """Rules may span several lines."""
    text = raw([Profiled(name, metrics=METRICS) for name in "abc"])
    assert "lost" not in run("prof", ncu_csv(path, KERNELS, "details")).stderr
    path.write_text(text.replace('"(!) n/a"\n"1"', '"(!) n/a\n"1"'))
    done = run("prof", "--csv", "-c", "kernel", path)
    assert done.stdout.split() == ['"Kernel"', '"a"', '"c"']
    assert "lines lost because a quotation mark is missing: 1;" in done.stderr


@pytest.mark.parametrize("command", ["lines", "doctor"])
def test_alone_it_is_a_capture(command: str, path: Path) -> None:
    ncu_csv(path, KERNELS)
    assert run(command, path).code == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does", r"ERR_NVGPUCTRPERM.*docs/capture.md"),
        # to write CSV would not help
        ("==WARNING== No kernels were profiled.", r"profiled no kernel: .*-processes all\)$"),
    ],
)
def test_an_output_without_kernels_says_why(said: str, why: str, path: Path) -> None:
    path.write_text(f"==PROF== Connected to process 1\n{said}\n")
    with pytest.raises(CaptureError, match=why):
        readers.read(path)


@given(st.floats(0, 1e15), st.sampled_from(["german", "english", "french", "plain"]))
def test_numbers_of_every_locale(value: float, locale: str) -> None:
    """They are read if one of them shows the decimal point."""
    from tests.capture_files import ncu  # noqa: PLC0415 - its functions by name

    spell = getattr(ncu, locale)
    kernel = tables.Kernel({}, {"a": tables.Value(spell(1234.56), ""),
                                  "b": tables.Value(spell(value), "Kbyte")})  # fmt: skip
    assert tables.Numbers([kernel]).read(kernel.metrics["b"]) == pytest.approx(
        1000 * value, abs=1e-3
    )


@pytest.mark.parametrize("separator", ["'", "\u2019", "\xa0", "\u202f", "\ufffd"])
def test_any_separator_of_groups_of_digits_is_read(separator: str) -> None:
    """The last is what is left of one in another encoding, as of Windows."""
    kernel = tables.Kernel({}, {"a": tables.Value(f"1{separator}234{separator}567.25", "")})
    assert tables.Numbers([kernel]).read(kernel.metrics["a"]) == 1234567.25


def test_a_number_followed_by_those_of_instances_is_read(path: Path) -> None:
    metrics = {name: f"{text} (7; 8)" for name, text in (
        ("dram__bytes.sum", "1.234,5"), ("lts__t_sector_hit_rate.pct", "55,25"))}  # fmt: skip
    ncu_csv(path, [Profiled(metrics=metrics)])
    done = run("prof", "-q", "--csv", "-c", "dram,l2hit", path)
    assert done.stdout.split()[1] == '"1234","55.25"'


@pytest.mark.parametrize(
    ("unit", "size"),
    [("nsecond", 1e-9), ("ns", 1e-9), ("usecond", 1e-6), ("us", 1e-6), ("msecond", 1e-3),
     ("ms", 1e-3), ("s", 1), ("byte", 1), ("Kbyte", 1e3), ("Gbyte/second", 1e9), ("Tbyte/s", 1e12),
     ("cycle/nsecond", 1e9), ("cycle/second", 1), ("Ghz", 1e9), ("hz", 1), ("Kbyte/block", 1e3),
     ("register/thread", 1), ("%", 1), ("", 1), ("cycle/usecond", 1e6)],
)  # fmt: skip
def test_every_spelling_of_units_is_read(unit: str, size: float) -> None:
    assert tables.factor(unit) == pytest.approx(size)


_PIECE = st.binary(max_size=8) | st.sampled_from(
    [b'"', b",", b"\n", b"\0", b"1e999", b"-5", b"9" * 40, b"\xff"]
)
_CUT = st.tuples(st.floats(0, 1), st.integers(0, 300), _PIECE)


@pytest.mark.slow
@given(form=st.sampled_from(sorted(FORMS)), cuts=st.lists(_CUT, min_size=1, max_size=8))
def test_damage_ends_in_one_line(
    form: str, cuts: list[tuple[float, int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = bytearray(FORMS[form](KERNELS).encode())
    for share, length, piece in cuts:
        place = int(share * len(text))
        text[place : place + length] = piece
    path = tmp_path_factory.mktemp("ncu") / "ncu.csv"
    path.write_bytes(bytes(text))
    capture = nsys_db(path.with_name("net.sqlite"), [Work(kernel.name) for kernel in KERNELS])
    for done in (run("prof", "-q", path), run("prof", "-q", "--with", path, capture)):
        assert done.code in (0, 1)
        if done.code:
            assert len(done.stderr.strip().splitlines()) == 1
            assert not done.stdout


# --- the real file ------------------------------------------------------------------------------


@pytest.fixture
def bert(captures: Path) -> Path:
    """Return the counters of attention on an A100."""
    return captures / "ncu-csv-a100-bert-attention" / "ncu.csv"


def _read_by_csv(path: Path) -> list[dict[str, str]]:
    """Read the file another way: Python's csv, nothing of ours."""
    kernels: dict[str, dict[str, str]] = defaultdict(dict)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            kernels[row["ID"]][row["Metric Name"]] = row["Metric Value"].replace(",", "")
    return [*kernels.values()]


def test_occupancy_is_that_of_the_profiler(bert: Path) -> None:
    rows = run(
        "prof", "-q", "--gpu", "A100-SXM4-40GB", "--csv", "-c", "occ,waves,occmeas", bert
    ).rows
    told = _read_by_csv(bert)
    assert len(rows) == len(told)
    for row, metrics in zip(rows, told, strict=True):
        assert float(row["Occ(%)"]) == float(metrics["Theoretical Occupancy"])
        assert float(row["Waves"]) == pytest.approx(float(metrics["Waves Per SM"]), abs=0.005)
        assert float(row["OccM(%)"]) == float(metrics["Achieved Occupancy"])


def test_tensor_cores_ran_where_names_say(bert: Path) -> None:
    """For every kernel: products use them, others only have FMAs of halves."""
    rows = run("prof", "-q", "--csv", "-c", "kernel,tc,tcmeas", bert).rows
    assert [row["TCm"] for row in rows] == [*"0000010110"]
    assert all(row["TC"] == ("1" if row["TCm"] == "1" else "-") for row in rows)


def test_counters_are_those_of_the_file(bert: Path) -> None:
    done = run("prof", "-q", "--csv", "-c", "sil,dram,xflops,clock,via", bert)
    op = "sm__sass_thread_inst_executed_op_{}{}_pred_on.sum"
    for row, m in zip(done.rows, _read_by_csv(bert), strict=True):
        flops = sum(
            float(m[op.format(kind, name)]) * weight
            for kind in "fhd"
            for name, weight in (("add", 1), ("mul", 1), ("fma", 2))
        )
        hz = float(m["sm__cycles_elapsed.avg.per_second"])
        assert float(row["DRAM(B)"]) == float(m["dram__bytes.sum"])
        assert float(row["ExecFLOPs"]) == flops
        assert float(row["Clock(MHz)"]) * 1e6 == pytest.approx(hz, rel=1e-3)
        assert float(row["Sil(ns)"]) == pytest.approx(
            float(m["sm__cycles_elapsed.avg"]) / hz * 1e9, abs=1
        )
        assert row["Via"] == "measured"


@pytest.mark.parametrize("suffix", ["dict", "parquet"])
@pytest.mark.parametrize("metrics", [{}, METRICS])
def test_records_of_it_read_back(suffix: str, metrics: dict[str, float], tmp_path: Path) -> None:
    """Also if ncu measured no times: that is not damage."""
    kernels = [Profiled(name, metrics=metrics) for name in "ba"]
    path, target = ncu_csv(tmp_path / "ncu.csv", kernels), tmp_path / f"net.{suffix}"
    assert run("parse", "-q", path, "-o", target).code == 0
    report = ("prof", "-q", "--csv", "-c", "kernel,sil,dram,tensor,clock,effclk,counter")
    assert run(*report, target).stdout == run(*report, path).stdout
