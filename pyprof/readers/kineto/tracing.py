"""Finds ops that compute nothing: on tensors without data, and while torch.compile traces.

FakeTensorMode and the meta device run an op for the shape of its result alone, in the time that a
Python function takes; torch.compile traces a model with such tensors. A trace tells neither the
device nor the class of a tensor, so these ops are recognised by what is around and inside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.readers.kineto.nest import ops_named, within

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.kineto.nest import Nested
    from pyprof.readers.kineto.ranges import Columns

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


class Tracing(NamedTuple):
    """Masks of ops that do no work themselves; one entry per row."""

    replaced: Mask
    """Dispatch to Python, and ops replaced by it: ops inside may work."""
    shapes: Mask
    """Ops on tensors without data, and all inside of them."""


def tracing(ranges: Columns, nested: Nested, names: Sequence[str], real: Mask) -> Tracing:
    """Find the ops that do no work; `real` are those whose names say that they may."""
    mode = ops_named(ranges, [name in _DISPATCH for name in names])
    replaced = _around(mode, nested.op)
    fake = mode.copy()  # FakeTensorMode makes a tensor without memory for each result
    for inner in ("aten::empty_strided", "aten::detach"):
        called = ops_named(ranges, [name == inner for name in names]) & ~replaced
        fake &= _around(called, nested.op)
    shapes = nested.compiling | fake | _meta_ops(ranges, nested, names, real)
    return Tracing(mode | replaced, shapes | within(shapes, nested.op))


def _meta_ops(ranges: Columns, nested: Nested, names: Sequence[str], real: Mask) -> Mask:
    """Find ops on the meta device, and the ATen ops around them."""

    def around(inner: str) -> Mask:
        return _around(ops_named(ranges, [name == inner for name in names]), nested.op)

    def named(chosen: Container[str]) -> Mask:
        return ops_named(ranges, [name in chosen for name in names])

    of_aten = ops_named(ranges, [name.startswith(("aten::", _PRIMITIVES)) for name in names])
    meta = ops_named(ranges, [name.startswith(_PRIMITIVES) for name in names])
    meta |= named(_ALLOCATING) & around("aten::new_empty")
    meta |= named(_UNFILLED) & around("aten::empty")
    # Only reference implementations call it, which only the meta device uses by itself.
    meta |= around("aten::empty_permuted") & of_aten
    meta &= ~_around(real, nested.op)
    rows = np.flatnonzero(meta)
    while len(rows):  # as often as ops are deep
        outer = nested.op[rows]
        rows = np.unique(outer[outer >= 0])
        rows = rows[of_aten[rows] & ~meta[rows]]
        meta[rows] = True
    return meta


def _around(rows: Mask, parent: Int64Array) -> Mask:
    around = np.zeros(len(rows), dtype=bool)
    outer = parent[rows]
    around[outer[outer >= 0]] = True
    return around
