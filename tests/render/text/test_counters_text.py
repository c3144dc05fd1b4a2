"""The section of counters, in 100 columns."""

from pathlib import Path

from tests.analysis import product
from tests.answers.checked import ask
from tests.builders import LAYOUTS, Range, Work, nsys_db
from tests.capture_files.ncu import METRICS, Profiled, ncu_csv
from tests.commands import run


def test_the_summary_has_a_section_of_counters(tmp_path: Path) -> None:
    """With the source of the measurement, and each op's numbers."""
    counters, capture = product.measured(tmp_path)
    text = run("summary", "-q", "--with", counters, capture).stdout
    section = text[text.index("\nMeasured") :]
    assert "100.0 % of GPU time by ncu in another run" in section
    header, row = section.splitlines()[3:5]
    assert header.split()[:6] == ["Op", "Direction", "ms", "DRAM", "GB/s", "Excess"]
    assert row.split() == ["mm", "forward", "0.040", "50.3", "MB", "1,258", "2", "61.0", "100.0",
                           "1,095"]  # fmt: skip
    assert "Excess: DRAM traffic over the least that the op needs" in section
    assert "Measured" not in run("summary", "-q", capture).stdout


def test_the_section_is_100_columns_wide(tmp_path: Path) -> None:
    """With everything that can be measured, long names and large numbers."""
    name = "a_kernel_with_a_long_name" * 4
    metrics = {**METRICS, "gpu__time_duration.sum": 86000.0, "dram__bytes.sum": 9.99e17}
    path = ncu_csv(tmp_path / "ncu.csv", [Profiled(name, metrics=metrics)])
    text = run("summary", "-q", path).stdout
    section = text.partition("\nMeasured\n")[2].partition("\n\nNo ad")[0]
    assert "86,000,000" in section
    assert "999 PB" in section
    assert max(map(len, section.splitlines())) <= 100
    capture = product.capture(tmp_path / "a.sqlite")
    counters = ncu_csv(
        tmp_path / "n.csv", [Profiled(product.GEMM, metrics=METRICS)] * product.STEPS
    )
    done = run("summary", "-q", "--top", "99", "--with", counters, capture)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_line_per_op_as_in_the_table_of_ops(tmp_path: Path) -> None:
    """Two kernels of one op are one line with the op's time; in JSON, too."""
    work = [Work("a", (1000, 3000), (100, 200)), Work("b", (4000, 5000), (300, 400)),
            Work("c", (6000, 6500), (900, 950))]  # fmt: skip
    capture = nsys_db(
        tmp_path / "a.sqlite", work, [Range(product.OP, (50, 500))], LAYOUTS["2024.6"]
    )
    metrics = {"dram__bytes.sum": float(product.MIN_BYTES)}
    counters = ncu_csv(tmp_path / "n.csv", [Profiled(name, metrics=metrics) for name in "abc"])
    measured = ask("summary", "-q", "--with", counters, capture)["measured"]
    ops = [(op["op"], op["kernel"], op["time_ns"], op["dram_bytes"]) for op in measured["ops"]]
    assert ops == [("mm", None, 3000, 2 * product.MIN_BYTES), (None, "c", 500, product.MIN_BYTES)]
    assert measured["ops"][0]["excess"] == measured["excess"] == 2
    text = run("summary", "-q", "--with", counters, capture).stdout
    section = text[text.index("\nMeasured") :].splitlines()
    assert [line.split()[0] for line in section[4:6]] == ["mm", "c"]
