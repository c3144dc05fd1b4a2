"""Formulas of `resampling`, by their worked examples and foreign arguments; modes of grids."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque
from pyprof.ops.examples import NN, f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.resampling")

X, GRID, OUT = f32(2, 3, 4, 4), f32(2, 5, 6, 2), f32(2, 3, 5, 6)
VOLUME, POSITIONS = f32(2, 3, 4, 4, 4), f32(2, 3, 5, 6, 3)


@pytest.mark.parametrize(
    ("mode", "number", "forward", "of_input", "of_grid"),
    [("bilinear", 0, 7, 8, 8), ("nearest", 1, 0, 1, 0), ("bicubic", 2, 31, 32, 32)],
)
def test_grid_samples_cost_what_their_mode_needs(
    mode: str, number: int, forward: int, of_input: int, of_grid: int
) -> None:
    """FLOPs per output: 4, 1 or 16 neighbours, each weighted and added."""
    named = ops.cost(Call(NN, "grid_sample", (X, GRID), {"mode": mode}))
    numbered = ops.cost(Call("aten", "grid_sampler_2d", (X, GRID, number, 0, False)))
    assert named.flops == numbered.flops == forward * OUT.numel
    for mask, each in (((True, True), of_input + of_grid), ((True, False), of_input)):
        backward = Call("aten", "grid_sampler_2d_backward", (OUT, X, GRID, number, 0, False, mask))
        assert ops.cost(backward).flops == each * OUT.numel


def test_a_volume_has_eight_neighbours() -> None:
    assert ops.cost(Call(NN, "grid_sample", (VOLUME, POSITIONS))).flops == 15 * 2 * 3 * 3 * 5 * 6


def test_an_unknown_mode_leaves_bytes_known() -> None:
    """Texts of emit_nvtx have no numbers."""
    cost = ops.cost(Call("aten", "grid_sampler_2d", (X, GRID, Opaque(""), Opaque(""))))
    assert (cost.flops, cost.bytes) == (None, 4 * (X.numel + GRID.numel + OUT.numel))
    assert cost.reason == "mode not recorded"
