"""Every op of torch's counter, run on random shapes.

On meta tensors: what a GPU alone can run has its shapes there too. What cannot even be run so is
compared with the counter's formula of the op, fed the same tensors. Where the two differ, a test
says how and who is right: the module's docstring of `test_flop_counter` lists it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch: Any = pytest.importorskip("torch")
_COUNTER: Any = pytest.importorskip("torch.utils.flop_counter")
pytest.importorskip("torch.nn.attention.varlen")  # it adds its ops to the counter's table
_FLEX: Any = pytest.importorskip("torch._higher_order_ops.flex_attention")

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import bf16
from pyprof.ops.torch.nn.attention import Band
from tests.ops.torch_calls import aten_call, python_call

Draw: TypeAlias = Callable[[Any], Any]
SIZES = st.integers(1, 7)
FEW = settings(max_examples=25, deadline=None)
ATEN, VARLEN = torch.ops.aten, torch.ops.torch_attn


def _meta(*shape: int, dtype: Any = None) -> Any:  # noqa: ANN401 - torch may be absent
    return torch.empty(*shape, device="meta", dtype=dtype or torch.float32)


def _half(*shape: int) -> Any:  # noqa: ANN401 - as above
    return _meta(*shape, dtype=torch.bfloat16)


# --- arguments of random size -------------------------------------------------------------------
def _mm(draw: Draw) -> tuple[Any, ...]:
    m, k, n = draw(SIZES), draw(SIZES), draw(SIZES)
    return _meta(m, k), _meta(k, n)


def _bmm(draw: Draw) -> tuple[Any, ...]:
    batch = draw(SIZES)
    return tuple(_meta(batch, *t.shape) for t in _mm(draw))


def _added(x: Any, y: Any) -> tuple[Any, ...]:  # noqa: ANN401 - as above
    """Return the arguments of a product and what is added to it."""
    return _meta(*(1,) * (len(y.shape) - 2), y.shape[-1]), x, y


def _scaled_mm(draw: Draw) -> tuple[Any, ...]:
    m, k, n = (16 * draw(SIZES) for _ in range(3))  # FP8 kernels want multiples of 16
    x, y = (_meta(rows, k, dtype=torch.float8_e4m3fn) for rows in (m, n))
    return x, y.t(), _meta(1), _meta(1), None, None, torch.bfloat16


def _convolution(draw: Draw) -> tuple[Any, ...]:
    rank, transposed = draw(st.integers(1, 3)), draw(st.booleans())
    channels, filters, kernel = (draw(st.integers(1, 3)) for _ in range(3))
    x = _meta(draw(st.integers(1, 3)), channels, *(draw(st.integers(5, 8)) for _ in range(rank)))
    w = _meta(*((channels, filters) if transposed else (filters, channels)), *(kernel,) * rank)
    sizes = [[draw(st.integers(low, high))] * rank for low, high in ((1, 2), (0, 1), (1, 2))]
    bias = draw(st.sampled_from([None, _meta(filters)]))
    return x, w, bias, *sizes, transposed, [0] * rank, 1


def _cudnn_convolution(draw: Draw) -> tuple[Any, ...]:
    x, w, _, stride, padding, dilation, transposed, *_ = _convolution(draw)
    w = w.transpose(0, 1) if transposed else w
    return x, w, padding, stride, dilation, 1, False, False, True


def _convolution_backward(draw: Draw) -> tuple[Any, ...]:
    x, w, _, *options = _convolution(draw)
    out = ATEN.convolution(x, w, None, *options)
    mask = [draw(st.booleans()) for _ in range(2)]
    return out, x, w, [w.shape[1 if options[3] else 0]], *options, [*mask, True]


def _qkv(draw: Draw, *, value: bool = False) -> tuple[Any, ...]:
    batch, heads, queries, keys, width = (draw(SIZES) for _ in range(5))
    q = _half(batch, heads * draw(st.integers(1, 3)), queries, 8 * width)
    k = _half(batch, heads, keys, 8 * width)
    return q, k, _half(batch, heads, keys, 8 * draw(SIZES)) if value else k


def _efficient(draw: Draw) -> tuple[Any, ...]:
    return *_qkv(draw, value=True), None, True


def _go(q: Any, k: Any, v: Any) -> tuple[Any, ...]:  # noqa: ANN401 - torch may be absent
    """Return grad_out, q, k, v, out and log-sum-exp."""
    out = _half(*q.shape[:-1], v.shape[-1])
    return out, q, k, v, out, _meta(*q.shape[:-1])


def _rng() -> tuple[Any, Any]:
    return _meta(1, dtype=torch.int64), _meta(1, dtype=torch.int64)


def _flash_backward(draw: Draw) -> tuple[Any, ...]:
    q, k, v = _qkv(draw)
    lengths = None, None, q.shape[2], k.shape[2]
    return *_go(q, k, v), *lengths, 0.0, False, *_rng()


def _efficient_backward(draw: Draw) -> tuple[Any, ...]:
    go, q, k, v, out, sums = _go(*_qkv(draw, value=True))
    return go, q, k, v, None, out, sums, *_rng(), 0.0, [True] * 4


def _cudnn_backward(draw: Draw) -> tuple[Any, ...]:
    q, k, v = _qkv(draw)
    lengths = q.shape[2], k.shape[2]
    return *_go(q, k, v), *_rng(), None, None, None, *lengths, 0.0, False


def _sequences(draw: Draw, *lead: int) -> tuple[Any, ...]:
    """Return q, k, v, where sequences start, and their length: all are as long as the longest."""
    count, queries, keys, heads, width = (draw(SIZES) for _ in range(5))
    q = _half(*lead, count * queries, heads * draw(st.integers(1, 3)), 8 * width)
    k = _half(*lead, count * keys, heads, 8 * width)
    starts = _meta(count + 1, dtype=torch.int32)
    return q, k, k, starts, starts, queries, keys


def _packed_backward(draw: Draw) -> tuple[Any, ...]:
    q, k, v, *lengths = _sequences(draw)
    return *_go(q, k, v), *lengths, 0.0, False, *_rng()


def _packed_efficient(draw: Draw) -> tuple[Any, ...]:
    q, k, v, *lengths = _sequences(draw, 1)
    return q, k, v, None, *lengths, 0.0, 0, True


def _packed_efficient_backward(draw: Draw) -> tuple[Any, ...]:
    q, k, v, *lengths = _sequences(draw, 1)
    go, *_, sums = _go(q, k, v)
    return go, q, k, v, None, go, *lengths, sums, 0.0, *_rng(), 0, False


def _varlen_out(draw: Draw) -> tuple[Any, ...]:
    args = _sequences(draw)
    return args[0], *args, False, None, None, True


def _varlen_backward(draw: Draw) -> tuple[Any, ...]:
    q, k, v, *lengths = _sequences(draw)
    return *_go(q, k, v), *lengths, False, _rng()[0]


RUN: dict[Any, Callable[[Draw], tuple[Any, ...]]] = {
    ATEN.mm: _mm,
    ATEN.addmm: lambda draw: _added(*_mm(draw)),
    ATEN.bmm: _bmm,
    ATEN.baddbmm: lambda draw: _added(*_bmm(draw)),
    ATEN._scaled_mm: _scaled_mm,
    ATEN.convolution: _convolution,
    ATEN._convolution: lambda draw: (*_convolution(draw), False, False, True, True),
    ATEN.convolution_backward: _convolution_backward,
    ATEN._scaled_dot_product_flash_attention: lambda draw: (*_qkv(draw), 0.0, False),
    ATEN._scaled_dot_product_efficient_attention: _efficient,
    ATEN._scaled_dot_product_cudnn_attention: _efficient,
    ATEN._scaled_dot_product_flash_attention_backward: _flash_backward,
    ATEN._scaled_dot_product_efficient_attention_backward: _efficient_backward,
    ATEN._scaled_dot_product_cudnn_attention_backward: _cudnn_backward,
    ATEN._flash_attention_forward: lambda draw: (*_sequences(draw), 0.0, False, False),
    ATEN._flash_attention_backward: _packed_backward,
    ATEN._efficient_attention_forward: _packed_efficient,
    ATEN._efficient_attention_backward: _packed_efficient_backward,
    VARLEN._varlen_attn: lambda draw: (*_sequences(draw), False, None, None, True),
    VARLEN._varlen_attn_out: _varlen_out,
    VARLEN._varlen_attn_backward: _varlen_backward,
}

NOT_RUN = {ATEN.cudnn_convolution: _cudnn_convolution, ATEN.convolution_overrideable: _convolution}
"""Neither the CPU nor meta tensors have a kernel of these."""

APART = {
    ATEN._slow_conv2d_forward: "the counter's formula takes another op's arguments, and raises",
    _FLEX.flex_attention: "the counter's mode does not see it run; formula compared below",
    _FLEX.flex_attention_backward: "as above, as the backward of the forward call",
}
"""What has a test of its own, and why."""


def _ours(packet: Any, args: tuple[Any, ...]) -> int | None:  # noqa: ANN401 - torch may be absent
    call = replace(aten_call(packet.default, args, {}), mod=str(packet).partition(".")[0])
    found = ops.cost(call)
    assert found.flops is not None, found.reason
    return found.flops


def _counted(packet: Any, args: tuple[Any, ...]) -> int:  # noqa: ANN401 - as above
    with _COUNTER.FlopCounterMode(display=False) as counter:
        packet(*args)
    return int(counter.get_total_flops())


@pytest.mark.few(7)
@pytest.mark.slow
@pytest.mark.parametrize("packet", RUN, ids=str)
@FEW
@given(data=st.data())
def test_ops_run_under_the_counter_have_its_flops(packet: Any, data: Any) -> None:  # noqa: ANN401 - as above
    args = RUN[packet](data.draw)
    assert _ours(packet, args) == _counted(packet, args)


@pytest.mark.parametrize("packet", NOT_RUN, ids=str)
@FEW
@given(data=st.data())
def test_ops_that_cannot_run_here_have_the_flops_of_the_counters_formula(
    packet: Any,  # noqa: ANN401 - as above
    data: Any,  # noqa: ANN401 - as above
) -> None:
    """The same tensors, and the result of a convolution of these sizes."""
    args = NOT_RUN[packet](data.draw)
    plain = args
    if packet is ATEN.cudnn_convolution:
        x, w, padding, stride, dilation, groups, *_ = args
        plain = (x, w, None, stride, padding, dilation, False, [0] * len(stride), groups)
    out = ATEN.convolution(*plain)
    assert _ours(packet, args) == _COUNTER.flop_registry[packet](*args, out_val=out)


@FEW
@given(data=st.data(), value=st.booleans())
def test_flex_attention_has_the_flops_of_the_counters_formula(data: Any, value: bool) -> None:  # noqa: ANN401, FBT001 - drawn
    """Without a mask; the backward's own op is our forward call's backward."""
    q, k, v = _qkv(data.draw, value=value)
    go, *_, out, sums = _go(q, k, v)
    call = python_call("torch.nn.attention.flex_attention", "flex_attention", q, k, v)
    table = _COUNTER.flop_registry
    assert ops.cost(call).flops == table[_FLEX.flex_attention](q, k, v)
    backward = table[_FLEX.flex_attention_backward](q, k, v, out, sums, go)
    assert ops.cost(call, "bprop").flops == backward


def test_the_counters_whole_table_is_compared() -> None:
    assert set(_COUNTER.flop_registry) == {*RUN, *NOT_RUN, *APART}
    assert len(RUN) + len(NOT_RUN) + len(APART) == len(_COUNTER.flop_registry)


# --- differences: how, and who is right ---------------------------------------------------------
def test_the_counter_fails_on_the_cpus_plain_convolution() -> None:
    """It reads kernel_size where the bias is; our count is that of any convolution."""
    x, w = torch.zeros(2, 4, 8, 8), torch.zeros(6, 4, 3, 3)
    args = (x, w, [3, 3], None, [1, 1], [0, 0])
    with pytest.raises(TypeError, match="transposed"):
        _counted(ATEN._slow_conv2d_forward, args)
    plain = (x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    assert _ours(ATEN._slow_conv2d_forward, args) == _counted(ATEN.convolution, plain)
    go, mask = torch.zeros(2, 6, 6, 6), [True, False, True]
    call = aten_call(
        ATEN._slow_conv2d_backward.output_mask, (go, x, w, [3, 3], [1, 1], [0, 0], mask), {}
    )
    backward = (go, x, w, [6], *plain[3:], mask)
    assert ops.cost(call).flops == _counted(ATEN.convolution_backward, backward)


def test_the_counter_takes_cudnns_benchmark_flag_for_a_transposed_convolution() -> None:
    """The flag is at that position: the window then runs over 8 x 8, not over out's 6 x 6."""
    x, w, out = _meta(2, 4, 8, 8), _meta(6, 4, 3, 3), _meta(2, 6, 6, 6)
    packet = ATEN.cudnn_convolution
    args = (x, w, [0, 0], [1, 1], [1, 1], 1, True, False, True)
    assert _ours(packet, args) == 2 * 2 * 6 * 6 * 6 * 4 * 9
    assert _COUNTER.flop_registry[packet](*args, out_val=out) == 2 * 2 * 8 * 8 * 6 * 4 * 9


@pytest.mark.parametrize(("length", "count"), [(8, 4), (4, 8), (6, 6)])
def test_the_counter_takes_heads_for_sequences_in_the_kernels_own_layout(
    length: int, count: int
) -> None:
    """Flash and efficient kernels take [B, S, H, D]; before torch 2.14 it reads [B, H, S, D]."""
    q = _half(2, length, count, 16)
    for packet, args in (
        (ATEN._flash_attention_forward, (q, q, q, None, None, length, length, 0.0, False, False)),
        (ATEN._efficient_attention_forward, (q, q, q, *(None,) * 5, 0.0, 0)),
    ):
        flops = 2 * 2 * 2 * count * length * length * 16
        assert _ours(packet, args) == flops
        assert _counted(packet, args) in {flops, flops * count // length}


@FEW
@given(data=st.data(), left=st.integers(0, 9), causal=st.booleans())
def test_the_counter_ignores_masks(data: Any, left: int, causal: bool) -> None:  # noqa: ANN401, FBT001 - drawn
    """It counts every score; kernels skip those outside a causal mask or a sliding window."""
    args = (*_sequences(data.draw), 0.0)
    tail = (None, left, -1)
    packet = ATEN._flash_attention_forward
    whole = _counted(packet, (*args, causal, False))
    masked = aten_call(packet.default, (*args, causal, False, *tail), {})
    found = ops.cost(masked).flops
    queries, keys = args[5], args[6]
    seen = Band(left, 0 if causal else None, from_end=True).seen(queries, keys)
    assert found == whole * seen // (2 * queries * keys)


@FEW
@given(
    queries=SIZES,
    keys=SIZES,
    left=st.none() | st.integers(0, 8),
    right=st.none() | st.integers(0, 8),
    from_end=st.booleans(),
)
def test_scores_in_a_band_equal_brute_force(
    queries: int, keys: int, left: int | None, right: int | None, *, from_end: bool
) -> None:
    """A score inside is 1, one on the edge a half, since its square is cut in two."""
    shift = keys - queries if from_end else 0
    twice = 0
    for query in range(queries):
        for key in range(keys):
            away = key - query - shift
            twice += 2
            twice -= 0 if right is None else (away >= right) + (away > right)
            twice -= 0 if left is None else (away <= -left) + (away < -left)
    assert Band(left, right, from_end=from_end).seen(queries, keys) == twice


@pytest.mark.parametrize(
    ("name", "tail"),
    [
        ("_scaled_dot_product_flash_attention_for_cpu", (0.0, False)),
        ("_scaled_dot_product_fused_attention_overrideable", (None, 0.0, False)),
        ("_cudnn_attention_forward", (None, None, None, 8, 8, False, 0.0, False)),
    ],
)
def test_attention_that_the_counter_does_not_know(name: str, tail: tuple[object, ...]) -> None:
    """It counts 0 for other kernels of the op; their work is that of the flash kernel."""
    assert getattr(ATEN, name) not in _COUNTER.flop_registry
    q = bf16(2, 4, 8, 16)
    known = Call("aten", "_scaled_dot_product_flash_attention", (q, q, q, 0.0, False))
    assert ops.cost(Call("aten", name, (q, q, q, *tail))).flops == ops.cost(known).flops  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [1, 2])
def test_attention_in_plain_products_keeps_its_scores(share: int) -> None:
    """Its backward is four products, equal to the counter's; that of a fused kernel is five."""
    q, k = _meta(2, 2 * share, 8, 16).requires_grad_(), _meta(2, 2, 8, 16).requires_grad_()
    args = (q, k, k, None, 0.0, False, None)
    with _COUNTER.FlopCounterMode(display=False) as forward:
        out = ATEN._scaled_dot_product_attention_math(*args, enable_gqa=True)[0]
    with _COUNTER.FlopCounterMode(display=False) as backward:
        out.sum().backward()
    call = python_call("torch", "_scaled_dot_product_attention_math", q, k, k)
    found = ops.cost(call).flops, ops.cost(call, "bprop").flops
    assert found == (forward.get_total_flops(), backward.get_total_flops())
    fused = python_call("torch.nn.functional", "scaled_dot_product_attention", q, k, k)
    assert 4 * (ops.cost(fused, "bprop").flops or 0) == 5 * (found[1] or 0)
