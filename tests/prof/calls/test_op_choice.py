"""An op call on the CPU is charged once, whatever ops it is made of and whatever the clock did."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyprof
from tests.readers.kineto_calls import Called, call, events
from tests.readers.kineto_json import text

if TYPE_CHECKING:
    import pandas as pd

N = 64 * 48
X = [64, 48]


def _load(
    folder: Path, *calls: Called, clock: Callable[[str], float] = lambda _: 10
) -> pd.DataFrame:
    path = folder / "trace.json"
    path.write_text(text(events(calls, clock)))
    rows: pd.DataFrame = pyprof.load(path)
    return rows


def _mean(sizes: list[int]) -> Called:
    return call("mean", [sizes, []], call("sum", [sizes, []]), call("div_", [[], []]))


MSE = call(
    "mse_loss", [X, X, []], call("broadcast_tensors", [[X, X]]), _mean(X), inputs=["", "", "1"]
)
LINEAR = call(
    "linear",
    [[8, 2], [4096, 2], [4096]],
    call("t", [[4096, 2]]),
    call(
        "addmm",
        [[4096], [8, 2], [2, 4096], [], []],
        call("expand", [[4096], []]),
        call("copy_", [[8, 4096], [8, 4096], []]),
        inputs=["", "", "", "1", "1"],
    ),
)
Q = [2, 4, 24, 16]
ATTENTION = call(
    "scaled_dot_product_attention",
    [Q, Q, Q, [24, 24], [], [], []],
    call(
        "_scaled_dot_product_attention_math",
        [Q, Q, Q, [24, 24], [], []],
        call("matmul", [Q, [2, 4, 16, 24]], call("bmm", [[8, 24, 16], [8, 16, 24]])),
        call("add_", [[2, 4, 24, 24], [24, 24]]),
        call("_softmax", [[2, 4, 24, 24], [], []], inputs=["", "-1", "False"]),
        call("matmul", [[2, 4, 24, 24], Q], call("bmm", [[8, 24, 24], [8, 24, 16]])),
    ),
    inputs=["", "", "", "", "0.", "False", ""],
)
DOUBLED = call(
    "mul_", [[10, 100], []], call("to", [[]], call("_to_copy", [[]], call("copy_", [[], []])))
)


@pytest.mark.parametrize(
    ("what", "flops"),
    [
        (MSE, 3 * N + 1),  # subtract, square, add, and a division
        (LINEAR, 2 * 8 * 2 * 4096),
        (ATTENTION, 2 * 2 * 4 * 24 * 24 * 32),
        (DOUBLED, 1000),
        (call("stack_of_mine", [X], MSE, DOUBLED), 3 * N + 1 + 1000),  # without a formula
    ],
    ids=["mse_loss", "linear", "attention", "mul_", "unknown"],
)
def test_a_call_is_charged_once(tmp_path: Path, what: Called, flops: int) -> None:
    """Not again on the ops that it is made of; one that is not known is what they are."""
    assert _load(tmp_path, what).flops.sum() == flops


@pytest.mark.parametrize("seed", range(5))
def test_no_clock_has_a_say(tmp_path: Path, seed: int) -> None:
    """Rows, FLOPs and bytes of each are the same, however long each op took."""
    clock = random.Random(seed)  # noqa: S311 - no secrets
    calls = (MSE, LINEAR, ATTENTION, DOUBLED)
    even = _load(tmp_path, *calls)
    uneven = _load(tmp_path, *calls, clock=lambda _: clock.choice([0.01, 1, 5000]))
    columns = ["kernel", "flops", "bytes", "why", "opid"]
    assert uneven[columns].equals(even[columns])


def test_what_does_the_arithmetic_has_the_flops(tmp_path: Path) -> None:
    """By what each op costs on its own: the products have nearly all, and a copy none."""
    rows = _load(tmp_path, ATTENTION)
    assert rows.kernel.tolist() == ["aten::bmm", "aten::add_", "aten::_softmax", "aten::bmm"]
    product = 2 * 8 * 24 * 24 * 16
    others = [8 * 24 * 24, 24 * 8 * 24 * 24]
    whole = 2 * product + sum(others)
    wanted = [2 * product * part / whole for part in (product, *others, product)]
    assert rows.flops.tolist() == pytest.approx(wanted, abs=1)
    moved = call("dot_of_mine", [X], call("dot", [[48], [48]], call("copy_", [[48], [48]])))
    assert _load(tmp_path, moved).kernel.tolist() == ["aten::dot"]


def test_an_op_whose_cost_is_not_known_has_the_rest(tmp_path: Path) -> None:
    """The layer's own op has no formula: what its helpers do not cost is its."""
    sizes = [[[1, 3, 5]], [2, 2], []]
    lone = call("linear", [[8, 4], [6, 4]], call("a_kernel", sizes), call("sum", [[10]]))
    assert _load(tmp_path, lone).flops.tolist() == [2 * 8 * 4 * 6 - 10, 10]


def test_a_call_is_one_whatever_types_are_inside(tmp_path: Path) -> None:
    mask = call("all", [X], dtypes=["bool"])
    softmax = call("_softmax", [X, [], []], call("exp", [X]), mask, inputs=["", "1", "False"])
    rows = _load(tmp_path, softmax)
    assert (rows.opid == rows.opid[0]).all()
    assert rows.flops.sum() == 24 * N


# --- layers of functorch ------------------------------------------------------------------------


def test_a_batch_that_vmap_hides(tmp_path: Path) -> None:
    """The op is called with one element's sizes, and at last with those of all."""
    hidden, shown = [128], [64, 128]
    sine = call("sin", [shown], call("sin", [shown]))
    layers = call("sin", [hidden], call("sin", [hidden], sine))
    assert _load(tmp_path, layers).flops.tolist() == [20 * 64 * 128]


def test_another_op_for_the_batch(tmp_path: Path) -> None:
    """A product of a row is one of a matrix, of which one level of the call says the sizes."""
    batched = [[64, 1, 128], [128, 32]]
    product = call("mm", [[64, 128], [128, 32]])
    inner = call("matmul", batched, call("matmul", batched, product))
    row = [[128], [128, 32]]
    outer = call("matmul", row, call("matmul", row, call("mm", [[1, 128], [128, 32]], inner)))
    assert _load(tmp_path, outer).flops.tolist() == [2 * 64 * 128 * 32]


def test_arguments_said_twice(tmp_path: Path) -> None:
    """A gradient's layer repeats the arguments; a derivative forward is made of other ops."""
    inner = [call(name, [X] * n, call(name, [X] * 2 * n)) for name, n in (("cos", 1), ("mul", 2))]
    primal = call("sin", [X, X])
    layers = call("sin", [X], call("sin", [X], primal, *inner))
    assert _load(tmp_path, layers).flops.tolist() == [20 * N, 20 * N, N]


# --- backward -----------------------------------------------------------------------------------


def _node(name: str, seq: int, *inside: Called) -> Called:
    node = call(name, [X], *inside, seq=seq, forward=1)
    return call(f"autograd::engine::evaluate_function: {name}", [], node, seq=seq, forward=1)


def test_ops_of_a_node_are_charged_for_themselves(tmp_path: Path) -> None:
    """The rest of the node's cost is for what has no formula, and nothing is charged twice."""
    forward = call("tanh", [X], seq=7)
    back = _node("TanhBackward0", 7, call("mul", [X, X]), call("my_kernel", [X]))
    rows = _load(tmp_path, forward, back)
    assert rows.flops.tolist() == [20 * N, N, 3 * N - N]


def test_one_node_of_several_is_not_the_whole_calls_backward(tmp_path: Path) -> None:
    """Two layers of a recurrent network are two nodes: neither is charged with both."""
    inside = [call("a_layer", [X], seq=seq) for seq in (3, 4)]
    forward = call("softmax", [X, [], []], *inside, inputs=["", "1", ""], seq=3)
    nodes = [_node("ALayerBackward0", seq, call("my_kernel", [X])) for seq in (4, 3)]
    rows = _load(tmp_path, forward, *nodes)
    assert rows[rows.dir == "bprop"].flops.isna().all()
    assert rows[rows.dir == "bprop"].why.str.contains("my_kernel|a_layer").all()


# --- checkpointing ------------------------------------------------------------------------------


def _kept(*sizes: list[int]) -> list[Called]:
    return [call("detach", [size], call("alias", [size])) for size in sizes]


def _again(*ops: Called) -> Called:
    """Give a node that runs a forward pass again before its own work."""
    return _node("MulBackward0", 9, *ops, call("mul", [X, X]))


def test_what_checkpointing_stopped_is_not_charged(tmp_path: Path) -> None:
    """The last op of what is computed again handed its input over and was left."""
    sine = call("sin", [X], *_kept(X), seq=20)
    last = call("mul", [X, X], *_kept(X, X), seq=21)
    rows = _load(tmp_path, _again(sine, last))
    assert rows.kernel.tolist() == ["aten::sin", "aten::mul", "aten::mul"]
    assert rows.flops.fillna(-1).tolist() == [20 * N, -1, N]
    assert rows.why[1].startswith("stopped: gradient checkpointing")


def test_nor_is_what_is_around_it(tmp_path: Path) -> None:
    """A call of several ops that was left in its last: the others are charged for themselves."""
    first = call("relu", [X], *_kept(X), seq=19)
    product = call("mm", [X, [48, 64]], *_kept([48, 64]), seq=21)
    both = [call("add", [X, X], seq=20), call("matmul", [X, [48, 64]], product, seq=20)]
    rows = _load(tmp_path, _again(first, call("linear", [X, X], *both, seq=20)))
    assert rows.flops.fillna(-1).tolist() == [N, N, -1, N]


@pytest.mark.parametrize(
    "last",
    [
        call("tanh", [X], *_kept(X), seq=21),  # keeps its result
        call("mm", [X, [48, 4]], *_kept(X), call("resolve_conj", [X]), seq=21),
        call("relu", [X], call("clamp_min", [X, []]), *_kept(X), seq=21),
    ],
    ids=lambda last: last.name,
)
def test_the_last_op_may_have_run(tmp_path: Path, last: Called) -> None:
    """One that keeps its result has made it, and what called other ops has begun its own work."""
    rows = _load(tmp_path, _again(call("sin", [X], *_kept(X), seq=20), last))
    assert rows.flops.notna().all()


def test_a_gradient_of_a_gradient_is_no_checkpoint(tmp_path: Path) -> None:
    """A node that can be gone back over calls numbered ops, and hands nothing over."""
    rows = _load(tmp_path, _again(call("sin", [X], seq=20), call("mul", [X, X], seq=21)))
    assert rows.flops.tolist() == [20 * N, N, N]
