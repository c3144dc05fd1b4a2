"""FLOPs equal torch's counter, forward and backward, for Python-level calls.

`test_flop_counter_registry` has every op of its table as ATen calls it. Differences, each with who
is right (the last five are shown there):
* the filter's gradient of a grouped convolution: torch multiplies all channels with all
  (`conv_backward_flop` never looks at groups), g times too many; pyprof divides;
* complex numbers: torch counts a complex multiply-add as 2, pyprof as the 8 real ones it is;
* a causal mask, a sliding window: torch counts every score ("we aren't accounting for causal
  attention here"), pyprof those in the band, as flash kernels skip the rest;
* packed sequences of unequal length: torch knows them from the data or takes the longest for all,
  pyprof, which sees no data, says unknown;
* flash and efficient kernels' own layout: torch mistakes heads for sequences;
* cuDNN's convolution with its benchmark flag: torch takes the flag for a transposed convolution;
* the CPU's plain convolution, and attention's CPU and overrideable kernels: torch fails, or
  counts 0.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch: Any = pytest.importorskip("torch")

from pyprof import ops
from pyprof.marker import Call
from tests.ops.torch_calls import Recorder, python_call, tensors

F: Any = torch.nn.functional
_COUNTER: Any = pytest.importorskip("torch.utils.flop_counter")
FlopCounterMode, flop_registry = _COUNTER.FlopCounterMode, _COUNTER.flop_registry

SIZES = st.integers(1, 7)
FEW = settings(max_examples=30, deadline=None)


def _meta(*shape: int, dtype: Any = None, grad: bool = True) -> Any:  # noqa: ANN401 - torch may be absent
    made = torch.empty(*shape, device="meta", dtype=dtype or torch.float32)
    return made.requires_grad_() if grad else made


def _counted(function: Any, *args: Any, **kwargs: Any) -> tuple[int, int]:  # noqa: ANN401 - as above
    """Return torch's count of the forward and of the whole backward pass."""
    with FlopCounterMode(display=False) as forward:
        out = function(*args, **kwargs)
    with FlopCounterMode(display=False) as backward:
        tensors(out)[0].sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def _ours(call: Call) -> tuple[int | None, int | None]:
    return ops.cost(call).flops, ops.cost(call, "bprop").flops


@FEW
@given(lead=st.lists(SIZES, max_size=3), k=SIZES, m=SIZES, bias=st.booleans())
def test_linear(lead: list[int], k: int, m: int, bias: bool) -> None:  # noqa: FBT001 - drawn
    x, w = _meta(*lead, k), _meta(m, k)
    b = _meta(m) if bias else None
    call = python_call("torch.nn.functional", "linear", x, w, bias=b)
    assert _ours(call) == _counted(F.linear, x, w, b)


@FEW
@given(
    first=st.lists(SIZES, max_size=2), second=st.lists(SIZES, max_size=2), m=SIZES, n=SIZES, k=SIZES
)
def test_matmul_broadcasts(first: list[int], second: list[int], m: int, n: int, k: int) -> None:
    """Batches broadcast; the counter sees the bmm that torch makes of them."""
    try:
        torch.broadcast_shapes(first, second)
    except RuntimeError:
        second = first
    x, y = _meta(*first, m, k), _meta(*second, k, n)
    assert _ours(python_call("torch", "matmul", x, y)) == _counted(torch.matmul, x, y)


@pytest.mark.slow
@FEW
@given(n=st.integers(2, 7), k=SIZES, tall=st.integers(0, 3), b=st.integers(1, 3))
def test_products_in_the_backward_of_linear_algebra(n: int, k: int, tall: int, b: int) -> None:
    """The counter sees them, but not the triangular solves, which are added."""
    square = (torch.rand(b, n, n, dtype=torch.float64) + n * torch.eye(n)).requires_grad_()
    definite = (square @ square.mT).detach().requires_grad_()
    right = torch.rand(b, n, k, dtype=torch.float64, requires_grad=True)
    long = torch.rand(b, n + tall, n, dtype=torch.float64, requires_grad=True)
    linalg = torch.linalg
    for name, args, kwargs, solved in (
        ("inv", (square,), {}, 0),
        ("eigh", (definite,), {}, 0),
        ("cholesky", (definite,), {}, 2 * n**3),
        ("det", (square,), {}, 2 * n**3),
        ("solve", (square, right), {}, 2 * n * n * k),
        ("solve_triangular", (square, right), {"upper": True}, n * n * k),
        ("qr", (long,), {}, (n + tall) * n * n),
    ):
        out = tensors(getattr(linalg, name)(*args, **kwargs))
        with FlopCounterMode(display=False) as counter:
            torch.autograd.grad(out, args, [torch.rand_like(t) for t in out])
        ours = ops.cost(python_call("torch.linalg", name, *args, **kwargs), "bprop").flops
        assert ours == counter.get_total_flops() + b * solved, name


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "ij,kj->ik", "...ij,...jk->...ik"]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_of_two_operands(equation: str) -> None:
    sizes = {"b": 2, "h": 3, "i": 4, "j": 5, "k": 6, "d": 7}
    left = equation.replace("...", "bh").split("->")[0].split(",")
    operands = [_meta(*(sizes[letter] for letter in term)) for term in left]
    call = python_call("torch", "einsum", equation, *operands)
    assert _ours(call) == _counted(torch.einsum, equation, *operands)


@FEW
@given(
    rank=st.integers(1, 3),
    batch=st.integers(1, 3),
    channels=st.integers(1, 3),
    filters=st.integers(1, 3),
    size=st.integers(5, 8),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    padding=st.integers(0, 1),
    dilation=st.integers(1, 2),
    transposed=st.booleans(),
    bias=st.booleans(),
)
def test_convolution(
    rank: int,
    batch: int,
    channels: int,
    filters: int,
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    *,
    transposed: bool,
    bias: bool,
) -> None:
    x = _meta(batch, channels, *(size,) * rank)
    shape = (channels, filters) if transposed else (filters, channels)
    w, b = _meta(*shape, *(kernel,) * rank), _meta(filters) if bias else None
    name = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    call = python_call("torch.nn.functional", name, x, w, b, **options)
    assert _ours(call) == _counted(getattr(F, name), x, w, b, **options)


@pytest.mark.parametrize("groups", [2, 4])
def test_grouped_convolution(groups: int) -> None:
    """Forward and dgrad are equal; torch's wgrad is `groups` times too large."""
    x, w = _meta(2, 4, 8, 8), _meta(8, 4 // groups, 3, 3)
    call = python_call("torch.nn.functional", "conv2d", x, w, groups=groups)
    forward, backward = _counted(F.conv2d, x, w, groups=groups)
    assert ops.cost(call).flops == forward
    assert ops.cost(call, "bprop").flops == 2 * forward
    assert backward == forward + groups * forward


def test_complex_products_are_four_times_the_counters() -> None:
    """A complex multiply-add is four multiplications and four additions: 8 FLOPs, not 2."""
    x = _meta(4, 5, dtype=torch.complex64)
    y = _meta(5, 6, dtype=torch.complex64)
    with FlopCounterMode(display=False) as counter:
        torch.mm(x, y)
    assert ops.cost(python_call("torch", "mm", x, y)).flops == 4 * counter.get_total_flops()


def test_one_gemm_kernel_charges_one_gradient() -> None:
    """The first layer's input needs no gradient: torch runs, and we count, one product."""
    x, w = _meta(4, 6, grad=False), _meta(5, 6)
    call = python_call("torch.nn.functional", "linear", x, w)
    _, backward = _counted(F.linear, x, w)
    assert ops.cost(call, "bprop", gemm_kernels=1).flops == backward
    assert ops.cost(call, "bprop", gemm_kernels=2).flops == 2 * backward
    assert ops.cost(call, "bprop").flops == 2 * backward


def _model() -> Any:  # noqa: ANN401 - torch may be absent
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.ConvTranspose2d(8, 4, 2, stride=2),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 8 * 8, 10),
    )


def test_a_whole_training_step_adds_up() -> None:
    """The ATen calls that the counter knows have the same sum."""
    model, x = _model(), torch.rand(2, 3, 8, 8)
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(model(x), torch.tensor([1, 2])).backward()
    with Recorder() as recorder:
        F.cross_entropy(model(x), torch.tensor([1, 2])).backward()
    counted = [call for func, call, *_ in recorder.made if func.overloadpacket in flop_registry]
    assert len(counted) == 7
    assert sum(ops.cost(call).flops or 0 for call in counted) == counter.get_total_flops()


def test_nothing_of_a_training_step_is_unknown() -> None:
    model, x = _model(), torch.rand(2, 3, 8, 8)
    optimizer = torch.optim.AdamW(model.parameters())
    with Recorder() as recorder:
        F.cross_entropy(model(x), torch.tensor([1, 2])).backward()
        optimizer.step()
    reasons = {(call.op, ops.cost(call).reason) for _, call, *_ in recorder.made}
    assert {pair for pair in reasons if pair[1]} == set()
