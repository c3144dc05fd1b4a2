"""Communication of serving libraries, and of symmetric memory: vLLM's, SGLang's and aiter's ops.

No FLOPs but those of a product that is fused with it; bytes and `params` as in `collectives`.
"""

from pyprof.ops.examples import Example, f32
from pyprof.ops.libraries.fused_norms import rms_norm
from pyprof.ops.registry import op
from pyprof.ops.torch.collectives import all_reduce, gathered, scattered
from pyprof.ops.work import Args, Work

FAMILY = "comm"

_X, _ALL = f32(4, 6), f32(16, 6)


# 24 read and 24 written of 4 bytes
op(
    *("symm_mem::multimem_all_reduce_", "sglang::inplace_all_reduce"),
    *("sglang::outplace_all_reduce", "vllm::inplace_all_reduce", "vllm::outplace_all_reduce"),
    *("sglang::all_reduce", "vllm::all_reduce", "symm_mem::multimem_one_shot_all_reduce"),
    *("symm_mem::one_shot_all_reduce", "symm_mem::two_shot_all_reduce_"),
    *("symm_mem::one_shot_all_reduce_out", "symm_mem::multimem_one_shot_all_reduce_out"),
    *("_c10d_functional::all_reduce", "_c10d_functional::all_reduce_"),
    *("vllm::all_reduce_symmetric_with_copy", "aiter::all_reduce_"),
    signature="Tensor tensors, any op, any group",
    example=Example((_X, "sum", "0"), flops=0, bytes=192),
)(all_reduce)
op(
    *("_C_custom_ar::all_reduce", "_C_custom_ar::qr_all_reduce", "sgl_kernel::all_reduce"),
    *("_C_custom_ar::all_reduce_reg", "_C_custom_ar::all_reduce_unreg"),
    *("sgl_kernel::mscclpp_allreduce", "sgl_kernel::all_reduce_reg"),
    "sgl_kernel::all_reduce_unreg",
    signature="any handle, Tensor tensors, Tensor out",
    example=Example((140, _X, _X, 0, 0), flops=0, bytes=192),
)(all_reduce)
op(
    *("sgl_kernel::qr_all_reduce", "aiter::qr_all_reduce", "aiter::all_reduce"),
    # aiter's dispatcher puts a tensor before the arguments of ops that do not start with one;
    # SGLang's has a profile after the handle
    signature="any handle, any profile, Tensor! tensors, Tensor out",
    example=Example((140, 1, _X, _X, False), flops=0, bytes=192),
)(all_reduce)
op(
    *("symm_mem::one_shot_all_reduce_copy", "symm_mem::one_shot_all_reduce_copy_out"),
    signature="Tensor buffer, Tensor tensors",
    example=Example((_X, _X, "sum", "0"), flops=0, bytes=192),
)(all_reduce)


# 24 read, four times as many written of 4 bytes
op(
    *("vllm::all_gather", "vllm::all_gatherv"),
    signature="Tensor input, int dim, int world_size",
    example=Example((_X, 0, 4, "tp"), flops=0, bytes=480),
)(gathered)
op(
    "_c10d_functional::all_gather_into_tensor",
    signature="Tensor input, int group_size",
    example=Example((_X, 4, "0"), flops=0, bytes=480),
)(gathered)


# 96 read, a quarter written of 4 bytes
op(
    "vllm::reduce_scatter",
    signature="Tensor input, int dim, int world_size",
    example=Example((_ALL, 0, 4, "tp"), flops=0, bytes=480),
)(scattered)
op(
    "_c10d_functional::reduce_scatter_tensor",
    signature="Tensor input, any op, int group_size",
    example=Example((_ALL, "sum", 4, "0"), flops=0, bytes=480),
)(scattered)


# 24 read, 96 written of 4 bytes
@op(
    "symm_mem::multimem_all_gather_out",
    signature="Tensor input, any group, Tensor out",
    example=Example((_X, "0", _ALL), flops=0, bytes=480),
)
@op(
    *("sglang::reg_all_gather_into_tensor", "_C_custom_ar::all_gather"),
    signature="Tensor out, Tensor input",
    example=Example((_ALL, _X, "tp"), flops=0, bytes=480),
)
@op(
    *("_C_custom_ar::custom_all_gather", "_C_custom_ar::mnnvl_lamport_all_gather"),
    *("_C_custom_ar::custom_reduce_scatter", "_C_custom_ar::mnnvl_lamport_reduce_scatter"),
    signature="any handle, Tensor input, Tensor out",
    example=Example((140, _X, _ALL, 0, 0), flops=0, bytes=480),
)
# 96 read, 24 written of 4 bytes
@op(
    "sglang::reg_reduce_scatter_tensor",
    signature="Tensor out, Tensor input",
    example=Example((_X, _ALL, "tp"), flops=0, bytes=480),
)
def gather_out(a: Args) -> Work:
    """Every rank ends with the pieces of all, or with its piece of the sum."""
    return Work(0, (a.tensor("input"),), (a.tensor("out"),))


# a sum over all ranks, which is not counted, then 24 added to the residual's 24 and normed:
# 24 * (1 + 4); both and a scale of 6 of 4 bytes read, 24 and 24 written
op(
    "vllm::flashinfer_trtllm_fused_allreduce_norm",
    *("sglang::flashinfer_allreduce_residual_rmsnorm", "vllm::rocm_aiter_fused_allreduce_rmsnorm"),
    family=FAMILY,
    signature="Tensor input, Tensor residual, Tensor weight",
    example=Example((_X, _X, f32(6)), flops=120, bytes=408),
)(rms_norm)
