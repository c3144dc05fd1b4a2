"""The op marker of a call: its arguments' types, shapes and layouts, never tensors' values.

The same texts as `marker.encode_op` writes, built once for each distinct call: a training loop
repeats the same ones.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter

from pyprof.instrument.ops.caller import keep_uncompiled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def describe_tensor(
    shape: Sequence[int], dtype: torch.dtype, stride: tuple[int, ...] | None = None, name: str = ""
) -> str:
    """Describe a tensor; `name` is its class if not torch's own."""
    if not all(type(size) is int for size in shape):  # symbolic: asking would fix its value
        return f", 'type': 'tensor', 'dtype': {dtype_name(dtype)!r}" + _class(name)
    text = f", 'type': 'tensor', 'shape': {tuple(shape)}, 'dtype': {dtype_name(dtype)!r}"
    if stride is not None:
        text += f", 'stride': {stride}, 'layout': {layout_name(shape, stride)!r}"
    return text + _class(name)


def _class(name: str) -> str:
    return f", 'class': {name!r}" if name else ""


def describe_other_tensor(value: torch.Tensor) -> str:
    """Describe a tensor that is not a plain dense one; of a DTensor, this rank's part."""
    name, stored = type(value).__name__, ""
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - else its own code would run
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            name = "NestedTensor" if value.is_nested else str(value.layout).removeprefix("torch.")
            stored = _describe_storage(value)
        elif name == "DTensor":
            value = getattr(value, "_local_tensor", value)
        elif hasattr(type(value), "__tensor_flatten__"):
            stored = _describe_inner_storage(value)
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
"""Members of sparse tensors, by layout; the first holds the values."""


def _describe_storage(value: torch.Tensor) -> str:
    """Return how much a sparse tensor stores. Its members are dense: the host knows their sizes."""
    names = _MEMBERS.get(value.layout, ())
    try:
        with torch.no_grad():  # else the views would be nodes of a graph
            # by the base class: torch.Tensor's may be wrapped
            members = [getattr(torch._C.TensorBase, name)(value) for name in names]  # noqa: SLF001
        sizes = [(member.numel(), member.element_size()) for member in members]
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return ""
    if not sizes or not all(type(count) is int for count, _ in sizes):
        return ""
    total = sum(count * size for count, size in sizes)
    return f", 'nnz': {sizes[0][0]}, 'nbytes': {total}"


def _describe_inner_storage(value: torch.Tensor) -> str:
    """Return how much the tensors inside a wrapper store: a quantized one claims to be float32."""
    try:
        names, _ = value.__tensor_flatten__()  # type: ignore[attr-defined]
        inner = [getattr(value, name) for name in names]
    except Exception:  # noqa: BLE001 - the class's own code
        return ""
    if any(type(each) not in _PLAIN_TENSORS or each.layout != torch.strided for each in inner):
        return ""
    sizes = [tensor.numel() * tensor.element_size() for tensor in inner]
    return f", 'nbytes': {sum(sizes)}" if all(type(size) is int for size in sizes) else ""


def dtype_name(dtype: torch.dtype) -> str:
    """Return torch's name of a dtype, without `torch.`."""
    return str(dtype).removeprefix("torch.")


def layout_name(shape: Sequence[int], stride: Sequence[int]) -> str:
    """Name the memory layout of a tensor that is not contiguous."""
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
    """Whether the dimensions, in this order, fill memory without gaps."""
    expected = 1
    for dim in reversed(order):
        if shape[dim] != 1:
            if stride[dim] != expected:
                return False
            expected *= shape[dim]
    return True


MAX_TENSORS = 32
"""Longer lists of tensors are summarised: length, total elements, the first few."""
MAX_PLAIN = 64
"""Longer lists of numbers are summarised."""
MAX_ARGS = 64
MAX_DEPTH = 4
MAX_STRING = 200
"""Limits of a marker: arguments, lists inside one another, characters of a text."""
_FIRST_FEW = 4
_MAX_INT = 2**64
_MAX_TEXTS = 4096
"""Cached markers; the cache is cleared when full."""

_PLAIN = frozenset({int, bool, float, str, type(None)})
_NUMBERS = frozenset({int, bool, float, type(None)})
_SEQUENCES = frozenset({tuple, list})
_INTS = frozenset({int})

_PLAIN_TENSORS = frozenset({Tensor, Parameter})

overridden = torch._C._has_torch_function  # noqa: SLF001 - no public way
"""Whether arguments, or a mode, override a call (`__torch_function__`)."""
NOTHING = (None,)
"""Arguments that only a mode overrides."""

_texts: dict[tuple[Any, ...], str] = {}
_describe_once = functools.lru_cache(maxsize=8192)(describe_tensor)


def op_head(mod: str, op: str) -> str:
    """Return the beginning of the markers of all calls of an op."""
    return f"{{'mod': {mod!r}, 'op': {op!r}, 'args': ["


@keep_uncompiled
def op_text(head: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the marker of a call: positional arguments in order, then the named ones.

    Never raises and never reads a tensor's values; an argument that cannot be described is named by
    its type.
    """
    if overridden(NOTHING):  # a mode would see what is asked of the arguments
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - no public way
            return _write(head, args, kwargs)
    values = (*args, *kwargs.values()) if kwargs else args
    if len(values) > MAX_ARGS:
        return _write(head, args, kwargs)
    # nested tuples: a list would have to be converted
    key: Any = (head, len(args), *kwargs) if kwargs else head
    try:  # few calls: this runs at each op
        for value in values:
            kind = type(value)
            if kind is Tensor or kind is Parameter:
                if value.is_contiguous():
                    key = key, value.shape, value.dtype
                else:
                    key = key, _strided_key(value)
            elif kind in _NUMBERS:
                key = key, kind, value if value or kind is not float else repr(value)  # -0.0 == 0.0
            else:
                key = key, _other_key(kind, value)
        text = _texts.get(key)
    except (RuntimeError, TypeError):  # no strides, or a symbolic shape
        return _write(head, args, kwargs)
    if text is None:
        text = _write(head, args, kwargs)
        if len(_texts) >= _MAX_TEXTS:
            _texts.clear()
        _texts[key] = text
    return text


def _other_key(kind: type, value: Any) -> object:  # noqa: ANN401 - any argument
    """Return a cache key for an argument that is neither a plain tensor nor a number."""
    if kind is str and len(value) <= MAX_STRING:
        return kind, value
    if kind in _SEQUENCES and len(value) <= MAX_PLAIN and _INTS.issuperset(map(type, value)):
        return kind, tuple(value)  # sizes, most often
    return _describe(value)


def forget() -> None:
    """Clear the caches."""
    _texts.clear()
    _describe_once.cache_clear()


def _write(head: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    parts = [f"{{'name': ''{_describe(value)}}}" for value in args[:MAX_ARGS]]
    parts += [f"{{'name': {name!r}{_describe(value)}}}" for name, value in kwargs.items()]
    return f"{head}{', '.join(parts)}]}}"


def _describe(value: object) -> str:
    """Describe one argument: what follows its name, without the closing brace."""
    describe = _BY_TYPE.get(type(value))
    if describe is None:
        describe = _describe_by_class(value)
    try:
        return describe(value)
    except (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError):
        # sparse, nested and other tensors without strides
        return (
            describe_other_tensor(value) if isinstance(value, torch.Tensor) else _named_type(value)
        )


def _tensor(value: Any) -> str:  # noqa: ANN401 - a torch.Tensor, whose methods mypy does not see
    key = (value.shape, value.dtype) if value.is_contiguous() else _strided_key(value)
    return _describe_once(*key)


def _strided_key(value: torch.Tensor) -> tuple[Any, ...]:
    if value.layout is not torch.strided:
        raise TypeError  # its strides are meaningless
    return (value.shape, value.dtype, value.stride())


def _int(value: int) -> str:
    if not -_MAX_INT < value < _MAX_INT:  # digits cost time squared
        return ", 'type': 'int'"
    return f", 'type': 'int', 'value': {value}"


def _float(value: Any) -> str:  # noqa: ANN401 - a float, or a subclass such as numpy's
    plain = float(value)
    return f", 'type': 'float', 'value': {plain if math.isfinite(plain) else str(plain)!r}"


def _torch_name(value: object) -> str:
    """Describe a dtype, device, memory format or layout by torch's name for it."""
    name = str(value).removeprefix("torch.")
    return f", 'type': {type(value).__name__!r}, 'value': {name!r}"


def _slice(value: Any) -> str:  # noqa: ANN401 - a slice
    ends = (value.start, value.stop, value.step)
    if not all(end is None or type(end) is int for end in ends):
        return ", 'type': 'slice'"
    text = ":".join("" if end is None else str(end) for end in ends)
    return f", 'type': 'slice', 'value': {text!r}"


def _named_type(value: object) -> str:
    return f", 'type': {type(value).__name__!r}"


def _sequence(value: Any) -> str:  # noqa: ANN401 - a tuple or list
    kind = "list" if type(value) is list else "tuple"
    if len(value) <= MAX_PLAIN and all(map(_writes_itself, value)):
        return f", 'type': {kind!r}, 'value': {tuple(value) if kind == 'tuple' else value}"
    return _mixed_sequence(kind, value, MAX_DEPTH)


def _writes_itself(value: Any) -> bool:  # noqa: ANN401 - any item
    if type(value) not in _PLAIN:
        return False
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is str:
        return len(value) <= MAX_STRING
    return type(value) is not int or -_MAX_INT < value < _MAX_INT


def _mixed_sequence(kind: str, value: Sequence[Any], depth: int) -> str:
    if depth == 0:
        return f", 'type': {kind!r}"
    length = len(value)
    shown = value if length <= MAX_TENSORS else value[:_FIRST_FEW]
    items = ", ".join(f"{{'name': ''{_item(item, depth - 1)}}}" for item in shown)
    if length <= MAX_TENSORS:
        return f", 'type': {kind!r}, 'items': [{items}]"
    return f", 'type': 'list', 'len': {length}{_totals(value)}, 'items': [{items}]"


def _item(value: object, depth: int) -> str:
    if type(value) in (list, tuple):
        return _mixed_sequence(type(value).__name__, value, depth)  # type: ignore[arg-type]
    return _describe(value)


def _totals(value: Sequence[Any]) -> str:
    """Return the total elements of a long list's tensors, and their dtype if they share one."""
    if not all(type(item) in _PLAIN_TENSORS for item in value):
        return ""
    dtypes = {item.dtype for item in value}
    text = f", 'numel': {sum(item.numel() for item in value)}"
    return text + (f", 'dtype': {dtype_name(dtypes.pop())!r}" if len(dtypes) == 1 else "")


_BY_TYPE: dict[type, Callable[[Any], str]] = {
    Tensor: _tensor,
    Parameter: _tensor,
    int: _int,
    bool: lambda value: f", 'type': 'bool', 'value': {value}",
    float: _float,
    str: lambda value: f", 'type': 'str', 'value': {value[:MAX_STRING]!r}",
    type(None): lambda _: ", 'type': 'NoneType', 'value': None",
    tuple: _sequence,
    list: _sequence,
    torch.Size: _sequence,
    torch.dtype: _torch_name,
    torch.device: _torch_name,
    torch.layout: _torch_name,
    torch.memory_format: _torch_name,
    slice: _slice,
    type(Ellipsis): lambda _: ", 'type': 'ellipsis', 'value': '...'",
}


def _describe_by_class(value: object) -> Callable[[Any], str]:
    """Choose by base class; `issubclass`, as `__class__` may lie."""
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        return describe_other_tensor
    if issubclass(kind, float):
        return _float
    if issubclass(kind, (tuple, list)):
        return _sequence
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return lambda value: (
            f", 'type': 'ndarray', 'shape': {value.shape}, 'dtype': {value.dtype.name!r}"
        )
    return _named_type
