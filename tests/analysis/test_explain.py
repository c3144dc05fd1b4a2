"""`pyprof prof --explain ROW` agrees with the columns, and says how they came about."""

from pathlib import Path

import pytest

from pyprof.analysis.explain import SECTIONS
from tests.builders import Range, Work, nsys_db
from tests.commands import run

MM = (
    "{'mod': 'torch', 'op': 'mm', 'args': ["
    "{'name': '', 'type': 'tensor', 'shape': (64, 32), 'dtype': 'float32'}, "
    "{'name': '', 'type': 'tensor', 'shape': (32, 16), 'dtype': 'float32'}]}"
)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Return a product of two kernels, and a kernel outside all ranges."""
    work = [
        Work("ampere_sgemm_64x32_nn", (1000, 1100), (110, 120)),
        Work("splitKreduce_kernel", (1200, 1300), (130, 140)),
        Work("mine", (1400, 1500), (400, 410)),
    ]
    return nsys_db(tmp_path / "net.sqlite", work, [Range(MM, (100, 200))])


def test_every_stage_is_shown(capture: Path) -> None:
    done = run("prof", "--explain", "1", capture)
    lines = done.stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [*SECTIONS]
    assert "  torch.mm(float32[64, 32], float32[32, 16]): usable" in lines
    assert "  the whole op call: 65,536 FLOPs, 14,336 bytes" in lines
    roles = [line.split(",")[-1] for line in lines if ": ampere" in line or ": splitK" in line]
    assert roles == [" does the arithmetic", " a helper kernel"]
    assert "  this row: 65,536 FLOPs, 14,336 bytes" in lines


def test_a_parquet_file_explains_what_its_capture_does(tmp_path: Path) -> None:
    """The raw texts of PyTorch's own ranges are read only if something shows them.

    An argument whose type is unknown is a question mark.
    """
    ranges = [Range("aten::mm, seq = 7, sizes = [[64, 32], []]", (100, 200))]
    work = [Work("ampere_sgemm_64x32_nn", (1000, 1100), (110, 120))]
    path = nsys_db(tmp_path / "net.sqlite", work, ranges)
    run("parse", path, "-o", tmp_path / "net.parquet")
    explained = run("prof", "--explain", "1", tmp_path / "net.parquet").stdout
    assert "    aten::mm, seq = 7, sizes = [[64, 32], []]" in explained.splitlines()
    assert "  aten.mm(?[64, 32], ?): " in explained
    assert explained == run("prof", "--explain", "1", path).stdout


def test_a_kernel_outside_all_ranges(capture: Path) -> None:
    lines = run("prof", "--explain", "3", capture).stdout.splitlines()
    assert "  chosen: none (no marker)" in lines
    assert "  this row: unknown FLOPs, unknown bytes" in lines


def test_calls_that_were_not_chosen_say_why(tmp_path: Path) -> None:
    """From the innermost outwards, up to the first with a known cost."""
    unheard = Range("{'mod': 'mine', 'op': 'unheard_of', 'args': []}", (105, 190))
    work = [Work("ampere_sgemm_64x32_nn", (1000, 1100), (110, 120))]
    path = nsys_db(tmp_path / "net.sqlite", work, [Range(MM, (100, 200)), unheard])
    lines = run("prof", "--explain", "1", path).stdout.splitlines()
    chosen = lines.index("  chosen: mm")
    assert lines[chosen - 2 : chosen] == [
        "  mine.unheard_of(): no formula",
        "  torch.mm(float32[64, 32], float32[32, 16]): usable",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [(["--explain", "4"], 1, "no row 4: rows are numbered from 1 to 3"),
     (["--explain", "0"], 2, "0 is not in the range x>=1"),
     (["--explain", "1", "--by", "op"], 2, "--explain does not take"),
     (["--explain", "1", "--strict", "90"], 2, "--explain does not take")],
)  # fmt: skip
def test_a_missing_row_is_refused_with_those_that_exist(
    arguments: list[str], code: int, error: str, capture: Path
) -> None:
    done = run("prof", *arguments, capture)
    assert (done.code, done.stdout) == (code, "")
    assert error in done.stderr


def test_several_files_are_a_usage_error(capture: Path) -> None:
    done = run("prof", "--explain", "1", capture, capture)
    assert (done.code, "--explain takes one file" in done.stderr) == (2, True)
