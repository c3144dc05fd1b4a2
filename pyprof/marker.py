"""The texts of annotated ranges: what they look like, old and new, and what they say.

The only module that knows the wire format. Four kinds of text carry meaning:

    op       {'mod': 'torch', 'op': 'relu', 'args': [{'name': '', 'type': 'tensor', ...}]}
    trace    {'traceMarker': ['model.py:12', 'block.py:7']}, outermost frame first
    module   {'mod': 'LSTMCell', 'strRepr': '10, 20'}
    layer    layer:encoder.layers.3

and PyTorch's own, from emit_nvtx:

    aten::addmm, seq = 4, op_id = 17, sizes = [[10], [4, 72], [72, 10], [], []], input_op_ids = ...
    autograd::engine::evaluate_function: AddmmBackward0, op_id = 35
    AddmmBackward0, seq = 4, op_id = 36, sizes = [[4, 10]]

A capture that knows more than emit_nvtx writes it behind, in the same style:
`dtypes = ['float32', ''], strides = [[3, 1], []], inputs = ['', '2']`.

Texts come from files of unknown origin: decoding never raises and never evaluates.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Kind(IntEnum):
    """What a text is."""

    CONTEXT = 0
    """A range of another library or of the user: never an op."""
    OP = 1
    TRACE = 2
    MODULE = 3
    LAYER = 4
    SEQ = 5
    """One of PyTorch's own ranges."""
    OPTIMIZER = 6
    """PyTorch's range around an optimizer's step or zero_grad."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument. `dtype` is torch's name without `torch.`; None where it is not known."""

    shape: tuple[int, ...]
    dtype: str | None = None
    stride: tuple[int, ...] | None = None
    layout: str = ""
    """`channels_last`, `transposed`, `strided`, ...; empty for contiguous or not known."""
    subclass: str = ""
    """`DTensor`, `NestedTensor`, ...; empty for a plain tensor."""

    @property
    def numel(self) -> int:
        """Count the elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True, slots=True)
class Opaque:
    """An argument of which only the type is known, and not even that where it is empty.

    emit_nvtx writes `[]` for a number, for None and for a tensor without dimensions alike.
    """

    type: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """A list of tensors too long to be written out: how many, how many elements in all."""

    length: int
    numel: int | None = None
    dtype: str | None = None
    items: tuple[Value, ...] = ()
    """The first few."""


Value: TypeAlias = "Tensor | Opaque | Summary | int | float | bool | str | tuple[Value, ...] | None"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an op with what is known of its arguments."""

    mod: str
    """`torch`, `Tensor`, `torch.nn.functional`, a user's class; `aten` for PyTorch's own."""
    op: str
    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    whole: bool = True
    """False where the text was cut and arguments may be missing."""

    def __hash__(self) -> int:
        return hash((self.mod, self.op, self.args, tuple(self.kwargs.items())))


@dataclass(frozen=True, slots=True)
class Seq:
    """What one of PyTorch's own ranges says."""

    name: str
    """`aten::addmm`, `AddmmBackward0`, `autograd::engine::evaluate_function: AddmmBackward0`."""
    seq: int | None = None
    """Sequence number: a forward op and its backward node share it, per forward thread."""
    op_id: int | None = None
    call: Call | None = None
    """The op with its shapes, where they were recorded; None for the engine's own ranges."""

    @property
    def node(self) -> str:
        """Name the op or autograd node, without what the engine puts before it."""
        return self.name.removeprefix(_EVALUATE)

    @property
    def backward(self) -> bool:
        """Tell whether work inside it belongs to a backward pass."""
        return is_backward(self.name)


_EVALUATE = "autograd::engine::evaluate_function: "
_SEQ = re.compile(r", (?:seq|op_id) = ")
_BARE_SEQ = re.compile(
    r"(?:aten|autograd|c10d|prims|quantized|torchvision)::\S+$|\w*Backward\d*$"
    r"|autograd::engine::evaluate_function: \S+$"
)
_TORCH_NAME = re.compile(
    r"(?:autograd::engine::evaluate_function: )?[\w.]+(?:::[\w.~]+)+$"  # aten::add, c10d::reduce_
    r"|(?:autograd::engine::evaluate_function: )?\w*Backward\d*$|nccl:\w+$"
)
_BACKWARD = re.compile(r"Backward\d*$|_backward$|^autograd::engine::evaluate_function: ")
_NUMBER = re.compile(r", (seq|op_id) = (-?\d+)")
_FIELDS = re.compile(r", (seq|op_id|sizes|input_op_ids|dtypes|strides|inputs) = ")
_CUT_OP = re.compile(r"""\{['"]mod['"]: ['"]([^'"]*)['"], ['"]op['"]: ['"]([^'"]*)['"]""")
_ESCAPED = "pyprof%"
_UNSAFE = re.compile(r'["\\%]|[^ -~]', re.ASCII)
_INFINITIES = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}

TEMPLATE_PATTERN = r"(, (?:seq|op_id) = )-?\d+|, input_op_ids = \[[-(), \d]*\]"
"""Matches what differs from one run of an op to the next; to be replaced by group 1.

Valid for re and for RE2.
"""

SEQ_PATTERN = r", seq = (?P<seq>-?\d{1,18})\b"
"""Finds the sequence number. Valid for re and for RE2."""

NOT_OPS = frozenset({"__getattr__", "__torch_function__", "__torch_dispatch__", "__getattribute__"})
"""Never ops, though old instrumentation wrapped them and so left markers that name them."""


_DECODED = 1 << 16
"""Decoded texts that are kept: each distinct one is decoded once, though many steps ask for it."""


def is_backward(name: str) -> bool:
    """Tell whether a range of this name is a node of a backward pass."""
    return _BACKWARD.search(name) is not None


def classify(text: str) -> Kind:
    """Say what a text is. Never raises."""
    if text.startswith("{"):
        return _classify_dict(text)
    if text.startswith("layer:"):
        return Kind.LAYER
    if text.startswith(("Optimizer.step#", "Optimizer.zero_grad#")):
        return Kind.OPTIMIZER
    if _SEQ.search(text):
        return Kind.SEQ if _is_torch_range(text) else Kind.CONTEXT
    return Kind.SEQ if _BARE_SEQ.match(text) else Kind.CONTEXT


def _is_torch_range(text: str) -> bool:
    """Tell an op or autograd node from a `record_function` of the user or of a library.

    emit_nvtx numbers both. A user's range has no sequence number, no sizes and no namespace.
    """
    name = text.split(", ", 1)[0]
    return ", seq = " in text or ", sizes = " in text or _TORCH_NAME.match(name) is not None


def _classify_dict(text: str) -> Kind:
    head = text[:20].replace('"', "'")
    if head.startswith("{'traceMarker'"):
        return Kind.TRACE
    if not head.startswith("{'mod'"):
        return Kind.CONTEXT
    if _CUT_OP.match(text):
        return Kind.OP
    return Kind.MODULE if "strRepr" in text else Kind.CONTEXT


def template(text: str) -> str:
    """Strip what differs between two runs of the same op with the same arguments."""
    return re.sub(TEMPLATE_PATTERN, r"\1", text)


def layer_name(text: str) -> str:
    """Give the name in a `layer:` text: up to the next colon, as the original had it."""
    return text.split(":", 2)[1]


# --- decoding -----------------------------------------------------------------------------------


@lru_cache(maxsize=_DECODED)
def decode_op(text: str) -> Call | None:
    """Give the call that an op marker describes; None where the text is no op marker.

    A text cut short still gives the op's name, with `whole` False.
    """
    data = _literal(text)
    if isinstance(data, dict) and isinstance(data.get("args"), (list, tuple)):
        mod, op = data.get("mod"), data.get("op")
        if isinstance(mod, str) and isinstance(op, str):
            return _call(mod, op, data["args"])
    if cut := _CUT_OP.match(text):
        return Call(cut[1], cut[2], whole=False)
    return None


def _call(mod: str, op: str, args: Iterable[Any]) -> Call:
    positional: list[Value] = []
    named: dict[str, Value] = {}
    whole = True
    for arg in args:
        if not isinstance(arg, dict):
            whole = False
        elif isinstance(name := arg.get("name", ""), str) and name:
            named[name] = _value(arg)
        else:
            positional.append(_value(arg))
    return Call(mod, op, tuple(positional), named, whole)


def _value(arg: Mapping[str, Any]) -> Value:
    kind = arg.get("type", "")
    if "shape" in arg:
        return _tensor(arg)
    if "items" in arg or "len" in arg:
        return _items(arg)
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
    )


def _items(arg: Mapping[str, Any]) -> Value:
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


def _plain(value: object, kind: object) -> Value:
    if isinstance(value, str) and kind == "float":
        return _INFINITIES.get(value, value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item, "") for item in value)
    return Opaque(kind if isinstance(kind, str) else "")


@lru_cache(maxsize=_DECODED)
def decode_trace(text: str) -> tuple[str, ...]:
    """Give the `file:line` frames of a trace marker, outermost first; () where it is none."""
    data = _literal(text)
    frames = data.get("traceMarker") if isinstance(data, dict) else None
    if not isinstance(frames, (list, tuple)):
        return ()
    return tuple(frame for frame in frames if isinstance(frame, str))


def decode_functions(text: str) -> tuple[str, ...]:
    """Give the function names of a trace marker's frames, where it holds them; else ()."""
    data = _literal(text)
    names = data.get("functions") if isinstance(data, dict) else None
    if not isinstance(names, (list, tuple)):
        return ()
    return tuple(name for name in names if isinstance(name, str))


@lru_cache(maxsize=_DECODED)
def decode_seq(text: str) -> Seq:
    """Give what one of PyTorch's own ranges says; for any other text, its name alone."""
    parts = _FIELDS.split(text)
    name, fields = parts[0], dict(zip(parts[1::2], parts[2::2], strict=True))
    numbers = {key: int(value) for key, value in _NUMBER.findall(text) if len(value) < 19}  # noqa: PLR2004 - fits int64
    call = None
    if not name.startswith(_EVALUATE):
        mod, _, op = name.rpartition("::")
        call = Call(mod, op, *_aten_args(fields))
    return Seq(name, numbers.get("seq"), numbers.get("op_id"), call)


def _aten_args(fields: Mapping[str, str]) -> tuple[tuple[Value, ...], dict[str, Value], bool]:
    sizes = _literal(fields.get("sizes", ""))
    if not isinstance(sizes, list):
        return (), {}, False
    dtypes, strides, inputs = (
        _padded(_literal(fields.get(key, "")), len(sizes))
        for key in ("dtypes", "strides", "inputs")
    )
    known = zip(sizes, dtypes, strides, inputs, strict=True)
    return tuple(_aten_value(*entry) for entry in known), {}, True


def _padded(values: object, length: int) -> list[Any]:
    found = list(values) if isinstance(values, (list, tuple)) else []
    return found[:length] + [None] * (length - len(found))


def _aten_value(size: object, dtype: object, stride: object, given: object) -> Value:
    if isinstance(size, list) and size and all(isinstance(part, list) for part in size):
        dtypes, strides = _padded(dtype, len(size)), _padded(stride, len(size))
        return tuple(_aten_value(*part, None) for part in zip(size, dtypes, strides, strict=True))
    known = dtype if isinstance(dtype, str) else ""
    if _sizes_like(size) and (size or _is_dtype(known)):
        shape = tuple(size)  # type: ignore[arg-type, var-annotated]
        return Tensor(shape, known or None, tuple(stride) if _sizes_like(stride) else None)  # type: ignore[arg-type]
    if isinstance(given, str) and given:
        return _plain(_scalar(given), known)
    return Opaque(known)


def _is_dtype(name: str) -> bool:
    return re.fullmatch(r"(?:float|bfloat|int|uint|complex|bool|qu?int)\d*\w*", name) is not None


def _scalar(text: str) -> object:
    found = _literal(text)
    if found is not None or text == "None":
        return found
    return {"True": True, "False": False, "true": True, "false": False}.get(text, text)


def _sizes_like(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(type(size) is int for size in value)


def _literal(text: str) -> Any:  # noqa: ANN401 - the point is that it can be anything
    """Give the value that a Python literal (or its JSON twin) spells; None where it is none."""
    if not text:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # "\d" in a user's string
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _json(text)


def _json(text: str) -> Any:  # noqa: ANN401 - as above
    import orjson  # noqa: PLC0415 - not needed in the user's script

    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None


# --- encoding -----------------------------------------------------------------------------------


def encode_op(call: Call) -> str:
    """Write an op marker; `decode_op` gives the call back."""
    args = [_encode("", value) for value in call.args]
    args += [_encode(name, value) for name, value in call.kwargs.items()]
    return repr({"mod": call.mod, "op": call.op, "args": args})


def _encode(name: str, value: Value) -> dict[str, Any]:  # noqa: PLR0911 - one line a type
    if isinstance(value, Tensor):
        return _encode_tensor(name, value)
    if isinstance(value, Opaque):
        return {"name": name, "type": value.type}
    if isinstance(value, Summary):
        known = {"len": value.length, "numel": value.numel, "dtype": value.dtype}
        head = {"name": name, "type": "list", **{k: v for k, v in known.items() if v is not None}}
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
    """Write a layer marker."""
    return f"layer:{name}"


def encode_annotation(text: str) -> str:
    """Write a text so that torch.profiler's trace gives it back: in plain ASCII.

    Kineto (seen in torch 2.13) writes a name with any other character as `unknown`, a backslash
    as a slash, and a double quote unescaped, which makes the whole file invalid JSON.
    """
    if text.isascii() and text.isprintable() and not _UNSAFE.search(text):
        return text
    return _ESCAPED + _UNSAFE.sub(
        lambda m: "".join(f"%{b:02X}" for b in m[0].encode(errors="replace")), text
    )


def decode_annotation(name: str) -> str:
    """Give the text that `encode_annotation` wrote; any other name as it is."""
    if not name.startswith(_ESCAPED):
        return name
    return unquote(name.removeprefix(_ESCAPED), errors="replace")


def encode_seq(
    name: str,
    *,
    seq: int | None = None,
    op_id: int | None = None,
    sizes: object = None,
    dtypes: object = None,
    strides: object = None,
    inputs: object = None,
) -> str:
    """Write the text that emit_nvtx would, with what else a capture knows behind it."""
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
