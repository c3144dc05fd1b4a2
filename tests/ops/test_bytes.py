"""Bytes and result shapes, compared with elements of real CPU tensors."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch: Any = pytest.importorskip("torch")

from pyprof import ops
from pyprof.marker import Call, Opaque, Tensor, Value
from pyprof.ops import Unknown, Work, costs, dtypes, registry
from pyprof.ops.examples import f16, f32
from pyprof.ops.torch.tensors.pointwise_rules import RULES
from tests.ops.torch_calls import Recorder, python_call, tensors
from tests.torch_samples import op_infos, samples

SAMPLES = 2


def _size(given: Any) -> int:  # noqa: ANN401 - torch's tensors, or ours
    """Add up the bytes of tensors."""
    if isinstance(given, Tensor):
        return given.numel * (dtypes.item_size(given.dtype) or 0)
    return sum(t.numel() * t.element_size() for t in tensors(given))


def _given(values: tuple[Value, ...]) -> int:
    """Add up the bytes of the tensors among a call's arguments."""
    return sum(
        _given(value) if isinstance(value, tuple) else _size(value)
        for value in values
        if isinstance(value, (tuple, Tensor))
    )


def _places(call: Call, at: int) -> int:
    """Return the bytes of as many elements of an op's first tensor as its argument `at` has."""
    first, index = call.args[0], call.args[at]
    assert isinstance(first, Tensor)
    assert isinstance(index, Tensor)
    return index.numel * (dtypes.item_size(first.dtype) or 0)


Explained = Callable[[Call, list[Any]], int]
_TRUTH: tuple[str, Explained] = ("a Python truth value, not a tensor", lambda _call, _out: 1)
_RUNNING: tuple[str, Explained] = (
    "running statistics are written too, yet not returned, where given",
    lambda call, out: _size(out) + _size(call.args[3]) + _size(call.args[4]),
)
EXPLAINED: dict[str, tuple[str, Explained]] = {
    # what a formula gives where it is not what torch returns: why, and what it must give then
    "allclose": _TRUTH,
    "equal": _TRUTH,
    "_linalg_slogdet": ("the factors are not all returned", lambda _call, out: _size(out[2])),
    "triangular_solve": (
        "the coefficients are returned, uncopied in the modern form",
        lambda _call, out: _size(out[0]),
    ),
    "native_batch_norm": _RUNNING,
    "_native_batch_norm_legit": _RUNNING,
    "_batch_norm_with_update": _RUNNING,
    "_embedding_bag": ("bags' bookkeeping is not counted", lambda _call, out: _size(out[0])),
    "log_sigmoid_forward": (
        "the CPU keeps a buffer, the GPU an empty one",
        lambda _call, out: _size(out[0]),
    ),
    "rrelu_with_noise": ("the noise is written, not returned", lambda _call, out: 2 * _size(out)),
    "native_dropout_backward": (
        "integers have no gradient, and become float32",
        lambda call, _out: _size(call.args[0]),
    ),
    "scatter_": ("in place only the places named are written", lambda call, _out: _places(call, 2)),
    "index_add_": (
        "in place only the places named are written",
        lambda call, _out: _places(call, 3),
    ),
}


def _work(call: Call) -> Work | None:
    model = ops.find(call)
    if model is None or not model.work or ops.cost(call).reason:
        return None
    try:
        return model.formula(costs._bind(model, call, None))
    except Unknown:
        return None


def written_bytes(call: Call) -> int | None:
    work = _work(call)
    return None if work is None else sum(map(_size, work.writes))


def _recorded(info: Any, dtype: Any) -> Recorder:  # noqa: ANN401 - torch's own
    recorder = Recorder()
    wanted = dtype is torch.float32 and info.supports_autograd
    for sample in itertools.islice(samples(info, dtype, requires_grad=wanted), SAMPLES):
        with recorder:
            result = tensors(info.op(sample.input, *sample.args, **sample.kwargs))
            inputs = [t for t in tensors([sample.input, *sample.args]) if t.requires_grad]
            outputs = [t for t in result if t.requires_grad and t.is_floating_point()]
            if outputs and inputs:
                torch.autograd.grad(outputs[0].sum(), inputs, allow_unused=True)
    return recorder


_SLOW = ("linalg", "ldl", "svd", "pca_lowrank", "to_sparse", "jiterator", "sparse", "masked.")


READ_TWICE = {"convolution_backward"}
"""Each gradient is a product of its own that reads the incoming one."""


@pytest.mark.slow
def test_bytes_written_are_those_of_torchs_results() -> None:
    """For torch's own samples of every op, forward and backward, floating and integer.

    Differences are explained to the byte. No call reads more than its arguments.
    """
    wrong: dict[str, str] = {}
    explained: set[str] = set()
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's samples use what torch deprecates
        for info, dtype in itertools.product(op_infos(), (torch.float32, torch.int64)):
            if dtype not in info.dtypes or info.name.startswith(_SLOW):
                continue
            for _, call, result, *_ in _recorded(info, dtype).made:
                work = _work(call)
                if work is None:
                    continue
                compared += 1
                ours = sum(map(_size, work.writes))
                read, given = sum(map(_size, work.reads)), _given(call.args)
                if read > given and call.op not in READ_TWICE:
                    wrong.setdefault(call.op, f"reads {read} of {given}: {call}")
                real = _size(result)
                if ours != real and call.op in EXPLAINED:
                    explained.add(call.op)
                    real = EXPLAINED[call.op][1](call, tensors(result))
                if ours != real:
                    wrong.setdefault(call.op, f"{ours} not {real}: {call}")
    assert wrong == {}
    assert explained == set(EXPLAINED)  # none that hides nothing
    assert compared > 3000


SHAPES = st.lists(st.integers(1, 5), min_size=0, max_size=4)
DTYPES = st.sampled_from(["float32", "float16", "bfloat16", "float64", "int64", "int32", "bool"])


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, keep=st.integers(0, 15), dtype=DTYPES, name=st.sampled_from(["add", "mul"]))
def test_pointwise_bytes_are_elements_times_their_size(
    shape: list[int], keep: int, dtype: str, name: str
) -> None:
    """Each operand at its own size, plus the broadcast and promoted result."""
    other = [size if keep >> at & 1 else 1 for at, size in enumerate(shape)]
    x = torch.zeros(shape, dtype=torch.float32)
    y = torch.zeros(other, dtype=getattr(torch, dtype))
    out = getattr(torch, name)(x, y)
    found = ops.cost(python_call("torch", name, x, y))
    assert found.bytes == sum(t.numel() * t.element_size() for t in (x, y, out))
    assert found.flops == out.numel()


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 4), c=st.integers(1, 8), k=st.integers(1, 8), side=st.integers(1, 6))
def test_a_1x1_convolution_is_a_matrix_product(n: int, c: int, k: int, side: int) -> None:
    image, filters = f16(n, c, side, side), f16(k, c, 1, 1)
    rows, weight = f16(n * side * side, c), f16(k, c)
    conv = Call("torch.nn.functional", "conv2d", (image, filters))
    linear = Call("torch.nn.functional", "linear", (rows, weight))
    for direction in ("fprop", "bprop"):
        first, second = ops.cost(conv, direction), ops.cost(linear, direction)
        assert (first.flops, first.bytes) == (second.flops, second.bytes)


def _pointwise_names() -> set[str]:
    found = set()
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = name.partition("::")
        plain = rest.partition(".")[0]
        if space != "aten" or plain.endswith("_out"):
            continue
        packet = getattr(torch.ops.aten, plain, None)
        for overload in packet.overloads() if packet is not None else ():
            if torch.Tag.pointwise in getattr(packet, overload).tags:
                found.add(plain)
    return found


def test_every_op_that_torch_tags_pointwise_has_a_formula() -> None:
    """A new pointwise op in torch fails here."""
    missing = {name for name in _pointwise_names() if ops.find(Call("aten", name)) is None}
    assert missing <= {"frexp"}  # two results, one of them an exponent: not used in training


def _with_and_without_out(name: str) -> list[tuple[Call, Call]]:
    """Spell each `out` overload of a pointwise op as a trace does, and what it does without it."""
    packet = getattr(torch.ops.aten, name, None)
    x, found = f32(4, 5), []
    for overload in packet.overloads() if packet is not None else ():
        given = getattr(packet, overload)._schema.arguments
        if sum(argument.is_out for argument in given) == 1 and str(given[0].type) == "Tensor":
            tensors_too = [str(arg.type) in ("Tensor", "Optional[Tensor]") for arg in given]
            values = tuple(x if is_tensor else Opaque() for is_tensor in tensors_too[:-1])
            fixed = {"bool": "bool", "double": "float64"}
            out = Tensor(x.shape, fixed.get(RULES[name].result, x.dtype))
            found.append((Call("aten", name, (*values, out)), Call("aten", name, values)))
    return found


def test_an_out_argument_is_not_an_operand() -> None:
    """`clamp_min(x, 0, out=x)` reads x and writes it, whichever overload it is."""
    compared = 0
    for name in sorted(_pointwise_names() & set(RULES)):
        for into, fresh in _with_and_without_out(name):
            found, wanted = ops.cost(into), ops.cost(fresh)
            assert (found.flops, found.bytes) == (wanted.flops, wanted.bytes), into
            compared += wanted.bytes is not None
    assert compared > 100


@pytest.mark.parametrize(
    ("operands", "wanted"),
    [
        ((torch.int64, (2,), 1), "int64"),
        ((torch.int64, (2,), 1.5), "float32"),
        ((torch.bool, (2,), 2), "int64"),
        ((torch.float16, (2,), 1.5), "float16"),
        ((torch.uint8, (2,), True), "uint8"),
        ((torch.complex64, (2,), 1.5), "complex64"),
    ],
)
def test_a_number_raises_the_kind_and_not_the_width(
    operands: tuple[Any, tuple[int, ...], Any], wanted: str
) -> None:
    """1, 1.0 and True are equal keys of a dict, but three dtypes in torch."""
    dtype, shape, number = operands
    x = torch.zeros(shape, dtype=dtype)
    assert str((x + number).dtype) == f"torch.{wanted}"
    size = dtypes.item_size(wanted)
    found = ops.cost(python_call("torch", "add", x, number)).bytes
    assert found == x.numel() * (x.element_size() + (size or 0))


def test_every_rule_has_its_spellings() -> None:
    for name in RULES:
        assert registry.find(Call("torch", name)) is registry.find(Call("aten", f"{name}_"))
