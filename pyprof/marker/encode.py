"""Writes the texts of markers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyprof.marker.kind import WHOLE_LAYER
from pyprof.marker.model import Opaque, Summary, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.marker.model import Call, Value

ESCAPED = "pyprof%"
"""Prefix of a text whose unsafe characters are percent-encoded."""

_UNSAFE = re.compile(r'["\\%]|[^ -~]', re.ASCII)


def encode_op(call: Call) -> str:
    """Write an op marker, the inverse of `decode_op`."""
    args = [_encode("", value) for value in call.args]
    args += [_encode(name, value) for name, value in call.kwargs.items()]
    collective = {"collective": dict(call.collective)} if call.collective else {}
    return repr({"mod": call.mod, "op": call.op, "args": args, **collective})


def _encode(name: str, value: Value) -> dict[str, Any]:  # noqa: PLR0911 - one line a type
    if isinstance(value, Tensor):
        return _encode_tensor(name, value)
    if isinstance(value, Opaque):
        return {"name": name, "type": value.type}
    if isinstance(value, Summary):
        fields = {"len": value.length, "numel": value.numel, "dtype": value.dtype}
        head = {"name": name, "type": "list", **{k: v for k, v in fields.items() if v is not None}}
        return {**head, "items": [_encode("", item) for item in value.items]}
    if isinstance(value, tuple):
        if all(_is_plain(item) for item in value):
            return {"name": name, "type": "tuple", "value": value}
        return {"name": name, "type": "tuple", "items": [_encode("", item) for item in value]}
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):  # noqa: PLR0124 - nan
        return {"name": name, "type": "float", "value": str(value)}
    return {"name": name, "type": type(value).__name__, "value": value}


def _is_plain(value: Value) -> bool:
    if isinstance(value, float):
        return value - value == 0  # neither infinite nor nan
    return value is None or isinstance(value, (bool, int, str))


def _encode_tensor(name: str, tensor: Tensor) -> dict[str, Any]:
    arg: dict[str, Any] = {"name": name, "type": "tensor", "shape": tensor.shape}
    optional = {
        "dtype": tensor.dtype,
        "stride": tensor.stride,
        "layout": tensor.layout,
        "class": tensor.subclass,
        "nnz": tensor.nnz,
        "nbytes": tensor.nbytes,
    }
    return arg | {key: value for key, value in optional.items() if value not in (None, "")}


def encode_trace(frames: Sequence[str], functions: Sequence[str] = ()) -> str:
    """Write a trace marker from `file:line` frames, outermost first, and their functions."""
    data: dict[str, list[str]] = {"traceMarker": list(frames)}
    if functions:
        data["functions"] = list(functions)
    return repr(data)


def encode_module(mod: str, text: str) -> str:
    """Write a module marker: a class's name and its `extra_repr()`."""
    return repr({"mod": mod, "strRepr": text})


def encode_layer(name: str) -> str:
    """Write a layer marker, the inverse of `layer_name`."""
    return f"{WHOLE_LAYER}{name}" if ":" in name else f"layer:{name}"


def encode_annotation(text: str) -> str:
    """Encode a text in plain ASCII, which survives torch.profiler.

    Kineto (seen in torch 2.13) writes a name with any other character as `unknown`, a backslash as
    a slash, and a double quote unescaped, which makes the whole file invalid JSON.
    """
    if text.isascii() and text.isprintable() and not _UNSAFE.search(text):
        return text
    return ESCAPED + _UNSAFE.sub(
        lambda m: "".join(f"%{b:02X}" for b in m[0].encode(errors="replace")), text
    )


def encode_seq(
    name: str,
    *,
    seq: int | str | None = None,
    op_id: int | str | None = None,
    sizes: object = None,
    dtypes: object = None,
    strides: object = None,
    inputs: object = None,
) -> str:
    """Write the text that emit_nvtx would, followed by what else a capture records.

    Empty numbers make a template, as `templates.split` does.
    """
    text = name if seq is None else f"{name}, seq = {seq}"
    if op_id is not None:
        text += f", op_id = {op_id}"
    if sizes is not None:
        text += f", sizes = {sizes!r}"
    if dtypes is not None:
        text += f", dtypes = {dtypes!r}"
    if strides is not None:
        text += f", strides = {strides!r}"
    return text if inputs is None else f"{text}, inputs = {inputs!r}"
