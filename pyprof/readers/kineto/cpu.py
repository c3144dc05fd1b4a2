"""Finds the CPU ops that do work: in a trace without GPU work they are its activities.

Ops on tensors without data do none: FakeTensorMode and the meta device run an op for the shape of
its result alone, in the time that a Python function takes; torch.compile traces a model with such
tensors. A trace has neither the device nor the class of a tensor, so these ops are recognised by
what is around and inside them.

The last ops that gradient checkpointing recomputes may do none either. A backward node asks for a
tensor that the forward pass did not keep, and the forward is run again inside it. As soon as the
last tensor that is needed has been handed over, PyTorch ends that by an exception: inside the op
that handed it over, and when that is one of its inputs, before the op computed anything
(torch.utils.checkpoint.set_checkpoint_early_stop).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.arrays import nearest, texts_by_index
from pyprof.marker.model import DERIVED
from pyprof.readers.kineto.op_texts import OP
from pyprof.readers.kineto.ranges import OPEN

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    import pyarrow as pa

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.readers.kineto.columns import Threads
    from pyprof.readers.kineto.nest import Nested
    from pyprof.readers.kineto.ranges import Columns


_VIEWS = (
    "_conj _fw_primal _indices _make_dual _neg_view _nested_view_from_buffer "
    "_nested_view_from_jagged _reshape_alias _unpack_dual _unsafe_view _values adjoint alias "
    "as_strided atleast_1d atleast_2d atleast_3d "
    "broadcast_tensors broadcast_to ccol_indices chunk col_indices crow_indices detach diagonal "
    "dsplit expand expand_as hsplit imag indices lift lift_fresh mH mT matrix_H meshgrid moveaxis "
    "movedim narrow numpy_T permute ravel real row_indices select slice split "
    "split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unflatten "
    "unfold unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze values view view_as "
    "view_as_complex view_as_real vsplit contiguous flatten reshape resolve_conj resolve_neg to "
    # outside of training the input itself; in training the ops inside drop
    "alpha_dropout dropout feature_alpha_dropout feature_dropout positive type_as"
)
_ALLOCATIONS = (
    "_NoopSaveInputs "  # gradient checkpointing's own, in torch 2.11 and before
    "_efficientzerotensor _empty_affine_quantized _resize_output empty empty_like empty_permuted "
    "empty_quantized empty_strided new_empty new_empty_strided resize resize_as set_"
)
_METADATA = (
    "__contains__ _assert_tensor_metadata _coalesced _debug_has_internal_overlap _dimI _dimV "
    "_fused_sdp_choice _has_compatible_shallow_copy_type _has_same_storage_numel _is_zerotensor "
    "_local_scalar_dense _nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen "
    "_nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_get_values "
    "_nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides "
    "_nnpack_available _nnz "
    "_use_cudnn_ctc_loss _version broadcast_shapes can_cast cudnn_is_acceptable data dense_dim dim "
    "element_size get_device has_torch_function is_autocast_enabled is_coalesced is_complex "
    "is_conj is_contiguous is_distributed is_floating_point is_grad_enabled is_inference is_leaf "
    "is_neg is_non_overlapping_and_dense is_nonzero is_pinned is_same_size is_set_to is_signed "
    "is_strides_like_format item numel output_nr promote_types q_scale q_zero_point qscheme "
    "record_stream requires_grad result_type retain_grad retains_grad set_data size sparse_dim "
    "storage_offset stride sym_is_contiguous sym_numel sym_size sym_storage_offset sym_stride"
)
BOOKKEEPING = frozenset(f"{_VIEWS} {_ALLOCATIONS} {_METADATA}".split())
"""Ops that on a GPU launch nothing, in-place forms included.

If one of them has to copy after all, the copy is an op of its own inside it.
"""

_COPIES = "_to_copy clone copy copy_"
_FILLS = (
    "arange eye fill fill_ full full_like new_full new_ones new_zeros ones ones_like scalar_tensor "
    "zero zero_ zeros zeros_like"
)
MOVES = frozenset(f"{_COPIES} {_FILLS}".split())
"""Ops that copy or fill: an op with nothing else inside does the rest of its work itself."""

_WORKERS = (
    "_addmm_activation _cholesky_solve_helper _embedding_bag _embedding_bag_dense_backward "
    "_embedding_bag_forward_only _embedding_bag_per_sample_weights_backward _fft_c2c _fft_c2r "
    "_fft_r2c _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors "
    "_index_put_impl_ _linalg_eigh _linalg_svd _slow_conv2d_backward _unique _unique2 "
    "binary_cross_entropy binary_cross_entropy_backward bincount cholesky cholesky_inverse "
    "convolution_backward glu_backward histc histogram huber_loss index index_reduce "
    "linalg_cholesky_ex linalg_eig linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq "
    "linalg_lu_solve linalg_qr linalg_vector_norm masked_select mkldnn_rnn_layer "
    "mkldnn_rnn_layer_backward mse_loss multilabel_margin_loss_backward "
    "multilabel_margin_loss_forward multinomial segment_reduce slow_conv_transpose2d "
    "slow_conv_transpose3d smooth_l1_loss std std_mean unique_dim var var_mean "
    "GeneratedBackwardFor_torchvision_deform_conv2d_default torchvision::_deform_conv2d_backward "
    "torchvision::deform_conv2d torchvision::nms"
)
WORKERS = frozenset(_WORKERS.split())
"""Ops whose own kernel does most, though they call other computing ops before or after it."""

_KEEPS_RESULT = (
    "_batch_norm_with_update _cdist_forward _ctc_loss _embedding_bag _linalg_det _linalg_eigh "
    "_linalg_slogdet _linalg_solve_ex _linalg_svd _log_softmax _native_batch_norm_legit "
    "_pdist_forward _safe_softmax _scaled_dot_product_flash_attention_for_cpu _softmax "
    "adaptive_max_pool2d adaptive_max_pool3d amax amin aminmax cholesky cholesky_inverse "
    "cholesky_solve copysign cummax cummin cumprod dist exp exp2 expm1 fractional_max_pool2d "
    "fractional_max_pool3d frexp hypot index_reduce kthvalue ldexp linalg_cholesky_ex linalg_eig "
    "linalg_householder_product linalg_inv_ex linalg_lstsq linalg_lu linalg_lu_factor_ex "
    "linalg_lu_solve linalg_pinv linalg_qr linalg_solve_triangular linalg_vector_norm "
    "log_sigmoid_forward logcumsumexp logsumexp max max_pool2d_with_indices "
    "max_pool3d_with_indices median min mkldnn_rnn_layer mode multilabel_margin_loss_forward "
    "nanmedian native_batch_norm native_dropout native_group_norm native_layer_norm "
    "nll_loss2d_forward nll_loss_forward norm ormqr polar prod reciprocal relu rsqrt "
    "scatter_reduce segment_reduce sgn sigmoid sort special_erfcx special_i0e special_i1 "
    "special_i1e special_log_ndtr special_ndtri sqrt std std_mean tan tanh topk triangular_solve"
)
KEEPS_RESULT = frozenset(_KEEPS_RESULT.split())
"""Ops whose result autograd keeps, in-place forms included: the last one kept was computed."""


_ENGINE = re.compile(
    r"(?:torch::)?autograd::|\w*Backward\d+$|torch(?:::|\.)distributed[\w:.]*\breducer::"
)
"""Names of what autograd and DDP's reducer put around the ops that they call."""


def working(ranges: Columns, nested: Nested, names: Sequence[str]) -> tuple[Mask, Mask]:
    """Find the ops that do work, none inside another, and those that would if tensors had data.

    An op does the work itself if nothing inside it computes: views and nodes of the autograd engine
    do not count, nor do copies and fills that prepare its work, as a matrix product copies its
    bias. An op known to do more than the ops inside it does so, too; any other op only contains
    them. A user's function contains all ops inside it. Durations are ignored: a busy machine must
    not choose other rows. Tracing is not work: it only computes shapes.
    """
    plain = [name.removeprefix("aten::") for name in names]
    real = (ranges.kind == OP) & ~_named(ranges, map(_is_idle, names))
    parent = nearest(nested.op, real)
    computes = real & ~_named(ranges, (name in MOVES for name in plain))
    operators = _named(ranges, ("::" in name or name.startswith(DERIVED) for name in names))
    complete = computes & operators & ~_mark_ancestors(computes, parent)
    works = _named(ranges, (name in WORKERS for name in plain))
    # Layers of functorch nest an op in itself: the innermost one runs.
    works &= ~_mark_ancestors(works, parent)
    doing = (real & ~_mark_ancestors(real, parent)) | complete | works
    replaced, shapes = tracing(ranges, nested, names, real)
    around_is_idle = ~np.append(real, True)[nested.op]
    traced = doing & shapes & ~around_is_idle
    doing &= ~(replaced | shapes)
    return doing & (nearest(parent, doing) < 0), traced & (nearest(parent, traced) < 0)


def _named(ranges: Columns, chosen: Iterable[bool]) -> Mask:
    """Mark the ops whose name is chosen; `chosen` has one entry per name."""
    is_named: Mask = ranges.kind == OP
    is_named[is_named] = np.array([*chosen], dtype=bool)[ranges.name[is_named]]
    return is_named


def _is_idle(name: str) -> bool:
    plain = name.removeprefix("aten::")
    known = not {plain, plain.removesuffix("_")}.isdisjoint(BOOKKEEPING)
    return known or _ENGINE.match(name) is not None


def _mark_ancestors(rows: Mask, parent: IntArray) -> Mask:
    """Mark the rows that contain one of these, at any depth."""
    contains = np.zeros(len(rows), dtype=bool)
    outer = parent[rows]
    while len(outer := np.unique(outer[outer >= 0])):  # as often as ops are deep
        outer = outer[~contains[outer]]
        contains[outer] = True
        outer = parent[outer]
    return contains


def activities(
    ranges: Columns, nested: Nested, names: Sequence[str], threads: Threads
) -> tuple[pa.Table, pa.Table, int]:
    """Return the working ops as activities, each with a call that ties it to its range.

    The last value is the number of ops that only traced.
    """
    works, traced = working(ranges, nested, names)
    rows = np.flatnonzero(works & (nested.end != OPEN))
    corr = np.arange(1, len(rows) + 1)
    name = texts_by_index(ranges.name[rows], names)
    process_and_thread = np.array(threads.ids or [(0, 0)], dtype=np.int64)[ranges.thread[rows]]
    times = {"start": ranges.start[rows], "end": nested.end[rows], "corr": corr, "name": name}
    table = schema.table(
        schema.ACTIVITIES,
        {
            **times,
            "kind": np.full(len(rows), schema.CPU, dtype=np.int8),
            "pid": process_and_thread[:, 0],
            "device": np.zeros(len(rows), dtype=np.int32),
            "stream": process_and_thread[:, 1],
        },
    )
    calls = schema.table(schema.CALLS, {**times, "thread": ranges.thread[rows].astype(np.int32)})
    return table, calls, int(traced.sum())


_DISPATCH = frozenset({"PythonDispatchMode", "PythonSubclass"})
"""Ranges around the Python code by which a mode or a tensor subclass replaces an op."""
_PRIMITIVES = "prims::"
"""Ops called by reference implementations in Python, such as those of the meta device."""
_NEW_EMPTY = (
    "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d _cdist_forward _embedding_bag "
    "_embedding_bag_backward _embedding_bag_forward_only "
    "_embedding_bag_per_sample_weights_backward "
    "_fft_c2c _fft_c2r _fft_r2c _int_mm _linalg_det _linalg_eigh _linalg_slogdet _linalg_svd "
    "_pdist_forward _unsafe_index _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward "
    "_upsample_nearest_exact1d adaptive_max_pool2d adaptive_max_pool2d_backward "
    "adaptive_max_pool3d adaptive_max_pool3d_backward addbmm addmm argmax argmin avg_pool3d "
    "avg_pool3d_backward baddbmm bmm convolution convolution_backward dot embedding "
    "embedding_dense_backward gather grid_sampler_3d index index_select kthvalue "
    "linalg_cholesky_ex linalg_cross linalg_eig linalg_inv_ex linalg_ldl_factor_ex linalg_lu "
    "linalg_lu_factor_ex linalg_solve_triangular linear_backward lu_unpack "
    "masked_scatter_backward max max_pool3d_with_indices max_pool3d_with_indices_backward median "
    "min mm mode mv nanmedian nansum reflection_pad1d reflection_pad1d_backward repeat "
    "repeat_interleave replication_pad1d replication_pad1d_backward replication_pad2d "
    "replication_pad2d_backward scatter scatter_add scatter_reduce take topk upsample_nearest1d "
    "upsample_nearest2d upsample_nearest2d_backward"
)
_ALLOCATING = frozenset(f"aten::{name}" for name in _NEW_EMPTY.split())
"""Ops that call new_empty on the meta device (torch/_meta_registrations.py), and on no other.

Measured with torch 2.13's samples of all its ops, on the CPU and on the meta device.
"""
_UNFILLED = frozenset({"aten::zeros", "aten::ones", "aten::full"})
"""Ops that on the meta device allocate and, having no data to fill, do nothing else."""
_ZEROS = frozenset({"aten::_efficientzerotensor"})
"""The op by which forward-mode AD makes a tensor of zeros without memory."""


def tracing(ranges: Columns, nested: Nested, names: Sequence[str], real: Mask) -> tuple[Mask, Mask]:
    """Find the ops that do no work; `real` are those that may, by their names.

    First those that dispatch to Python, or that are replaced by it: ops inside may work. Then those
    on tensors without data, and all inside them.
    """
    mode = _named(ranges, (name in _DISPATCH for name in names))
    replaced = _mark_parents(mode, nested.op)
    fake = mode.copy()  # FakeTensorMode makes a tensor without memory for each result
    for inner in ("aten::empty_strided", "aten::detach"):
        called = _named(ranges, (name == inner for name in names)) & ~replaced
        fake &= _mark_parents(called, nested.op)
    shapes = nested.compiling | fake | _meta_ops(ranges, nested, names, real)
    return mode | replaced, shapes | (nearest(nested.op, shapes) >= 0)


def _meta_ops(ranges: Columns, nested: Nested, names: Sequence[str], real: Mask) -> Mask:
    """Find ops on the meta device, and the ATen ops around them."""

    def around(inner: str) -> Mask:
        return _mark_parents(_named(ranges, (name == inner for name in names)), nested.op)

    def named(chosen: Container[str]) -> Mask:
        return _named(ranges, (name in chosen for name in names))

    of_aten = _named(ranges, (name.startswith(("aten::", _PRIMITIVES)) for name in names))
    meta = _named(ranges, (name.startswith(_PRIMITIVES) for name in names))
    meta |= named(_ALLOCATING) & around("aten::new_empty")
    meta |= named(_UNFILLED) & around("aten::empty")
    # Only reference implementations call it, which only the meta device uses by itself.
    meta |= around("aten::empty_permuted") & of_aten
    meta &= ~_mark_parents(real, nested.op)
    # Forward-mode AD makes a tangent of zeros without data; the op beside it has a real primal.
    dual = _mark_ancestors(named(_ZEROS), nested.op) & ~_mark_parents(meta, nested.op)
    # A sum with such a tangent copies the other operand, once the meta device has found the shape.
    shape_start = np.full(len(meta) + 1, np.iinfo(np.int64).max)
    shape_start[nested.op[meta]] = ranges.start[meta]
    shape_start[-1] = np.iinfo(np.int64).max  # outside of any op
    copies = named({"aten::_to_copy"}) & (shape_start[nested.op] < ranges.start)
    if copies.any():
        around_copies = np.append(_mark_parents(copies, nested.op), [False])
        meta |= of_aten & ~copies & around_copies[nested.op]
        dual |= _mark_ancestors(copies, nested.op)
    rows = np.flatnonzero(meta)
    while len(rows):  # as often as ops are deep
        outer = nested.op[rows]
        rows = np.unique(outer[outer >= 0])
        rows = rows[of_aten[rows] & ~meta[rows] & ~dual[rows]]
        meta[rows] = True
    return meta


def _mark_parents(rows: Mask, parent: IntArray) -> Mask:
    around = np.zeros(len(rows), dtype=bool)
    outer = parent[rows]
    around[outer[outer >= 0]] = True
    return around


_NODE = re.compile(r"\w+Backward\d+$")
_HOOK = "aten::detach"
"""The op called by the hook that keeps a tensor."""
_RUN = KEEPS_RESULT | BOOKKEEPING
"""Ops that ran before they handed over a result, or have nothing to run."""


def stopped(ranges: Columns, nested: Nested, names: Sequence[str]) -> Int64Array:
    """Find the ops that were left before they ran, and the ops around them in the node."""
    op = nested.op
    node = _named(ranges, (_NODE.match(name) is not None for name in names))
    around = nearest(op, node)
    # A node's own ops have no number: they have no backward pass.
    again = (ranges.kind == OP) & ~node & (around >= 0) & (ranges.seq >= 0) & (ranges.forward == 0)
    hook = _named(ranges, (name == _HOOK for name in names)) & (ranges.seq < 0)
    caller = op[hook]
    caller = caller[caller >= 0]
    hooked = np.unique(around[caller[again[caller]]])
    if not len(hooked):  # nearly always
        return hooked
    rows = np.flatnonzero(again & np.isin(around, hooked))
    rows = rows[np.lexsort((ranges.order[rows], ranges.start[rows], around[rows]))]
    last = rows[np.diff(around[rows], append=-1) != 0]  # of each node
    plain = [name.removeprefix("aten::") for name in names]
    runs = [not {name, name.removesuffix("_")}.isdisjoint(_RUN) for name in plain]
    last = last[~_named(ranges, runs)[last]]
    rows = np.setdiff1d(last, op[(op >= 0) & ~hook])
    levels = [rows]
    while len(rows):  # outward, up to the node
        rows = np.unique(op[rows])
        rows = rows[(rows >= 0) & ~node[rows]]
        levels.append(rows)
    return np.unique(np.concatenate(levels))
