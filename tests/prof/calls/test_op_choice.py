"""An op call on the CPU is charged once, whatever it consists of and however long it took."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyprof
from pyprof import marker, ops
from pyprof.marker import Call, Summary, Tensor, encode_seq, statement
from pyprof.prof.calls.op_choice import choose, innermost, with_expanded_strides
from pyprof.prof.kernels.kernel_context import KernelContext
from tests.builders import Range, Work, nsys_db
from tests.readers.kineto_calls import Called, call, events
from tests.readers.kineto_json import trace_file

if TYPE_CHECKING:
    import pandas as pd


N = 64 * 48
X = [64, 48]


def _load(
    folder: Path, *calls: Called, clock: Callable[[str], float] = lambda _: 10
) -> pd.DataFrame:
    rows: pd.DataFrame = pyprof.load(trace_file(folder, events(calls, clock)))
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
    assert _load(tmp_path, what).flops.sum() == flops


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_durations_do_not_change_costs(tmp_path: Path, seed: int) -> None:
    clock = random.Random(seed)  # noqa: S311 - no secrets
    calls = (MSE, LINEAR, ATTENTION, DOUBLED)
    even = _load(tmp_path, *calls)
    uneven = _load(tmp_path, *calls, clock=lambda _: clock.choice([0.01, 1, 5000]))
    columns = ["kernel", "flops", "bytes", "why", "opid"]
    assert uneven[columns].equals(even[columns])


def test_flops_are_charged_to_the_ops_that_compute(tmp_path: Path) -> None:
    """In proportion to what each op costs on its own: products have nearly all, copies none."""
    rows = _load(tmp_path, ATTENTION)
    assert rows.kernel.tolist() == ["aten::bmm", "aten::add_", "aten::_softmax", "aten::bmm"]
    product = 2 * 8 * 24 * 24 * 16
    others = [8 * 24 * 24, 24 * 8 * 24 * 24]
    whole = 2 * product + sum(others)
    wanted = [2 * product * part / whole for part in (product, *others, product)]
    assert rows.flops.tolist() == pytest.approx(wanted, abs=1)
    moved = call("dot_of_mine", [X], call("dot", [[48], [48]], call("copy_", [[48], [48]])))
    assert _load(tmp_path, moved).kernel.tolist() == ["aten::dot"]


def test_an_op_without_a_formula_is_charged_the_rest(tmp_path: Path) -> None:
    """The layer's own op has no formula, so it has what its helpers do not account for."""
    sizes = [[[1, 3, 5]], [2, 2], []]
    lone = call("linear", [[8, 4], [6, 4]], call("a_kernel", sizes), call("sum", [[10]]))
    assert _load(tmp_path, lone).flops.tolist() == [2 * 8 * 4 * 6 - 10, 10]


def test_calls_inside_with_other_types_are_not_calls_of_their_own(tmp_path: Path) -> None:
    mask = call("all", [X], dtypes=["bool"])
    softmax = call("_softmax", [X, [], []], call("exp", [X]), mask, inputs=["", "1", "False"])
    rows = _load(tmp_path, softmax)
    assert (rows.opid == rows.opid[0]).all()
    assert rows.flops.sum() == 24 * N


def test_a_batch_that_vmap_hides(tmp_path: Path) -> None:
    """The outer op has the sizes of one element, the innermost those of the whole batch."""
    hidden, shown = [128], [64, 128]
    sine = call("sin", [shown], call("sin", [shown]))
    layers = call("sin", [hidden], call("sin", [hidden], sine))
    assert _load(tmp_path, layers).flops.tolist() == [20 * 64 * 128]


def test_vmap_may_call_another_op_for_the_batch(tmp_path: Path) -> None:
    """The product of a vector becomes that of a matrix, whose sizes only one inner op has."""
    batched = [[64, 1, 128], [128, 32]]
    product = call("mm", [[64, 128], [128, 32]])
    inner = call("matmul", batched, call("matmul", batched, product))
    row = [[128], [128, 32]]
    outer = call("matmul", row, call("matmul", row, call("mm", [[1, 128], [128, 32]], inner)))
    assert _load(tmp_path, outer).flops.tolist() == [2 * 64 * 128 * 32]


def test_repeated_arguments_are_read_once(tmp_path: Path) -> None:
    """A layer's gradient repeats its arguments; a forward-mode derivative consists of other ops."""
    inner = [call(name, [X] * n, call(name, [X] * 2 * n)) for name, n in (("cos", 1), ("mul", 2))]
    primal = call("sin", [X, X])
    layers = call("sin", [X], call("sin", [X], primal, *inner))
    assert _load(tmp_path, layers).flops.tolist() == [20 * N, 20 * N, N]


def _node(name: str, seq: int, *inside: Called) -> Called:
    node = call(name, [X], *inside, seq=seq, forward=1)
    return call(f"autograd::engine::evaluate_function: {name}", [], node, seq=seq, forward=1)


def test_ops_of_a_node_are_charged_for_themselves(tmp_path: Path) -> None:
    """The rest of the node's cost goes to ops without a formula; nothing is charged twice."""
    forward = call("tanh", [X], seq=7)
    back = _node("TanhBackward0", 7, call("mul", [X, X]), call("my_kernel", [X]))
    rows = _load(tmp_path, forward, back)
    assert rows.flops.tolist() == [20 * N, N, 3 * N - N]


def test_one_node_of_several_is_not_the_whole_calls_backward(tmp_path: Path) -> None:
    """A recurrent network of two layers has two nodes; neither is charged for both."""
    inside = [call("a_layer", [X], seq=seq) for seq in (3, 4)]
    forward = call("softmax", [X, [], []], *inside, inputs=["", "1", ""], seq=3)
    nodes = [_node("ALayerBackward0", seq, call("my_kernel", [X])) for seq in (4, 3)]
    rows = _load(tmp_path, forward, *nodes)
    assert rows[rows.dir == "bprop"].flops.isna().all()
    assert rows[rows.dir == "bprop"].why.str.contains("my_kernel|a_layer").all()


def _kept(*sizes: list[int]) -> list[Called]:
    return [call("detach", [size], call("alias", [size])) for size in sizes]


def _recomputing_node(*ops: Called) -> Called:
    """Return a node that runs a forward pass again before its own work."""
    return _node("MulBackward0", 9, *ops, call("mul", [X, X]))


def test_an_op_that_checkpointing_stopped_is_not_charged(tmp_path: Path) -> None:
    """The last recomputed op only saved its input before it was stopped."""
    sine = call("sin", [X], *_kept(X), seq=20)
    last = call("mul", [X, X], *_kept(X, X), seq=21)
    rows = _load(tmp_path, _recomputing_node(sine, last))
    assert rows.kernel.tolist() == ["aten::sin", "aten::mul", "aten::mul"]
    assert rows.flops.fillna(-1).tolist() == [20 * N, -1, N]
    assert rows.why[1].startswith("stopped: gradient checkpointing")


def test_a_call_around_a_stopped_op_is_not_charged(tmp_path: Path) -> None:
    """A call of several ops was stopped in its last one: the others are charged for themselves."""
    first = call("relu", [X], *_kept(X), seq=19)
    product = call("mm", [X, [48, 64]], *_kept([48, 64]), seq=21)
    both = [call("add", [X, X], seq=20), call("matmul", [X, [48, 64]], product, seq=20)]
    rows = _load(tmp_path, _recomputing_node(first, call("linear", [X, X], *both, seq=20)))
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
def test_a_last_op_that_did_work_is_charged(tmp_path: Path, last: Called) -> None:
    """One whose output is saved has run, and one that called other ops had begun."""
    rows = _load(tmp_path, _recomputing_node(call("sin", [X], *_kept(X), seq=20), last))
    assert rows.flops.notna().all()


def test_a_gradient_of_a_gradient_is_not_a_checkpoint(tmp_path: Path) -> None:
    """A differentiable backward node calls ops with sequence numbers, but nothing is stopped."""
    rows = _load(tmp_path, _recomputing_node(call("sin", [X], seq=20), call("mul", [X, X], seq=21)))
    assert rows.flops.tolist() == [20 * N, N, N]


def test_a_comparison_of_a_tensor_with_itself_reads_it_once() -> None:
    """As `isnan` and `isfinite` call it, in marker texts with and without types."""
    for outer, inner in (("isnan", "ne"), ("isfinite", "eq")):
        one, both = (
            statement(encode_seq(f"aten::{op}", sizes=[[5, 8]] * n, dtypes=["float32"] * n))
            for op, n in ((outer, 1), (inner, 2))
        )
        found = choose(KernelContext(markers=(), seqs=(one, both))).cost()
        assert (found.flops, found.bytes) == (40, 160 + 40)
        alone = choose(KernelContext(markers=(), seqs=(both,))).cost()
        assert alone.bytes == 2 * 160 + 40


@pytest.mark.parametrize(("other", "moved"), [("float16", 2 * 3 * 64), ("float32", None)])
def test_sizes_alone_take_the_type_that_the_call_around_has(other: str, moved: int | None) -> None:
    """If its tensors agree on one."""
    args = [Tensor((8, 8), dtype) for dtype in ("float16", other)]
    layer = statement(marker.encode_op(Call("mine", "layer", (*args,))))
    sizes = statement(encode_seq("aten::mm", sizes=[[8, 8], [8, 8]]))
    assert choose(KernelContext(markers=(layer,), seqs=(sizes,))).cost().bytes == moved


X32, I64 = Tensor((8, 4), "float32"), Tensor((8,), "int64")
MANY = Summary(40, 40 * 6, "float32", (Tensor((6,), "float32"),) * 4)


@pytest.mark.parametrize(
    ("stated", "op", "sizes", "flops", "moved"),
    [
        (Call("Tensor", "pow", (X32, 2)), "pow", [[8, 4], []], 32, 256),
        (Call("Tensor", "uniform_", (X32, -1.0, 1.0)), "uniform_", [[8, 4], [], []], 64, 128),
        (Call("Tensor", "sum", (X32,), {"dim": 1}), "sum", [[8, 4], [], [], []], 32, 160),
        (Call("torch", "_foreach_mul_", (MANY, 2.0)), "_foreach_mul_", 40 * [[6]], 240, 1920),
        (Call("torch", "mm", (X32, X32)), "pow", [[8, 4], []], None, 256),
        (Call("F", "nll_loss", (X32, I64)), "nll_loss_forward", [[8, 4], [8], []], 17, 104),
    ],
)
def test_sizes_alone_are_read_as_the_marker_around_states_the_call(
    stated: Call, op: str, sizes: list[list[int]], flops: int | None, moved: int
) -> None:
    """All of it, if the op is the same and has as many elements; else types of the same sizes."""
    around = statement(marker.encode_op(stated))
    inside = statement(encode_seq(f"aten::{op}", sizes=sizes))
    cost = choose(KernelContext(markers=(around,), seqs=(inside,))).cost()
    assert (cost.flops, cost.bytes) == (flops, moved)


def test_a_backward_pass_is_of_the_call_that_the_marker_of_the_forward_pass_states() -> None:
    """PyTorch's own range of the forward call has sizes alone, without the exponent."""
    marked = statement(marker.encode_op(Call("Tensor", "pow", (X32, 2))))
    forward = statement(encode_seq("aten::pow", sizes=[[8, 4], []]))
    found = [
        choose(
            KernelContext(markers=(), seqs=(), fwd_markers=m, fwd_seqs=(forward,), backward=True)
        )
        for m in ((marked,), ())
    ]
    assert [work.cost().flops for work in found] == [64, None]


def test_attention_takes_its_mask_from_the_marker_forward_and_backward() -> None:
    """emit_nvtx writes no `is_causal`: without a marker FLOPs are unknown."""
    x = Tensor((2, 4, 16, 8), "float16")
    attention = Call("torch.nn.functional", "scaled_dot_product_attention", (x, x, x))
    marked = statement(marker.encode_op(replace(attention, kwargs={"is_causal": True})))
    name, sizes = "aten::_scaled_dot_product_flash_attention", [2, 4, 16, 8]
    hidden: list[list[int]] = [[]] * 9
    forward = statement(encode_seq(name, sizes=[sizes] * 3 + hidden[:3]))
    node = statement(encode_seq(f"{name}_backward", sizes=[sizes] * 5 + hidden))
    for flops, marks in ((2 * 8 * 16 * 16 * 8, (marked,)), (None, ())):
        found = choose(KernelContext(markers=marks, seqs=(forward,)))
        assert found.cost().flops == flops
        back = KernelContext(
            markers=(), seqs=(node,), fwd_markers=marks, fwd_seqs=(forward,), backward=True
        )
        assert choose(back).cost().flops == (flops and flops * 5 // 2)
        assert (choose(back).direction == "bprop") is bool(marks)


def test_a_part_of_attention_is_not_costed_as_the_marker_around_states_the_whole() -> None:
    """In a ring of ranks, a DTensor's queries are those of all of them."""
    x = Tensor((2, 4, 64, 8), "float16")
    whole = Call("torch.nn.functional", "scaled_dot_product_attention", (x, x, x))
    hidden: list[list[int]] = [[]] * 3
    sizes = [[2, 4, 16, 8]] * 3 + hidden
    part = encode_seq("aten::_scaled_dot_product_flash_attention", sizes=sizes)
    around = statement(marker.encode_op(whole))
    cost = choose(KernelContext(markers=(around,), seqs=(statement(part),))).cost()
    assert (cost.flops, cost.bytes) == (None, 4 * 2 * 4 * 16 * 8 * 2)


def test_an_operator_without_a_formula_is_named_as_its_library_does() -> None:
    """Not as the range that torch.library puts inside, if its derivative is written in Python."""
    names = ("mylib::scale", "GeneratedBackwardFor_mylib_scale_default")
    seqs = tuple(statement(encode_seq(name, sizes=[[8, 8]])) for name in names)
    assert choose(KernelContext(markers=(), seqs=seqs)).reason == "unknown op scale"


HIDDEN, SHOWN = Tensor((32,), "float32"), Tensor((10, 32), "float32")


def _softmax(*args: object) -> Call:
    return Call("aten", "_log_softmax", args)  # type: ignore[arg-type]


def test_nested_calls_are_not_a_layer() -> None:
    """Nor is an op that calls its own overload with an output argument."""
    assert innermost([]) is None
    assert innermost([Call("aten", "mm", (SHOWN,)), None, Call("aten", "mm", (SHOWN,))]) is None
    assert innermost([_softmax(SHOWN, 1, None), _softmax(HIDDEN, 0, None)]) is None
    kth = [Call("aten", "kthvalue", (SHOWN, 2, 1, SHOWN, SHOWN)[:n]) for n in (5, 3)]
    assert innermost(kth) is None


def test_the_deepest_call_with_the_same_arguments_counts() -> None:
    calls = [Call("aten", "copy_", (SHOWN,)), *[_softmax(SHOWN, 1, None)] * 2]
    assert innermost(calls) == (1, _softmax(SHOWN, 1, None))


def test_a_call_takes_only_its_last_arguments() -> None:
    """Those before are of the calls around it, or repetitions."""
    twice = [_softmax(SHOWN, 1, None, SHOWN, 1, None), _softmax(SHOWN, 1, None)]
    assert innermost(twice) == (0, _softmax(SHOWN, 1, None))
    stacked = _softmax(HIDDEN, 0, None, SHOWN, 1, None)
    around = [_softmax(HIDDEN, 0, None, HIDDEN, 0, None), _softmax(HIDDEN, 0, None)]
    assert innermost([stacked, stacked, *around]) == (0, _softmax(SHOWN, 1, None))


def test_another_overload_keeps_all_its_arguments() -> None:
    """A sum over a dimension takes more arguments than the sum of all that called it."""
    whole = Call("aten", "sum", (Tensor((48,), "float32"), None))
    over = Call("aten", "sum", (Tensor((64, 48), "float32"), (1,), None, None))
    assert innermost([over, over, whole, whole]) == (0, over)


def test_a_kernel_is_charged_for_the_whole_batch(tmp_path: Path) -> None:
    def ranged(*sizes: list[int]) -> str:
        given = [part for size in sizes for part in (size, [], [])]
        inputs = [text for size in sizes for text in ("", str(len(size) - 1), "False")]
        kinds = ["float32" if size else "" for size in given]
        return encode_seq("aten::_log_softmax", op_id=1, sizes=given, dtypes=kinds, inputs=inputs)

    texts = [*[ranged([32])] * 2, ranged([32], [32]), *[ranged([32], [10, 32])] * 2]
    ranges = [Range(text, (at, 100 - at)) for at, text in enumerate(texts)]
    work = [Work("softmax_kernel", (200, 300), (50, 55))]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, ranges))
    assert rows.flops.tolist() == [24 * 320]


torch: Any = pytest.importorskip("torch")

from tests.ops.torch_calls import Recorder


def _division(shape: tuple[int, ...], *how: Any) -> tuple[marker.Call, Tensor]:  # noqa: ANN401 - as mean
    """Return the division of a mean's backward pass, and the mean's gradient."""
    mean = torch.zeros(shape, requires_grad=True).mean(*how)
    with Recorder() as recorder:
        mean.backward(torch.ones_like(mean))
    call = next(call for _, call, *_ in recorder.made if call.op == "div")
    return call, Tensor(tuple(mean.shape), "float32")


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ((2, 3, 7, 7), ((-1, -2), True)),
        ((2, 3, 7, 7), ((2, 3),)),
        ((2, 3, 7, 7), ((0,),)),
        ((2, 3, 7), ((1,),)),
        ((5, 4), ()),
        ((1, 4), ((0,), True)),
    ],
)
def test_the_gradient_that_a_mean_repeats_is_read_once(
    shape: tuple[int, ...], how: tuple[Any, ...]
) -> None:
    call, gradient = _division(shape, *how)
    first = call.args[0]
    assert isinstance(first, Tensor)
    bare = replace(call, args=(replace(first, stride=None), *call.args[1:]))
    sizes, dtypes = [[*gradient.shape]], [gradient.dtype]
    node = statement(encode_seq("MeanBackward1", sizes=sizes, dtypes=dtypes))
    assert ops.cost(with_expanded_strides(bare, node)).bytes == ops.cost(call).bytes


@pytest.mark.parametrize(
    ("node", "gradient", "repeats"),
    [
        ("MeanBackward1", [8, 16, 1, 1], True),
        ("DivBackward0", [8, 16, 1, 1], False),  # what is divided may be computed
        ("MeanBackward1", [8, 5, 1, 1], False),  # not its gradient
    ],
)
def test_a_row_in_the_backward_of_a_mean(node: str, gradient: list[int], *, repeats: bool) -> None:
    """Only the op call that its kernels work for reads the small gradient."""
    seqs = (
        statement(encode_seq(node, seq=3, sizes=[gradient], dtypes=["float32"])),
        statement(encode_seq("aten::div", sizes=[[8, 16, 7, 7], []], dtypes=["float32", "int64"])),
    )
    found = choose(KernelContext(markers=(), seqs=seqs, backward=True)).cost()
    whole = 8 * 16 * 7 * 7
    assert found.bytes == 4 * (whole + (8 * 16 if repeats else whole))


def test_a_call_on_a_distributed_tensor_counts_the_part_of_the_rank() -> None:
    """Two ranks share a product of 1,024 columns: PyTorch's outer range has all of them."""
    whole = [[1024], [64, 256], [256, 1024]]
    texts = [
        encode_seq("aten::linear", sizes=[whole[1], [1024, 256], whole[0]]),
        encode_seq("aten::addmm", sizes=whole),
        encode_seq("PythonSubclass", sizes=whole),
        encode_seq("aten::addmm", sizes=[[512], [64, 256], [256, 512]]),
    ]
    context = KernelContext(
        markers=(), seqs=tuple(map(statement, texts)), order=(0, 1, 2, 3), on_cpu=True
    )
    assert choose(context).cost().flops == 2 * 64 * 256 * 512
