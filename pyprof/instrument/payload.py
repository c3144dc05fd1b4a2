"""The op marker of a call: what its arguments are, never what is in them.

The same texts as `marker.encode_op` would write, built faster: the part that describes a tensor
is remembered by shape and dtype, and parts are joined as they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from pyprof.instrument.tensors import describe_other_tensor, describe_tensor, dtype_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_TENSORS = 32
"""Longer lists of tensors are summarised: their length, elements in all, the first few."""
MAX_PLAIN = 64
"""Longer lists of numbers are summarised."""
MAX_ARGS = 64
MAX_DEPTH = 4
MAX_STRING = 200
_FIRST_FEW = 4
_MAX_INT = 2**64
_MAX_SHAPES = 8192
"""Distinct tensors remembered; then all are forgotten and described afresh."""

_PLAIN = frozenset({int, bool, float, str, type(None)})

_SEPARATOR = "}, {'name': ''"
_END = "}]}"

_PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})

_tensors: dict[tuple[Any, ...], str] = {}
_scalars: dict[tuple[type, object], str] = {}


def op_head(mod: str, op: str) -> str:
    """Give what the marker of every call of this op begins with."""
    return f"{{'mod': {mod!r}, 'op': {op!r}, 'args': ["


def op_text(head: str, args: Sequence[Any], kwargs: Mapping[str, object]) -> str:
    """Give the marker of a call: its arguments in order, then the named ones.

    Never raises and never reads a value; an argument that cannot be described is named by its type.
    """
    parts = []
    for arg in args if len(args) <= MAX_ARGS else args[:MAX_ARGS]:
        known, kind = None, type(arg)
        try:  # what most are, without a call
            if kind in _PLAIN_TENSORS:
                if arg.is_contiguous():
                    known = _tensors.get((arg.shape, arg.dtype))
            elif kind in _PLAIN:
                known = _scalars.get((kind, arg))
        except (RuntimeError, TypeError):  # no such thing as strides, or a symbolic shape
            known = describe_other_tensor(arg)
        parts.append(_part(arg) if known is None else known)
    text = f"{head}{{'name': ''{_SEPARATOR.join(parts)}" if parts else ""
    if kwargs:
        for name, value in kwargs.items():
            before = f"{text}}}, " if text else head
            text = f"{before}{{'name': {name!r}{_part(value)}"
    return text + _END if text else head + "]}"


def forget() -> None:
    """Drop what was remembered."""
    _tensors.clear()
    _scalars.clear()


def _part(value: object) -> str:
    """Describe one argument: what follows its name, without the closing brace."""
    describe = _BY_TYPE.get(type(value))
    if describe is None:
        describe = _describe_by_class(value)
    try:
        if type(value) in _PLAIN:
            return _remembered_scalar(value, describe)
        return describe(value)
    except (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError):
        # sparse, nested and other tensors that have no such thing as a stride
        return (
            describe_other_tensor(value) if isinstance(value, torch.Tensor) else _named_type(value)
        )


def _remembered_scalar(value: object, describe: Callable[[object], str]) -> str:
    """Describe a number or string as before, where it was there before; `1` is not `True`."""
    if type(value) is str and len(value) > MAX_STRING:
        return describe(value)
    key = (type(value), value)
    known = _scalars.get(key)
    if known is None:
        known = describe(value)
        if len(_scalars) >= _MAX_SHAPES:
            _scalars.clear()
        _scalars[key] = known
    return known


def _tensor(value: Any) -> str:  # noqa: ANN401 - a torch.Tensor, whose methods mypy does not see
    key = (value.shape, value.dtype) if value.is_contiguous() else _strided_key(value)
    known = _tensors.get(key)
    if known is None:
        known = describe_tensor(*key)
        if len(_tensors) >= _MAX_SHAPES:
            _tensors.clear()
        _tensors[key] = known
    return known


def _strided_key(value: torch.Tensor) -> tuple[Any, ...]:
    if value.layout is not torch.strided:
        raise TypeError  # what it says of its strides means nothing
    return (value.shape, value.dtype, value.stride())


def _int(value: object) -> str:
    if not -_MAX_INT < value < _MAX_INT:  # type: ignore[operator] # digits cost time squared
        return ", 'type': 'int'"
    return f", 'type': 'int', 'value': {value}"


def _bool(value: object) -> str:
    return f", 'type': 'bool', 'value': {value}"


def _none(_: object) -> str:
    return ", 'type': 'NoneType', 'value': None"


def _float(value: Any) -> str:  # noqa: ANN401 - a float, or a subclass such as numpy's
    plain = float(value)
    return f", 'type': 'float', 'value': {plain!r}" if math.isfinite(plain) else _infinite(plain)


def _infinite(value: float) -> str:
    return f", 'type': 'float', 'value': '{value}'"


def _str(value: Any) -> str:  # noqa: ANN401 - a str
    return f", 'type': 'str', 'value': {value[:MAX_STRING]!r}"


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


def _ellipsis(_: object) -> str:
    return ", 'type': 'ellipsis', 'value': '...'"


def _array(value: Any) -> str:  # noqa: ANN401 - a numpy array
    return f", 'type': 'ndarray', 'shape': {value.shape}, 'dtype': {value.dtype.name!r}"


def _named_type(value: object) -> str:
    return f", 'type': {type(value).__name__!r}"


def _sequence(value: Any) -> str:  # noqa: ANN401 - a tuple or list
    kind = "list" if type(value) is list else "tuple"
    if len(value) <= MAX_PLAIN:
        for item in value:
            if type(item) is not int or not -_MAX_INT < item < _MAX_INT:
                break
        else:  # sizes, most often
            return f", 'type': {kind!r}, 'value': {tuple(value) if kind == 'tuple' else value}"
    if all(type(item) in _PLAIN for item in value):
        return _plain_sequence(kind, value)
    return _mixed_sequence(kind, value, MAX_DEPTH)


def _plain_sequence(kind: str, value: Sequence[Any]) -> str:
    short = len(value) <= MAX_PLAIN
    if short and all(_writes_itself(item) for item in value):
        return f", 'type': {kind!r}, 'value': {tuple(value) if kind == 'tuple' else value}"
    return _mixed_sequence(kind, value, MAX_DEPTH)


def _writes_itself(value: Any) -> bool:  # noqa: ANN401 - a plain value
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
    return _part(value)


def _totals(value: Sequence[Any]) -> str:
    """Give the elements of a long list's tensors in all, and their dtype if they share one."""
    if not all(type(item) in _PLAIN_TENSORS for item in value):
        return ""
    dtypes = {item.dtype for item in value}
    text = f", 'numel': {sum(item.numel() for item in value)}"
    return text + (f", 'dtype': {dtype_name(dtypes.pop())!r}" if len(dtypes) == 1 else "")


_BY_TYPE: dict[type, Callable[[object], str]] = {
    torch.Tensor: _tensor,
    torch.nn.Parameter: _tensor,
    int: _int,
    bool: _bool,
    float: _float,
    str: _str,
    type(None): _none,
    tuple: _sequence,
    list: _sequence,
    torch.Size: _sequence,
    torch.dtype: _torch_name,
    torch.device: _torch_name,
    torch.layout: _torch_name,
    torch.memory_format: _torch_name,
    slice: _slice,
    type(Ellipsis): _ellipsis,
}


def _describe_by_class(value: object) -> Callable[[object], str]:
    """Choose for a type that is none of the usual ones; `issubclass`, as `__class__` may lie."""
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        return describe_other_tensor  # type: ignore[return-value]
    if issubclass(kind, float):
        return _float
    if issubclass(kind, (tuple, list)):
        return _sequence
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return _array
    return _named_type
