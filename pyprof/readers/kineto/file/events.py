"""Events of a trace, read in compiled code: of each only what pyprof looks at.

Values are as JSON has them: whoever takes them out of an event deals with foreign ones. What may
be long and repeats, such as the shapes of an op's inputs, stays JSON until it is known whether it
has been seen before.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import numpy as np
import orjson
import pyarrow as pa
from msgspec import UNSET, Raw, field
from msgspec.structs import astuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.arrays import Int64Array


NO_JSON = b"~"
"""Stands for missing JSON; it is not valid JSON itself."""
NO_VALUE = Raw(NO_JSON)
"""The one that fields have which are not there."""

NO_NUMBER = -(2**63)
"""Stands for a missing number, unlike null."""

NOTHING = Raw(b"{}")
NULL = Raw(b"null")

FAILURES = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Event(msgspec.Struct, gc=False):
    """An event of any kind."""

    ph: Any = None
    cat: Any = None
    name: Any = ""
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: Raw = NOTHING


class LongTimed(Event, gc=False):
    """An event whose time stays JSON: numbers of many digits are parsed faster all at once."""

    ts: Raw = NULL


class OpArgs(msgspec.Struct, gc=False):
    """Arguments of an op or annotation, in the order in which torch writes them."""

    op_id: Any = field(name="External id", default=None)
    seq: Any = field(name="Sequence number", default=NO_NUMBER)
    forward: Any = field(name="Fwd thread id", default=None)
    inputs: Raw = field(name="Concrete Inputs", default=NO_VALUE)
    types: Raw = field(name="Input type", default=NO_VALUE)
    strides: Raw = field(name="Input Strides", default=NO_VALUE)
    dims: Raw = field(name="Input Dims", default=NO_VALUE)
    old_dims: Raw = field(name="Input dims", default=NO_VALUE)
    stack: Raw = field(name="Call stack", default=NO_VALUE)
    modules: Raw = field(name="Module Hierarchy", default=NO_VALUE)
    # of kernels that Inductor made
    backend: Raw = field(name="kernel_backend", default=NO_VALUE)
    file: Raw = field(name="kernel_file", default=NO_VALUE)
    hash: Raw = field(name="kernel_hash", default=NO_VALUE)
    kwargs: Raw = field(name="kernel_kwargs", default=NO_VALUE)
    warps: Raw = field(name="num_warps", default=NO_VALUE)
    stages: Raw = field(name="num_stages", default=NO_VALUE)
    grid: Raw = NO_VALUE
    # of collectives
    collective: Raw = field(name="Collective name", default=NO_VALUE)
    dtype: Raw = NO_VALUE
    count_in: Raw = field(name="In msg nelems", default=NO_VALUE)
    count_out: Raw = field(name="Out msg nelems", default=NO_VALUE)
    size: Raw = field(name="Group size", default=NO_VALUE)
    group: Raw = field(name="Process Group Name", default=NO_VALUE)
    description: Raw = field(name="Process Group Description", default=NO_VALUE)
    ranks: Raw = field(name="Process Group Ranks", default=NO_VALUE)
    src: Raw = field(name="Src Rank", default=NO_VALUE)
    dst: Raw = field(name="Dst Rank", default=NO_VALUE)


class WorkArgs(msgspec.Struct, gc=False):
    """Arguments of GPU work."""

    correlation: Any = None
    connection: Any = field(name="connection_id", default=None)  # of torch_npu
    device: Any = None
    stream: Any = None
    regs: Any = field(name="registers per thread", default=None)
    smem: Any = field(name="shared memory", default=None)
    grid: Raw = NO_VALUE
    block: Raw = NO_VALUE
    bytes: Any = UNSET
    size: Any = UNSET
    size_bytes: Any = field(name="sizeBytes", default=UNSET)
    node_id: Any = field(name="graph node id", default=None)
    graph_id: Any = field(name="graph id", default=None)
    collective: Raw = field(name="Collective name", default=NO_VALUE)


class CallArgs(msgspec.Struct, gc=False):
    """Arguments of a call of a GPU's runtime or driver."""

    correlation: Any = None
    connection: Any = field(name="connection_id", default=None)
    kernel: Any = UNSET
    smem: Any = field(name="shared memory", default=UNSET)
    grid: Raw = NO_VALUE
    block: Raw = NO_VALUE
    bytes: Any = UNSET
    size: Any = UNSET
    size_bytes: Any = field(name="sizeBytes", default=UNSET)


T = TypeVar("T", bound=msgspec.Struct)


def joined(events: Sequence[Event]) -> bytes:
    """Return the arguments of events as one JSON list."""
    return b"[%b]" % b",".join([event.args for event in events])


class Args(Generic[T]):
    """Reads the arguments of events of one kind."""

    def __init__(self, kind: type[T]) -> None:
        self._kind: type[T] = kind
        self._all: msgspec.json.Decoder[list[T]] = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        self._one: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)

    def read(self, events: Sequence[Event], text: bytes | None = None) -> list[T]:
        """Return the arguments of each event; `text` is `joined(events)`."""
        said: list[Any] = [event.args for event in events]
        kinds = {*map(type, said)}
        if kinds == {Raw}:
            return self._read_raw(said, text)
        if kinds == {self._kind}:
            return said
        raws = iter(self._read_raw([args for args in said if isinstance(args, Raw)]))
        return [
            next(raws)
            if isinstance(args, Raw)
            else args
            if isinstance(args, self._kind)
            else self._kind()
            for args in said
        ]

    def _read_raw(self, said: Sequence[Raw], text: bytes | None = None) -> list[T]:
        try:
            return self._all.decode(b"[%b]" % b",".join(said) if text is None else text)
        except FAILURES:
            return [self._read_one(raw) for raw in said]

    def _read_one(self, raw: Raw) -> T:
        try:
            return self._one.decode(raw)
        except FAILURES:
            value = loads(raw)
        return self._one.decode(orjson.dumps(value)) if isinstance(value, dict) else self._kind()


OPS, WORK, CALLS = Args(OpArgs), Args(WorkArgs), Args(CallArgs)

EVENTS = msgspec.json.Decoder(list[Event])
LONG_TIMED: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[LongTimed])
_LONG_TIME = re.compile(rb'"ts"\s?:\s?\d{16}\.\d')
"""Microseconds since 1970 with a fraction, as some versions of torch write them."""
_PEEK_BYTES = 1 << 12
_FIELDS = msgspec.json.Decoder(dict[str, Raw])


def decode(text: bytes | Raw) -> list[Event] | None:
    """Parse a JSON list of events; None if it is not one, or contains anything else."""
    decoder = LONG_TIMED if is_long_timed(text) else EVENTS
    try:
        return decoder.decode(text)
    except FAILURES:
        return None


def is_long_timed(text: bytes | Raw) -> bool:
    """Whether the first events have times of many digits."""
    return _LONG_TIME.search(text, 0, _PEEK_BYTES) is not None


def fields(text: bytes) -> dict[str, Raw] | None:
    """Split a JSON object into its fields; None if it is not one."""
    try:
        return _FIELDS.decode(text)
    except FAILURES:
        return None


def from_values(values: Iterable[object]) -> list[Event]:
    """Make events of parsed JSON objects; other values are left out."""
    return [event for value in values if isinstance(value, dict) for event in [_event(value)]]


def _event(value: dict[str, Any]) -> Event:
    said = value.get("args")
    try:
        args = Raw(orjson.dumps(said)) if isinstance(said, dict) else NOTHING
    except orjson.JSONEncodeError:  # nested too deep
        args = NOTHING
    return Event(**{name: value[name] for name in _PLAIN if name in value}, args=args)


_PLAIN = tuple(name for name in Event.__struct_fields__ if name != "args")


def loads(raw: bytes | Raw) -> Any:  # noqa: ANN401 - JSON can be anything
    """Parse JSON, repaired if need be; None if it cannot be parsed."""
    text = bytes(raw)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(repaired(text))
    except orjson.JSONDecodeError:
        return None


def all_loads(raws: Sequence[Raw]) -> list[Any]:
    """Parse pieces of JSON as `loads` does each."""
    try:
        return orjson.loads(b"[%b]" % b",".join(raws))  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        return [loads(raw) for raw in raws]


def all_args(event: Event) -> dict[str, Any]:
    """Return all arguments of an event as plain values."""
    args: Any = event.args
    if isinstance(args, OpArgs):
        return {
            name: loads(value) if isinstance(value, Raw) else value
            for (name, absent), value in zip(_OP_FIELDS, astuple(args), strict=True)
            if value is not absent
        }
    values = None if args is None else loads(args)
    return values if isinstance(values, dict) else {}


_OP_FIELDS = [(field.encode_name, field.default) for field in msgspec.structs.fields(OpArgs)]


def numbered(raws: list[Raw]) -> tuple[Int64Array, list[bytes]]:
    """Number distinct pieces of JSON: the number of each, and the pieces by number."""
    if raws and raws[0] is NO_VALUE and raws.count(NO_VALUE) == len(raws):
        return np.zeros(len(raws), np.int64), [NO_JSON]
    offsets = np.cumsum(np.fromiter(chain([0], map(len, raws)), np.int64, len(raws) + 1))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(raws))]
    pieces = pa.Array.from_buffers(pa.large_binary(), len(raws), buffers).dictionary_encode()
    return pieces.indices.to_numpy().astype(np.int64), pieces.dictionary.to_pylist()


_NOT_A_NUMBER = re.compile(
    r"(?<=[:,\[])\s*-?(?:nan|inf|infinity|\d[\d.]*e\+?\d{3,})(?=\s*[,\]}\n])", re.IGNORECASE
)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves of a character
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r'|["\\/bfnrt]|u[0-9a-fA-F]{4}|(?P<none>))'
)
_NAME_LINE = re.compile(r'^([ \t]*"name": ")(.*)(",[ \t\r]*)$', re.MULTILINE)
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def repaired(piece: bytes) -> bytes:
    """Undo the known errors of Kineto's writer.

    It writes nan and inf, which JSON lacks, paths with single backslashes, names with unescaped
    quotes, invalid UTF-8, and half a surrogate pair where it truncated a name. 1e999 is infinite,
    too.
    """
    text = piece.decode("utf-8", "replace")
    text = _NOT_A_NUMBER.sub(" null", text)
    text = _ESCAPE.sub(_valid_escape, text)
    text = _NAME_LINE.sub(lambda m: m[1] + _BARE_QUOTE.sub(r'\\"', m[2]) + m[3], text)
    return _CONTROL.sub(" ", text).encode()


def _valid_escape(match: re.Match[str]) -> str:
    if match["half"]:
        return r"\ufffd"
    return match[0] if match["none"] is None else r"\\"
