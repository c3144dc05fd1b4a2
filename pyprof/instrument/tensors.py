"""What a marker says of a tensor: shape, dtype, how it lies in memory, what kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


def describe_tensor(
    shape: Sequence[int], dtype: torch.dtype, stride: tuple[int, ...] | None = None, name: str = ""
) -> str:
    """Describe a tensor by what is known of it; `name` is its class, where that is not torch's."""
    if not all(type(size) is int for size in shape):  # symbolic: asking would fix its value
        return f", 'type': 'tensor', 'dtype': {dtype_name(dtype)!r}" + _class(name)
    text = f", 'type': 'tensor', 'shape': {tuple(shape)}, 'dtype': {dtype_name(dtype)!r}"
    if stride is not None:
        text += f", 'stride': {stride}, 'layout': {layout_name(shape, stride)!r}"
    return text + _class(name)


def _class(name: str) -> str:
    return f", 'class': {name!r}" if name else ""


def describe_other_tensor(value: torch.Tensor) -> str:
    """Describe a tensor that is not a plain one, by what it is."""
    name, stored = type(value).__name__, ""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - else its own code would run
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            name = "NestedTensor" if value.is_nested else str(value.layout).removeprefix("torch.")
            stored = _stored(value)
        try:
            return describe_tensor(value.shape, value.dtype, name=name) + stored
        except (RuntimeError, TypeError, NotImplementedError):
            return f", 'type': 'tensor'{_class(name)}"


_MEMBERS = {
    torch.sparse_coo: ("_values", "_indices"),
    torch.sparse_csr: ("values", "crow_indices", "col_indices"),
    torch.sparse_bsr: ("values", "crow_indices", "col_indices"),
    torch.sparse_csc: ("values", "ccol_indices", "row_indices"),
    torch.sparse_bsc: ("values", "ccol_indices", "row_indices"),
}
"""What a sparse tensor is made of, by layout: first the numbers that it stores."""


def _stored(value: torch.Tensor) -> str:
    """Say how much a sparse tensor stores. Its members are dense, so the host knows their sizes."""
    names = _MEMBERS.get(value.layout, ())
    try:
        with torch.no_grad():  # else the views would be nodes of a graph
            # of the base class: those of torch.Tensor may be wrapped by us or by others
            members = [getattr(torch._C.TensorBase, name)(value) for name in names]  # noqa: SLF001
        sizes = [(member.numel(), member.element_size()) for member in members]
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return ""
    if not sizes or not all(type(count) is int for count, _ in sizes):
        return ""
    total = sum(count * size for count, size in sizes)
    return f", 'nnz': {sizes[0][0]}, 'nbytes': {total}"


def dtype_name(dtype: torch.dtype) -> str:
    """Give torch's name of a dtype without `torch.`."""
    return str(dtype).removeprefix("torch.")


def layout_name(shape: Sequence[int], stride: Sequence[int]) -> str:
    """Name how a tensor that is not contiguous lies in memory."""
    order = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}.get(len(shape))
    if order and _dense_in(order, shape, stride):
        return "channels_last" if len(shape) == 4 else "channels_last_3d"  # noqa: PLR2004 - N, C, H, W
    if any(step == 0 for step, size in zip(stride, shape, strict=True) if size > 1):
        return "expanded"
    swapped = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    if len(shape) > 1 and _dense_in(swapped, shape, stride):
        return "transposed"
    return "strided"


def _dense_in(order: Sequence[int], shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Tell whether the dimensions, in this order, fill memory without gaps."""
    expected = 1
    for dim in reversed(order):
        if shape[dim] != 1:
            if stride[dim] != expected:
                return False
            expected *= shape[dim]
    return True
