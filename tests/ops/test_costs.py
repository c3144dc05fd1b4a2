"""One formula for every spelling: old and new Python-level markers, and ATen's ranges."""

import pytest

from pyprof import marker, ops
from pyprof.marker import Call, Opaque, Tensor, Value
from pyprof.ops.examples import bf16, c64, f32, i32, i64
from tests.known import known

X = f32(35, 20, 200)
W = f32(600, 200)
IMAGE, FILTERS = Tensor((4, 3, 32, 32)), Tensor((8, 3, 3, 3))


def same_cost(*calls: Call, direction: str = "fprop") -> ops.Cost:
    costs = [ops.cost(call, direction) for call in calls]
    assert len({(cost.flops, cost.bytes) for cost in costs}) == 1, costs
    assert costs[0].flops is not None
    return costs[0]


def test_linear_and_the_addmm_that_it_becomes() -> None:
    bias = f32(600)
    rows, turned = f32(700, 200), f32(200, 600)
    for direction in ("fprop", "bprop"):
        same_cost(
            Call("torch.nn.functional", "linear", (X, W, bias)),
            Call("torch.nn.functional", "linear", (X, W), {"bias": bias}),
            Call("torch.nn.functional", "linear", (), {"input": X, "weight": W, "bias": bias}),
            Call("torch._C._nn", "linear", (X, W, bias)),
            Call("aten", "linear", (X, W, bias)),
            Call("aten", "addmm", (bias, rows, turned, 1, 1)),
            direction=direction,
        )


@pytest.mark.parametrize(
    "call",
    [
        Call("Tensor", "__add__", (X, X)),
        Call("Tensor", "__radd__", (X, X)),
        Call("Tensor", "__iadd__", (X, X)),
        Call("Tensor", "add_", (X, X)),
        Call("torch", "add", (X, X), {"alpha": 1}),
        Call("aten", "add", (X, X, 1)),
        Call("aten", "add", (X, X, Opaque())),
        Call("", "add", (X, X, Opaque())),
        Call("aten", "add", (X, X, Opaque(), X)),  # add.out
    ],
)
def test_every_spelling_of_an_addition(call: Call) -> None:
    """Two reads, one write, one FLOP per element."""
    found = ops.cost(call)
    assert (found.flops, found.bytes) == (140000, 3 * 4 * 140000)


def test_add_with_alpha_in_every_position() -> None:
    """Last, named, or in the middle as up to torch 1.4: one multiplication more."""
    found = same_cost(
        Call("torch", "add", (X, X), {"alpha": -20}),
        Call("aten", "add_", (X, X, -20)),
        Call("Tensor", "add_", (X, -20, X)),
    )
    assert found.flops == 2 * 140000


def test_namespaced_functions_have_their_aten_name() -> None:
    """`torch.linalg.inv` is `aten::linalg_inv`; likewise torch.fft and torch.special."""
    square = f32(4, 4)
    for home, name in (("linalg", "inv"), ("linalg", "vector_norm"), ("special", "erf")):
        same_cost(
            Call(f"torch.{home}", name, (square,)),
            Call(f"torch._C._{home}", f"{home}_{name}", (square,)),
            Call("aten", f"{home}_{name}", (square,)),
        )


def test_embedding_takes_its_arguments_in_either_order() -> None:
    ids, table = i64(35, 20), f32(33278, 200)
    found = same_cost(
        Call("torch.nn.functional", "embedding", (ids, table, None, None, 2.0, False, False)),
        Call("torch", "embedding", (table, ids, -1, False, False)),
        Call("aten", "embedding", (table, ids, Opaque(), Opaque(), Opaque())),
    )
    assert found.bytes == 8 * 700 + 2 * 4 * 140000


def test_attention_in_its_layouts() -> None:
    q, turned = bf16(4, 12, 197, 64), bf16(4, 197, 12, 64)
    found = same_cost(
        Call("torch.nn.functional", "scaled_dot_product_attention", (q, q, q)),
        Call("aten", "scaled_dot_product_attention", (q, q, q, None, 0.0, False, None, False)),
        Call("aten", "_scaled_dot_product_flash_attention", (q, q, q, 0.0, False, False, 0.125)),
        Call(
            "aten",
            "_flash_attention_forward",
            (turned, turned, turned, Opaque(), Opaque(), 197, 197, 0.0, False, False, 0.125),
        ),
    )
    assert found.flops == 2 * 2 * 4 * 12 * 197 * 197 * 64


def test_sizes_alone_give_flops_and_no_bytes() -> None:
    """emit_nvtx writes no dtypes: bytes are unknown until the caller supplies one."""
    text = "aten::addmm, seq = 4, op_id = 17, sizes = [[10], [4, 72], [72, 10], [], []]"
    call = known(marker.decode_seq(text).call)
    found = ops.cost(call)
    assert (found.flops, found.bytes, found.reason) == (2 * 4 * 72 * 10, None, "unknown dtype")
    assert ops.cost(call, dtype="float16").bytes == 2 * (10 + 4 * 72 + 72 * 10 + 40)


def test_a_dtype_from_the_caller_leaves_indices_alone() -> None:
    call = Call("aten", "embedding", (Tensor((100, 8)), Tensor((4, 5)), Opaque()))
    assert ops.cost(call, dtype="float16").bytes == 8 * 20 + 2 * 2 * 160


def test_a_convolution_without_its_strides() -> None:
    """emit_nvtx omits strides: unknown, unless the caller knows the output's shape."""
    hidden: tuple[Value, ...] = (Opaque(),) * 6
    call = Call("aten", "convolution", (IMAGE, FILTERS, Opaque(), *hidden))
    assert ops.cost(call).reason == "transposed not recorded"
    found = ops.cost(call, output=(4, 8, 30, 30), dtype="float32")
    assert found.flops == 2 * 4 * 30 * 30 * 8 * 3 * 3 * 3
    assert found.bytes == 4 * (4 * 3 * 32 * 32 + 8 * 27 + 4 * 8 * 30 * 30)


def test_a_convolutions_backward_without_its_strides() -> None:
    """The incoming gradient has the output's shape."""
    grad = Tensor((4, 8, 30, 30))
    call = Call("aten", "convolution_backward", (grad, IMAGE, FILTERS, *(Opaque(),) * 8))
    assert ops.cost(call).flops == 2 * 2 * 4 * 30 * 30 * 8 * 3 * 3 * 3
    assert ops.cost(call, gemm_kernels=1).flops == 2 * 4 * 30 * 30 * 8 * 3 * 3 * 3


@pytest.mark.parametrize("name", ["addmm", "mul", "copy_", "convolution_backward", "cat", "relu"])
def test_a_range_without_shapes(name: str) -> None:
    found = ops.cost(Call("aten", name, whole=False))
    assert (found.flops, found.bytes, found.reason) == (None, None, "shapes not recorded")


def test_gradients_read_the_arguments_of_the_overload_that_was_called() -> None:
    """A dtype or `unbiased` is not a dimension; `max` with two tensors is `maximum`."""
    y = Tensor(X.shape, "float32")
    same_cost(Call("torch", "mean", (X,)), Call("aten", "mean", (X, 6)), direction="bprop")
    same_cost(
        Call("aten", "var", (X, (2,), True, False)),
        Call("aten", "var", (X, (2,), False, True)),
        Call("torch", "var", (X, 2)),
        direction="bprop",
    )
    same_cost(Call("torch", "std", (X, True)), Call("aten", "std", (X, True)), direction="bprop")
    same_cost(
        Call("torch", "max", (X, y)),
        Call("aten", "min", (X, y)),
        Call("torch", "maximum", (X, y)),
        direction="bprop",
    )


@pytest.mark.parametrize(("dtype", "written"), [(None, 4), (5, 2), (Opaque("dtype"), None)])
@pytest.mark.parametrize("op", ["_to_copy", "to"])
def test_a_layout_is_not_a_dtype(op: str, dtype: Value, written: int | None) -> None:
    """A trace has both as numbers; `x.to(device)` keeps the dtype, a hidden one is unknown."""
    rest: tuple[Value, ...] = (dtype, 0, Opaque("Device"), False, False, False, None)
    found = ops.cost(Call("aten", op, (X, *rest[: 7 if op == "to" else 6])))
    assert found.bytes == (None if written is None else 140000 * (4 + written))


def test_a_complex_sum_has_two_additions_per_element() -> None:
    z = c64(4, 6)
    added = ops.cost(Call("torch", "add", (z, z))).flops
    assert ops.cost(Call("torch", "sum", (z,))).flops == added == 48


def test_an_einsum_over_an_empty_dimension_costs_nothing() -> None:
    """A size of 0 wins over the 1 of another operand, which would broadcast."""
    some, none = f32(3, 4, 0), f32(3, 0, 5)
    found = ops.cost(Call("torch", "einsum", ("bij,bjk->bik", some, none)))
    assert (found.flops, found.bytes) == (0, 4 * 3 * 4 * 5)
    assert ops.cost(Call("torch", "einsum", ("bij,bkj->bik", some, some))).flops == 0


def test_inductors_kernels_cost_what_their_names_say() -> None:
    name = "triton_red_fused_add_mean_mul_pow_rsqrt_0"
    big, row = bf16(8, 4096, 2048), bf16(2048)
    found = ops.cost(Call("", name, (big, row, big, 32768, 2048)))
    assert found.params["ops"] == "add+mean+mul+pow+rsqrt"
    assert found.bytes == 2 * (2 * 8 * 4096 * 2048 + 2048)


@pytest.mark.parametrize(
    ("op", "shapes", "flops"),
    [
        ("addmm", ((5,), (4, 6), (6, 5), (4, 5)), 2 * 4 * 6 * 5 + 20),  # a bias first
        ("bmm", ((2, 4, 6), (2, 6, 5), (2, 4, 5)), 2 * 2 * 4 * 6 * 5 + 40),
        ("mm", ((4, 6), (6, 5)), None),  # no result
        ("flex_attention", ((2, 4, 16, 16),) * 4, None),
    ],
)
def test_a_template_kernels_product_follows_from_its_arguments(
    op: str, shapes: tuple[tuple[int, ...], ...], flops: int | None
) -> None:
    """Two that can be multiplied, and one as large as the result."""
    tensors = tuple(Tensor(shape, "bfloat16") for shape in shapes)
    found = ops.cost(Call("", f"triton_tem_fused_{op}_relu_0", tensors))
    assert found.flops == flops
    assert found.bytes == sum(2 * tensor.numel for tensor in tensors)


def test_packed_sequences_of_unequal_length_are_unknown_but_for_their_bytes() -> None:
    """Their lengths are data; the longest for all would be too much."""
    total, starts = bf16(300, 4, 64), i32(4)
    args = (total, total, total, starts, starts, 128, 128, 0.0, False)
    found = ops.cost(Call("aten", "_flash_attention_forward", args))
    assert found.flops is None
    assert found.reason == "lengths of packed sequences depend on the data"
    assert found.bytes == 4 * 2 * 300 * 4 * 64


@pytest.mark.parametrize("at", [-1, 0, 5])
def test_attention_over_a_cache_of_unknown_fill_has_no_cost(at: int) -> None:
    """A tensor holds the cache's fill level; traces that write `is_causal` omit None."""
    q = bf16(2, 8, 4, 64)
    tail: list[Value] = [0.125, *(Opaque(),) * 4]
    head = (q, q, q, None, None, 8, 8, 0.0, False, False)
    whole = ops.cost(Call("aten", "_flash_attention_forward", (*head, *tail))).flops
    assert whole == 2 * 2 * 2 * 4 * 8 * 8 * 64
    tail[1:4] = [at, -1, i32(2)]
    found = ops.cost(Call("aten", "_flash_attention_forward", (*head, *tail)))
    assert found.reason == "lengths of cached keys depend on the data"


def test_causal_masks_are_aligned_as_in_their_kernel() -> None:
    """One query against 100 keys: flash kernels see all of them, `is_causal` one."""
    q, k = bf16(1, 1, 4, 64), bf16(1, 100, 4, 64)
    kernel = ops.cost(Call("flash_attn", "flash_attn_func", (q, k, k, 0.0, 0.125, True)))
    assert kernel.flops == 2 * (2 * 100 - 1) * 4 * 64  # the last key half
    turned = (bf16(1, 4, 1, 64), *(bf16(1, 4, 100, 64),) * 2)
    name = "scaled_dot_product_attention"
    found = ops.cost(Call("torch.nn.functional", name, turned, {"is_causal": True}))
    assert found.flops == 2 * 4 * 64


@pytest.mark.parametrize("direction", ["fprop", "bprop"])
def test_an_antialiased_resize_has_bytes_only(direction: str) -> None:
    """The neighbours per element grow with the scale; a plain resize has four."""
    options: dict[str, Value] = {"size": (8, 8), "mode": "bilinear", "antialias": True}
    found = ops.cost(Call("torch.nn.functional", "interpolate", (IMAGE,), options), direction)
    assert (found.flops, found.reason) == (None, "unknown dtype")
    known = ops.cost(
        Call("torch.nn.functional", "interpolate", (IMAGE,), options), direction, dtype="float32"
    )
    assert (known.bytes, known.reason) == (4 * 12 * (32 * 32 + 64), "antialias not modelled")


UNARY = {"clone": 8, "sum": 8, "softmax": 8, "fill_": 4, "dropout": 9, "sort": 16}
"""Ops, and the bytes of each on one float32."""


def _typed(op: str, sizes: list[list[int]], dtypes: list[str]) -> Call:
    text = f"aten::{op}, sizes = {sizes}, dtypes = {dtypes}, inputs = {['', '']}"
    return known(marker.decode_seq(text).call)


@pytest.mark.parametrize("op", [*UNARY, "mul"])
def test_a_nested_tensor_has_unknown_sizes(op: str) -> None:
    """torch.profiler writes [] for its sizes, and no type; scalars have one."""
    cost = ops.cost(_typed(op, [[], []], ["", "float32"]), dtype="float32")
    assert (cost.flops, cost.bytes) == (None, None)
    assert cost.reason


_X, _Y = [6, 3], [5]


@pytest.mark.parametrize(
    ("op", "sizes", "moved"),
    [
        ("cat", [_X, _X, _X, []], 3 * 18 * 2 * 4),
        ("hstack", [_X, _X], 2 * 18 * 2 * 4),
        ("_foreach_zero_", [_X, _Y], 23 * 4),
        ("_foreach_zero_", [_X, [], _Y], None),
        ("_foreach_max", [_X, _Y], (23 + 2) * 4),
        ("_foreach_norm", [_X, _Y, [], []], (23 + 2) * 4),
        ("index", [[9, 9], _Y, _Y], (5 + 5 + 5 + 5) * 4),
        ("index", [[9, 9, 9], _Y, [], _Y], None),
        ("index_put_", [[9, 9], _Y, _Y, _Y, []], (5 + 5 + 5 + 5) * 4),
        ("_index_put_impl_", [[9, 9], _Y, _Y, _Y, [], []], (5 + 5 + 5 + 5) * 4),
        ("_fused_adamw_", [_X, _Y] * 4 + 13 * [[]], None),
    ],
)
def test_lists_that_emit_nvtx_flattens(op: str, sizes: list[list[int]], moved: int | None) -> None:
    """Each tensor of a list stands where an argument would; two lists in a row cannot be parted.

    A list with one of no dimensions, or None, in between is unknown.
    """
    call = known(marker.decode_seq(f"aten::{op}, sizes = {sizes}").call)
    assert ops.cost(call, dtype="float32").bytes == moved


@pytest.mark.parametrize(("op", "moved"), UNARY.items())
def test_empty_sizes_of_emit_nvtx_are_a_tensor_without_dimensions(op: str, moved: int) -> None:
    call = known(marker.decode_seq(f"aten::{op}, sizes = [[], []]").call)
    assert ops.cost(call, dtype="float32").bytes == moved


def test_a_number_without_a_type_in_old_traces_is_a_number() -> None:
    assert ops.cost(_typed("clamp_min_", [[8, 8], []], ["float32", ""])).bytes == 2 * 4 * 64
