"""Parses the texts of markers. Never raises, never evaluates."""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyprof.marker.encode import ESCAPED
from pyprof.marker.kind import CUT_OP
from pyprof.marker.model import EVALUATE, UNTYPED, Call, Opaque, Seq, Summary, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyprof.marker.model import Value

_NUMBER = re.compile(r"-?\d+")
_FIELDS = ("seq", "op_id", "sizes", "input_op_ids", "dtypes", "strides", "inputs", "stopped")
_MARKS = {name: f", {name} = " for name in _FIELDS}
_INFINITIES = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def decode_op(text: str) -> Call | None:
    """Return the call that an op marker describes; None for any other text.

    A truncated text still has the op's name: `whole` is False.
    """
    data = _literal(text)
    if isinstance(data, dict) and isinstance(data.get("args"), (list, tuple)):
        mod, op = data.get("mod"), data.get("op")
        if isinstance(mod, str) and isinstance(op, str):
            return _call(mod, op, data["args"], data.get("collective"))
    if cut := CUT_OP.match(text):
        return Call(cut[1], cut[2], whole=False)
    return None


def _call(mod: str, op: str, args: Iterable[Any], collective: object) -> Call:
    positional: list[Value] = []
    named: dict[str, Value] = {}
    complete = True
    for arg in args:
        if not isinstance(arg, dict):
            complete = False
        elif isinstance(name := arg.get("name", ""), str) and name:
            named[name] = _value(arg)
        else:
            positional.append(_value(arg))
    items = collective.items() if isinstance(collective, dict) else ()
    stated = {key: value for key, value in items
              if type(key) is str and type(value) in (str, int)}  # fmt: skip
    return Call(mod, op, tuple(positional), named, complete, stated)


def _value(arg: Mapping[str, Any]) -> Value:
    kind = arg.get("type", "")
    if "shape" in arg:
        return _tensor(arg)
    if "items" in arg or "len" in arg:
        listed = arg.get("items", ())
        items = tuple(
            _value(item) if isinstance(item, dict) else Opaque()
            for item in (listed if isinstance(listed, (list, tuple)) else ())
        )
        length = arg.get("len", len(items))
        if not isinstance(length, int) or length == len(items):
            return items
        numel, dtype = arg.get("numel"), arg.get("dtype")
        return Summary(
            length,
            numel if isinstance(numel, int) else None,
            dtype if isinstance(dtype, str) else None,
            items,
        )
    if "value" in arg:
        return _plain(arg["value"], kind)
    return Opaque(kind if isinstance(kind, str) else "")


def _tensor(arg: Mapping[str, Any]) -> Value:
    shape, dtype, stride = arg["shape"], arg.get("dtype"), arg.get("stride")
    if not _sizes_like(shape):
        return Opaque("tensor")
    return Tensor(
        tuple(shape),
        dtype if isinstance(dtype, str) and dtype else None,
        tuple(stride) if stride is not None and _sizes_like(stride) else None,
        str(arg.get("layout", "")),
        str(arg.get("class", "")),
        _count(arg.get("nnz")),
        _count(arg.get("nbytes")),
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _plain(value: object, kind: object) -> Value:
    if isinstance(value, str) and kind == "float":
        return _INFINITIES.get(value, value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item, "") for item in value)
    return Opaque(kind if isinstance(kind, str) else "")


def decode_trace(text: str) -> tuple[str, ...]:
    """Return the `file:line` frames of a trace marker, outermost first; () for any other text."""
    return _texts_under(text, "traceMarker")


def decode_functions(text: str) -> tuple[str, ...]:
    """Return the function names of a trace marker's frames, if it has them; else ()."""
    return _texts_under(text, "functions")


def _texts_under(text: str, key: str) -> tuple[str, ...]:
    data = _literal(text)
    listed = data.get(key) if isinstance(data, dict) else None
    if not isinstance(listed, (list, tuple)):
        return ()
    return tuple(item for item in listed if isinstance(item, str))


def decode_name(text: str) -> str:
    """Return the name of one of PyTorch's own ranges, as in `decode_seq`, but nothing else."""
    indices = [index for mark in _MARKS.values() if (index := text.find(mark)) >= 0]
    return text[: min(indices)] if indices else text


def _fields(text: str) -> list[tuple[str, str]]:
    """Return each field's name and text, in order.

    Searching for each mark by itself takes a tenth of the time of a pattern for all.
    """
    indices = []
    for name, mark in _MARKS.items():
        index = text.find(mark)
        while index >= 0:
            indices.append((index, name))
            index = text.find(mark, index + len(mark))
    indices.sort()
    ends = [index for index, _ in indices[1:]] + [len(text)]
    return [
        (name, text[index + len(_MARKS[name]) : end])
        for (index, name), end in zip(indices, ends, strict=False)
    ]


def decode_seq(text: str) -> Seq:
    """Parse one of PyTorch's own ranges; any other text is a name alone."""
    name, listed = decode_name(text), _fields(text)
    fields = dict(listed)
    numbers = {
        key: int(number[0])
        for key, value in listed
        if key in ("seq", "op_id") and (number := _NUMBER.match(value)) and len(number[0]) < 19  # noqa: PLR2004 - fits int64
    }
    call = None
    if not name.startswith(EVALUATE):
        mod, _, op = name.rpartition("::")
        keys = ("sizes", "dtypes", "strides", "inputs")
        columns = [_literal(fields.get(key, "")) for key in keys]
        has_sizes = isinstance(columns[0], list)
        padded = [_pad(column, len(columns[0])) for column in columns] if has_sizes else []
        args = tuple(_aten_value(*arg) for arg in zip(*padded, strict=True))
        call = Call(mod, op, args, whole=has_sizes)
    return Seq(name, numbers.get("seq"), numbers.get("op_id"), call)


def _pad(values: object, length: int) -> list[Any]:
    items = list(values) if isinstance(values, (list, tuple)) else []
    return items[:length] + [None] * (length - len(items))


def _aten_value(size: object, dtype: object, stride: object, scalar: object) -> Value:
    if isinstance(size, list) and size and all(isinstance(part, list) for part in size):
        dtypes, strides = _pad(dtype, len(size)), _pad(stride, len(size))
        return tuple(_aten_value(*part, None) for part in zip(size, dtypes, strides, strict=True))
    dtype_name = dtype if isinstance(dtype, str) else ""
    if _sizes_like(size) and (size or _DTYPE.fullmatch(dtype_name)):
        shape = tuple(size)  # type: ignore[arg-type, var-annotated]
        return Tensor(shape, dtype_name or None, tuple(stride) if _sizes_like(stride) else None)  # type: ignore[arg-type]
    if isinstance(scalar, str) and scalar:
        return _plain(_scalar(scalar), dtype_name)
    return Opaque(UNTYPED if dtype == "" else dtype_name)


_DTYPE = re.compile(r"(?:float|bfloat|int|uint|complex|bool|qu?int)\w*")


@lru_cache(maxsize=1 << 18)
def _scalar(text: str) -> object:
    literal = _literal(text)
    if literal is not None or text == "None":
        return literal
    return {"True": True, "False": False, "true": True, "false": False}.get(text, text)


def _sizes_like(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(
        type(size) is int and -_SIZE_END <= size < _SIZE_END for size in value
    )


_SIZE_END = 1 << 63
"""Sizes are stored as int64."""


def _literal(text: str) -> Any:  # noqa: ANN401 - the point is that it can be anything
    """Return the value of a Python literal, or of JSON; None for any other text."""
    if not text or _too_deep(text):
        return None
    if (quick := _parse_as_json(text)) is not None:
        return quick
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a user's string
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _json(text)


def _too_deep(text: str) -> bool:
    """Whether brackets are nested deeper than in any marker, too deep to walk."""
    if sum(map(text.count, "[({")) <= _DEEPEST:
        return False
    depth = deepest = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[({" else -1
        deepest = max(deepest, depth)
    return deepest > _DEEPEST


_DEEPEST = 64
_BRACKETS = re.compile(r"[\[\](){}]")


def _parse_as_json(text: str) -> Any:  # noqa: ANN401 - as above
    """Parse literals that are also JSON, ten times as fast; None for any other text."""
    if text[0] != "[" or '"' in text or "\\" in text:  # which Python spells otherwise
        return None
    import msgspec  # noqa: PLC0415 - not needed in the user's script

    try:
        return msgspec.json.decode(text.replace("'", '"'))  # keeps large integers exact
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None


def _json(text: str) -> Any:  # noqa: ANN401 - as above
    import orjson  # noqa: PLC0415 - not needed in the user's script

    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None


def decode_annotation(name: str) -> str:
    """Return the text that `encode_annotation` encoded; any other name unchanged."""
    if not name.startswith(ESCAPED):
        return name
    return unquote(name.removeprefix(ESCAPED), errors="replace")
