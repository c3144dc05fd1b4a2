"""Formulas of `attention`, by their worked examples and foreign arguments; masks that are shown."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Value
from pyprof.ops.examples import NN, f16
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.attention")

QKV = tuple(f16(1, 8, 2, 16) for _ in range(3))


@pytest.mark.parametrize(("causal", "shown"), [(True, 1), (False, 0)])
def test_a_mask_without_a_window_shows_none(causal: bool, shown: int) -> None:  # noqa: FBT001
    call = Call(NN, "scaled_dot_product_attention", QKV, {"is_causal": causal})
    params = dict(ops.cost(call).params or {})
    assert (params["causal"], "window" in params) == (shown, False)


@pytest.mark.parametrize("window", [(3, 0), (3, 2)])
def test_a_window_is_shown(window: tuple[int, int]) -> None:
    """That many keys to the left and to the right of the query's own."""
    arguments: dict[str, Value] = {"window_size_left": window[0], "window_size_right": window[1]}
    params = dict(ops.cost(Call("aten", "_flash_attention_forward", QKV, arguments)).params or {})
    assert params["window"] == window
