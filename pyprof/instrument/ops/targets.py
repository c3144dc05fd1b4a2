"""What is wrapped: all that torch lists as overridable, with additions and exclusions.

torch lists the functions that a tensor subclass may override: its ops and some more. Added are
functions that the list leaves out because they take no tensor (factories), in-place variants, and
private families that launch work (optimizers' multi-tensor kernels, scaled and grouped matrix
products).
"""

from __future__ import annotations

import contextlib
import inspect
import re
from importlib import import_module
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.distributed
import torch.nn.functional
import torch.nn.utils
from torch.overrides import get_overridable_functions

from pyprof.instrument.ops.process_groups import FUNCTIONAL_HOME, HOME, NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyprof.instrument.ops.op import Overridable


class PatchTarget(NamedTuple):
    """An attribute to replace."""

    original: Callable[..., object]
    home: object
    name: str
    mod: str
    """Its home's name in markers."""
    overridable: Overridable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMESPACES: tuple[tuple[object, str], ...] = (
    (torch.nn.functional, "torch.nn.functional"),
    (torch, "torch"),
    (torch.functional, "torch"),
    (torch.linalg, "torch.linalg"),
    (torch.fft, "torch.fft"),
    (torch.special, "torch.special"),
    (torch.sparse, "torch.sparse"),
    (torch.Tensor, "Tensor"),
)
"""Namespaces of ops, and their names in markers. An object with several homes is named by the
first: `F.conv2d` is `torch.conv2d`."""

_NN = torch._C._nn  # noqa: SLF001 - as torch names it in its own comparisons
"""Where `torch.nn.functional` has its builtins from."""

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)

_FACTORIES = _words("""
    arange as_tensor asarray bartlett_window blackman_window eye fft_fftfreq fft_rfftfreq
    fftfreq full hamming_window hann_window kaiser_window ones rand randint randn randperm
    range scalar_tensor sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
    sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor tril_indices triu_indices
    zeros
    """)
"""Fill, copy or sample; torch's list leaves them out, as they take tensors only in place of numbers
and data: then modes may override them, but not the tensors."""

_UNLISTED = _FACTORIES | _words("""
    empty_like fill from_numpy linspace logspace normal rand_like randint_like randn_like vander
    """)
"""All functions that torch's list leaves out."""

_ADDED = {
    torch.Tensor: _words("""
        new_full new_ones new_tensor new_zeros to_padded_tensor to_sparse_bsc to_sparse_bsr
        to_sparse_coo to_sparse_csc to_sparse_csr
        """),
    torch.nn.functional: _words("""
        grouped_mm hardsigmoid hardswish scaled_grouped_mm scaled_mm sigmoid tanh upsample
        """),
    torch.sparse: _words("addmm mm sampled_addmm softmax log_softmax sum spsolve"),
}
"""By home: ops that torch's list lacks."""

_HIDDEN = re.compile(
    r"_foreach_\w+|_fused_(?:adam|adamw|adagrad|sgd|rms_norm|dropout)\w*|_amp_\w+|_scaled_mm\w*"
    r"|_scaled_grouped_mm\w*|_grouped_mm|_int_mm|_weight_int\dpack_mm\w*|_mixed_dtypes_linear"
    r"|_addmm_activation|_weight_norm|_native_multi_head_attention|_transformer_encoder_layer_fwd"
)
"""Names of ops that torch does not publish."""

_OPERATORS = re.compile(
    r"__(?:[ri]?(?:add|sub|mul|truediv|div|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)"
    r"|eq|ne|lt|le|gt|ge|neg|pos|abs|invert|getitem|setitem)__"
)
"""Dunders that are ops. Python or torch look up all others by type: never wrapped."""

_NO_WORK = _words("""
    is_complex is_conj is_distributed is_floating_point is_inference is_neg is_same_size
    is_signed is_coalesced is_contiguous is_pinned is_set_to is_shared get_device numel
    nelement dim ndimension size stride storage_offset element_size dense_dim sparse_dim
    dim_order data_ptr const_data_ptr storage storage_type untyped_storage qscheme q_scale
    q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points indices
    values crow_indices col_indices ccol_indices row_indices broadcast_shapes result_type
    autocast sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum backward
    register_hook register_post_accumulate_grad_hook retain_grad requires_grad_
    record_stream share_memory_ module_load apply_ map_ map2_ detach detach_ view view_as
    view_copy_ alias t t_ adjoint transpose transpose_ permute squeeze squeeze_ unsqueeze
    unsqueeze_ swapaxes swapaxes_ swapdims swapdims_ moveaxis movedim unflatten view_as_real
    view_as_complex real imag conj resolve_conj_ as_strided as_strided_ set_ resize_as
    resize resize_ resize_as_ atleast_1d atleast_2d atleast_3d has_torch_function
    handle_torch_function boolean_dispatch assert_int_or_pair
    """)
"""Launch nothing, forward or backward: queries and views.

Also `backward`, whose nodes have ranges of their own, and functions that call Python per element.
"""

_UTILITIES = _words("""
    clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm
    parameters_to_vector vector_to_parameters
    """)
"""Functions of torch.nn.utils on all parameters or gradients."""


def find_targets() -> Iterator[PatchTarget]:
    """Yield every attribute of torch to be wrapped, in the order of naming."""
    listed = {id(f) for functions in get_overridable_functions().values() for f in functions}
    for home, mod in _NAMESPACES:
        for name in sorted(dir(home), key=lambda name: name.startswith("_")):  # `abs` first
            value = inspect.getattr_static(home, name, None)
            is_listed = id(value) in listed
            if isinstance(value, _FUNCTIONS) and _is_op(home, name, is_listed=is_listed):
                # torch's list lacks most in-place and hidden builtins, which dispatch, too
                dispatches = is_listed or not isinstance(value, FunctionType)
                overridable: Overridable = "by modes" if name in _FACTORIES else "by arguments"
                if not dispatches or name == "from_numpy":
                    overridable = "never"
                target = PatchTarget(value, home, name, mod, overridable)
                yield target
                if vars(_NN).get(name) is value:  # nested tensors compare functions with it
                    yield target._replace(home=_NN)
    if torch.distributed.is_available():
        core = torch.distributed.distributed_c10d
        yield from _find_listed(NAMES[HOME], HOME, (torch.distributed, core))
        with contextlib.suppress(ImportError):  # not public
            functional = import_module(FUNCTIONAL_HOME)
            yield from _find_listed(NAMES[FUNCTIONAL_HOME], FUNCTIONAL_HOME, (functional,))
    utils = torch.nn.utils
    homes = (utils, utils.clip_grad, utils.convert_parameters)
    yield from _find_listed(_UTILITIES, "torch.nn.utils", homes)


def _is_op(home: object, name: str, *, is_listed: bool) -> bool:
    if name in _NO_WORK:
        return False
    if name.startswith("__"):
        return home is torch.Tensor and _OPERATORS.fullmatch(name) is not None
    if name.startswith("_"):
        return home is torch and _HIDDEN.fullmatch(name) is not None
    if is_listed or name in _ADDED.get(home, _UNLISTED):
        return True
    plain = name.removesuffix("_")  # of an op in place
    return plain != name and hasattr(home, plain) and plain not in _NO_WORK


def _find_listed(
    names: frozenset[str], mod: str, homes: tuple[ModuleType, ...]
) -> Iterator[PatchTarget]:
    for home in homes:
        for name in sorted(names):
            value = getattr(home, name, None)
            if isinstance(value, FunctionType):
                yield PatchTarget(value, home, name, mod, "never")
