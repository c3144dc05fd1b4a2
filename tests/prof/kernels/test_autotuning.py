"""cuDNN's benchmark: trials are marked and cost nothing; other convolutions are unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyprof
from pyprof.marker import Call, Tensor, encode_op
from pyprof.prof.kernels.autotuning import _last_run
from tests.prof.kernels_in_ranges import called

if TYPE_CHECKING:
    import pandas as pd

CHOSEN = "sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16"
TRIALS = (
    "implicit_convolve_sgemm",
    "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "explicit_convolve_sgemm",
)
LAYOUT = "void cudnn::ops::nchwToNhwcKernel<float, float>(int)"
OTHER = "sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x16"


def _conv(channels: int = 64) -> str:
    tensors = Tensor((8, channels, 32, 32), "float32"), Tensor((64, channels, 3, 3), "float32")
    return encode_op(Call("torch.nn.functional", "conv2d", tensors))


REAL = (
    "kineto-v100-resnet50-2021/trace.json.gz",
    "kineto-v100-resnet-ddp/trace.json.gz",
    "nsys2024.2-a100-pyprof-markers/net.sqlite",
)
FLOPS = 2 * 8 * 64 * 64 * 9 * 30 * 30


def _load(folder: Path, *calls: tuple[str, tuple[str, ...]]) -> pd.DataFrame:
    """Load a capture of op calls, each with its text and the kernels that it launched."""
    timed = ((text, zip(names, range(80, 100), strict=False)) for text, names in calls)
    rows: pd.DataFrame = pyprof.load(called(folder / "net.sqlite", *timed))
    return rows


def _marked(rows: pd.DataFrame) -> list[bool]:
    return [str(why).startswith("trial: ") for why in rows.why]


def test_trials_before_the_chosen_kernel_are_marked_and_cost_nothing(tmp_path: Path) -> None:
    burst = (*TRIALS, CHOSEN, *TRIALS, CHOSEN)
    rows = _load(tmp_path, (_conv(), burst), (_conv(), (CHOSEN,)), (_conv(), (CHOSEN,)))
    assert _marked(rows) == [True] * 7 + [False] * 3
    assert rows.flops.tolist() == [0] * 7 + [FLOPS] * 3
    assert rows.groupby("opid").flops.sum().tolist() == [FLOPS] * 3


def test_helpers_around_the_chosen_kernel_are_part_of_the_real_run(tmp_path: Path) -> None:
    """A layout transform that later calls have, too, is a helper in the first call and no trial."""
    steady = (LAYOUT, CHOSEN, LAYOUT)
    rows = _load(tmp_path, (_conv(), (*TRIALS, LAYOUT, CHOSEN, *steady)), (_conv(), steady))
    assert _marked(rows) == [True] * 5 + [False] * 6
    assert rows.flops.tolist() == [0] * 6 + [FLOPS, 0, 0, FLOPS, 0]
    assert [rows.why[place].partition(":")[0] for place in (5, 7)] == ["helper"] * 2


def test_both_gradients_of_one_node_may_be_tried() -> None:
    """The last run of each is the real one, in order, with trials of the other in between."""
    assert _last_run([1, 2, 5, 1, 7, 8, 6, 7], [1, 7]) == [7, 3]
    assert _last_run([1, 2], [1, 3]) is None


def test_a_convolution_of_two_kernels_is_not_a_benchmark(tmp_path: Path) -> None:
    """Each call has the same kernels: nothing is marked, and they share the FLOPs."""
    pair = (CHOSEN, OTHER)
    rows = _load(tmp_path, *[(_conv(), pair)] * 3)
    assert not any(_marked(rows))
    assert rows.groupby("opid").flops.sum().tolist() == [FLOPS] * 3
    assert (rows.flops > 0).all()


BURST, STEADY = (_conv(), (*TRIALS, CHOSEN)), (_conv(), (CHOSEN,))
SHAPELESS = "aten::cudnn_convolution, seq = 3, op_id = 4"
MM = encode_op(Call("torch", "mm", (Tensor((64, 64), "float32"),) * 2))
SGEMMS = ("ampere_sgemm_1", "ampere_sgemm_2", "ampere_sgemm_3")
NO_TRIALS = {
    # weights transformed once, or one more kernel, are too few for trials
    "helpers of the first call alone": [(_conv(), (LAYOUT, LAYOUT, LAYOUT, CHOSEN)), STEADY],
    "one more kernel": [(_conv(), (OTHER, CHOSEN)), STEADY],
    # one call of a shape looks like a convolution of many kernels
    "no later call": [BURST, (_conv(32), (CHOSEN,))],
    # the chosen kernel must have run in the burst too
    "a later call by another kernel": [BURST, (_conv(), (OTHER,))],
    # nothing comes after the last call to compare it with
    "a burst after the steady calls": [STEADY, BURST],
    # all have the same text in a trace without shapes; one with fewer kernels shows nothing
    "no shapes": [(SHAPELESS, (*TRIALS, CHOSEN)), (SHAPELESS, (CHOSEN,))],
    "other ops": [(MM, SGEMMS), (MM, SGEMMS[2:])],
}


@pytest.mark.parametrize("calls", NO_TRIALS.values(), ids=NO_TRIALS)
def test_other_calls_with_more_kernels_have_no_trials(
    calls: list[tuple[str, tuple[str, ...]]], tmp_path: Path
) -> None:
    assert not any(_marked(_load(tmp_path, *calls)))


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_no_real_capture_holds_trials(name: str, captures: Path) -> None:
    """None of them ran cudnn.benchmark in its window, though all repeat their convolutions."""
    rows = pyprof.load(captures / name)
    assert rows.kernel.str.contains("conv|cudnn|wgrad", case=False).sum() > 10
    assert not any(_marked(rows))


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=3))
def test_the_real_run_is_found_by_the_kernels_of_later_calls(
    names: list[int], model: list[int]
) -> None:
    """In their order; nothing is found if one of them is missing."""
    found = _last_run(names, model)
    rest = iter(names)
    assert (found is not None) == all(name in rest for name in model)
    if found is not None:
        assert [names[place] for place in sorted(found)] == model
