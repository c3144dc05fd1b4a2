"""Kernels of Inductor: what they read follows from their arguments."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Value
from pyprof.ops.examples import bf16, f32, i64
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("inductor")

_WHOLE, _PART = bf16(64, 1024), bf16(64, 256)
_IDS = i64(16)
_ROWS = bf16(16, 1024)


@pytest.mark.parametrize(
    "name",
    [
        "triton_poi_fused_clone_0",
        "triton_poi_fused__to_copy_slice_12",
        "triton_poi_fused_constant_pad_nd_6",
        "triton_poi_fused_neg_slice_3",
        "triton_poi_fused_silu_1",
    ],
)
def test_a_copy_of_a_slice_reads_the_slice(name: str) -> None:
    call = Call("", name, (_WHOLE, _PART, _PART.numel))
    assert ops.cost(call).bytes == 2 * 2 * _PART.numel
    two_dimensions = Call("", name, (_WHOLE, _PART, 64, 256))
    assert ops.cost(two_dimensions).bytes == 2 * 2 * _PART.numel


def test_warps_and_stages_are_not_sizes() -> None:
    """torch.profiler writes them next to the arguments."""
    said: dict[str, Value] = {"num_warps": 8, "num_stages": 2, "kernel_hash": "c", "grid": "(1,)"}
    args = (_WHOLE, _PART, _PART.numel)
    for name in ("triton_poi_fused_clone_0", "triton_poi_fused_mul_silu_0", "triton_poi_fused_0"):
        assert ops.cost(Call("triton", name, args, said)) == ops.cost(Call("triton", name, args))


@pytest.mark.parametrize(
    ("name", "rows", "sizes"),
    [
        ("triton_poi_fused_embedding_0", 2, (_ROWS.numel,)),  # read and written
        # as a model's first kernel, which looks tokens up and adds
        ("triton_poi_fused_add_embedding_0", 3, (_ROWS.numel,)),
        ("triton_per_fused_add_embedding_native_layer_norm_0", 3, (16, 1024)),
        ("triton_red_fused__to_copy_embedding_mean_mul_pow_rsqrt_0", 3, (16, 1024)),
        ("triton_poi_fused_index_mul_2", 3, (_ROWS.numel,)),
        ("triton_poi_fused_add_embedding_0", None, ()),  # as old traces have it
    ],
)
def test_a_lookup_reads_rows_and_not_the_table(
    name: str, rows: int | None, sizes: tuple[int, ...]
) -> None:
    """Indices are fewer than the result, and each is read once."""
    table = bf16(50257, 1024)
    found = ops.cost(Call("", name, (_IDS, table, *(_ROWS,) * ((rows or 2) - 1), *sizes)))
    assert found.bytes == (rows and 8 * 16 + rows * 2 * _ROWS.numel)
    assert ("how much of its tables it reads" in found.reason) == (rows is None)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("triton_poi_fused_mul_silu_2", (_PART.numel,)),  # may read both halves, as SwiGLU does
        ("triton_poi_fused_max_pool2d_with_indices_1", (_PART.numel,)),  # reads windows
        ("triton_red_fused_clone_mean_0", (64, 256)),
        ("triton_poi_fused_clone_0", ()),  # as old traces have it
        ("triton_poi_fused_clone_0", (0,)),
        ("triton_poi_fused_clone_0", (64, _PART.numel)),  # 64: the size of a dynamic shape
        ("cpp_fused_clone_0", (64,)),
    ],
)
def test_arguments_that_may_be_read_partly_count_as_whole(
    name: str, sizes: tuple[int, ...]
) -> None:
    """If neither name nor sizes say how much is read."""
    found = ops.cost(Call("", name, (_WHOLE, _PART, *sizes)))
    assert found.bytes == 2 * (_WHOLE.numel + _PART.numel)


def test_flops_follow_from_the_size_of_the_result() -> None:
    """The largest argument may be larger than the iteration space."""
    name = "triton_poi_fused_mul_silu_2"
    each = ops.cost(Call("", name, (f32(1), 1))).flops
    assert each
    assert ops.cost(Call("", name, (_WHOLE, _PART, _PART.numel))).flops == each * _PART.numel
    assert ops.cost(Call("", name, (_WHOLE, _PART))).flops == each * _WHOLE.numel


def test_a_root_in_a_kernel_that_reduces_is_that_of_a_row() -> None:
    """Else an RMS norm would be bound by arithmetic on an A100."""
    args = (_WHOLE, _WHOLE, 64, 1024)
    norm, square = (
        ops.cost(Call("", f"triton_red_fused_mean_mul_pow{root}_0", args)).flops
        for root in ("_rsqrt", "")
    )
    assert norm == square


@pytest.mark.parametrize(("name", "each"), [("mm", 2), ("add_mm", 2), ("addmm_sum", 1)])
def test_a_product_with_a_vector_is_a_sum_of_products(name: str, each: int) -> None:
    """As in decoding one token; a bias of `addmm` may be added to the product of a library."""
    args = (bf16(1, 64), bf16(64, 1024), bf16(1, 1024), 1024, 64)
    assert ops.cost(Call("", f"triton_red_fused_{name}_0", args)).flops == each * 64 * 1024


def test_a_kernel_without_op_names_has_no_flops() -> None:
    """It reads at most the size of its result from each argument; else bytes are unknown."""
    name = "triton_poi_fused_0"
    table = bf16(50257, 1024)
    found = ops.cost(Call("", name, (_IDS, table, _ROWS, _ROWS.numel)))
    assert (found.flops, found.bytes) == (None, 8 * 16 + 2 * 2 * _ROWS.numel)
    assert found.reason == "the kernel's name contains none of its fused ops"
    unsized = ops.cost(Call("", name, (_IDS, table, _ROWS)))
    assert (unsized.flops, unsized.bytes, unsized.reason) == (None, None, found.reason)


def test_lists_of_tensors_are_moved_once_each() -> None:
    """Which ones are results is not recorded, so FLOPs are unknown."""
    found = ops.cost(Call("", "triton_for_fused__foreach_add_0", (_PART,) * 6))
    assert (found.flops, found.bytes) == (None, 6 * 2 * _PART.numel)
    assert found.reason == "it is not recorded which of its tensors are results"


@pytest.mark.parametrize(
    "kernel", ["graph_0_cpp_fused_flex", "cpp_fused_ones_flex", "triton_tem_fused_flex"]
)
def test_the_flops_of_flex_attention_are_unknown(kernel: str) -> None:
    """A mask that no argument shows decides what is computed."""
    call = Call("", f"{kernel}_attention_0", (f32(2, 4, 64, 32),) * 4)
    assert ops.cost(call).flops is None


def test_a_kernel_of_the_users_own_moves_its_arguments() -> None:
    """Inductor names its backend; a namespace with that name is something else."""
    found = ops.cost(Call("triton", "rotate_kernel_0", (_WHOLE, _PART, 64)))
    assert (found.flops, found.bytes) == (None, 2 * (_WHOLE.numel + _PART.numel))
    assert found.reason.startswith("a Triton kernel of yours")
    assert ops.find(Call("mine", "rotate_kernel_0", (_WHOLE,))) is None
