"""Rows grouped by op and shape."""

from pathlib import Path
from statistics import median

import pytest

from pyprof.marker import Call, Tensor, encode_op
from tests.commands import run
from tests.commands.test_prof import table
from tests.prof.kernels_in_ranges import called

GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"


def _mm(size: int) -> str:
    x = Tensor((size, size), "float16")
    return encode_op(Call("torch", "mm", (x, x)))


def _net(path: Path, *calls: tuple[str | None, tuple[int, ...]]) -> Path:
    """Write op calls, each with kernels of some lengths in ns."""
    return called(path, *((text, [(GEMM, ns) for ns in lengths]) for text, lengths in calls))


def test_a_row_is_an_op_and_a_shape(tmp_path: Path) -> None:
    """It counts calls, not kernels, and shows how widely their speeds vary."""
    lengths = [(100,), (200,), (300, 100)]
    calls = [(_mm(64), each) for each in lengths]
    path = _net(tmp_path / "a.sqlite", *calls, (_mm(128), (150,)), (None, (50,)))
    small, large, none = table("--by", "params", path)
    assert (small["Op"], small["Params"]) == ("mm", "float16 [64,64] [64,64]")
    assert (small["Calls"], small["Total(ns)"]) == ("3", "700")
    rates = [2 * 64**3 / sum(each) / 1e3 for each in lengths]
    spread = [float(small[name]) for name in ("MinTFLOP/s", "TFLOP/s", "MaxTFLOP/s")]
    assert spread == pytest.approx([min(rates), median(rates), max(rates)])
    assert (large["Params"], large["Calls"]) == ("float16 [128,128] [128,128]", "1")
    assert (none["Op"], none["Params"], none["TFLOP/s"]) == ("", "", "")
    assert sum(float(row["Share(%)"]) for row in (small, large, none)) == pytest.approx(100)


def test_groups_of_several_captures_are_those_of_one(tmp_path: Path) -> None:
    """Medians, too, are over all calls."""
    calls = [(_mm(64), (length,)) for length in (100, 200, 900, 300, 350)]
    folder = tmp_path / "ranks"
    folder.mkdir()
    _net(folder / "0.sqlite", *calls[:2], (_mm(32), (10,)))
    _net(folder / "1.sqlite", *calls[2:])
    whole = _net(tmp_path / "all.sqlite", *calls, (_mm(32), (10,)))
    apart, together = (table("--by", "params", each) for each in (folder, whole))
    assert [{**row} for row in apart] == [{**row} for row in together]


@pytest.mark.slow
def test_groups_can_be_sorted_and_limited(tmp_path: Path) -> None:
    path = _net(tmp_path / "a.sqlite", (_mm(64), (100,)), (_mm(128), (90,)))
    (first,) = table("--by", "params", "--sort", "tflops", "--top", "1", path)
    assert first["Params"] == "float16 [128,128] [128,128]"
    assert run("prof", "--by", "params", "--sort", "nonsense", path).code == 2
    assert run("prof", "--by", "params", "-w", "160", path).code == 0
