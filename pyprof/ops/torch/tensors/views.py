"""Ops that move nothing: views, metadata, allocations. And the work their backward passes do."""

from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like

FAMILY = "view"

_X = f16(4, 6)

_SHAPES = (
    "view view_as _unsafe_view _reshape_alias unflatten squeeze unsqueeze transpose t permute "
    "swapaxes swapdims movedim moveaxis adjoint mT mH T H alias detach expand expand_as "
    "broadcast_to as_strided select slice narrow split split_with_sizes chunk tensor_split hsplit "
    "vsplit dsplit unbind diagonal unfold ravel view_as_real view_as_complex real imag "
    "resolve_conj resolve_neg numpy values indices unsafe_split unsafe_chunk lift lift_fresh "
    "atleast_1d atleast_2d atleast_3d broadcast_tensors is_same_size meshgrid "
    "unsafe_split_with_sizes matrix_H numpy_T _conj _neg_view _nested_view_from_buffer "
    "_nested_view_from_jagged"
)
_METADATA = (
    "size stride dim numel item is_floating_point is_complex result_type can_cast requires_grad_ "
    "retain_grad data_ptr storage_offset is_contiguous element_size get_device is_nonzero set_ "
    "resize_ resize_as_ _has_compatible_shallow_copy_type data register_hook __len__ __bool__ "
    "__int__ __float__ __index__ __complex__ __contains__ has_torch_function "
    "has_torch_function_unary has_torch_function_variadic is_grad_enabled is_conj is_neg "
    "is_inference is_signed is_distributed is_pinned is_shared is_set_to is_leaf is_coalesced "
    "is_non_overlapping_and_dense is_strides_like_format sym_size sym_stride sym_numel "
    "sym_storage_offset sym_is_contiguous ndimension nelement dim_order storage untyped_storage "
    "storage_type const_data_ptr record_stream retains_grad output_nr _version set_data "
    "share_memory broadcast_shapes sparse_dim dense_dim qscheme q_scale q_zero_point "
    "_nested_get_offsets _nested_get_lengths _nested_get_values _nested_get_ragged_idx "
    "_nested_get_max_seqlen _nested_get_min_seqlen _fused_sdp_choice _debug_has_internal_overlap "
    "_assert_tensor_metadata is_autocast_enabled are_deterministic_algorithms_enabled "
    "promote_types _local_scalar_dense _nested_get_jagged_dummy _nested_tensor_size "
    "_nested_tensor_storage_offsets _nested_tensor_strides"
)
_ALLOCATIONS = (
    "resize resize_as _resize_output _efficientzerotensor empty empty_like empty_strided "
    "new_empty new_empty_strided empty_permuted _empty_affine_quantized empty_quantized"
)
_PURE = (
    "view view_as _unsafe_view _reshape_alias unflatten squeeze unsqueeze transpose t permute "
    "swapaxes swapdims movedim moveaxis adjoint mT mH T H alias ravel view_as_real "
    "view_as_complex lift_fresh reshape reshape_as flatten resolve_conj resolve_neg"
)


# no element is read or written
@op(
    *f"{_SHAPES} {_METADATA} {_ALLOCATIONS}".split(),
    signature="any anything, Value[] rest",
    work=False,
    example=Example((_X, 24), flops=0, bytes=0, mod="Tensor"),
)
# the gradient is a view too
@op(
    *_PURE.split(),
    direction=BPROP,
    signature="any anything, Value[] rest",
    work=False,
    example=Example((_X, 0, 1), flops=0, bytes=0, op="transpose", mod="Tensor"),
)
def view(_: Args) -> Work:
    """Nothing: another view of the same memory, or memory that is not yet written."""
    return Work(0)


# pieces of 24 elements in all, put together: 24 read, 24 written of 2 bytes
@op(
    *("split", "split_with_sizes", "chunk", "tensor_split", "unbind", "unsafe_split"),
    direction=BPROP,
    signature="Tensor input, Value[] rest",
    example=Example((_X, 2), flops=0, bytes=96),
)
def split_backward(a: Args) -> Work:
    """The pieces' gradients are concatenated."""
    x = like(a.tensor("input"))
    return Work(0, (x,), (x,))


# 24 zeros written, some of them by the piece's gradient: at most 24 of 2 bytes
@op(
    *("narrow", "slice", "select", "diagonal", "as_strided"),
    direction=BPROP,
    signature="Tensor input, Value[] rest",
    example=Example((_X, 0, 0, 2), flops=0, bytes=48),
)
def piece_backward(a: Args) -> Work:
    """Zeros of the input's size are written; the piece's own gradient is small beside them."""
    return Work(0, (), (like(a.tensor("input")),))


# (6,) expanded to (4, 6): 24 additions; 24 read, 6 written of 2 bytes
@op(
    *("expand", "expand_as", "broadcast_to"),
    direction=BPROP,
    signature=("Tensor input, Tensor! other", "Tensor input, Size size"),
    example=Example((f16(6), (4, 6)), flops=24, bytes=60, mod="Tensor"),
)
def expand_backward(a: Args) -> Work:
    """The repeated gradient is summed."""
    x, other = a.tensor("input"), a.optional("other")
    if other is not None:
        shape = other.shape
    else:
        asked = a.value("size")
        listed = asked if isinstance(asked, tuple) else ()
        sizes = [item for item in listed if isinstance(item, int)]
        if len(sizes) < len(x.shape):
            raise Unknown("size not recorded")
        old = (1,) * (len(sizes) - len(x.shape)) + x.shape
        shape = tuple(was if size == -1 else size for was, size in zip(old, sizes, strict=True))
    out = fresh(shape, x.dtype)
    return Work(out.numel, (out,), (like(x),))
