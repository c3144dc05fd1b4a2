"""Payloads of NVTX events in an nsys export, and the collectives that NCCL describes there.

Seen so far: JSON with numbers as such and as texts with commas; in a capture of two H100s by nsys
2026.2 the tables of schemas, with each row once per process, but without the payloads themselves.
The layout of bytes follows descriptions of captures by nsys 2026; bytes of another layout are
ignored.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.readers.sqlite.tables import Database, Strings

Payload: TypeAlias = "Mapping[str, int | str]"
"""Values by their labels."""
_Fields: TypeAlias = "tuple[tuple[str, str, int], ...]"

COLUMNS: Mapping[str, type] = {
    "jsonText": str, "jsonTextId": int, "binaryData": bytes, "domainId": int,
}  # fmt: skip
"""The columns of events that `payloads` needs; each may be missing."""

_FORMATS: Mapping[int, str] = {
    5: "i", 6: "I", 7: "q", 8: "Q", 9: "q", 10: "Q", 15: "i", 16: "I", 17: "q", 18: "Q",
    22: "Q",  # size_t
}  # fmt: skip
"""NVTX_PAYLOAD_ENTRY_TYPE_* of NVTX 3, `nvToolsExtPayload.h`: whole numbers, on 64-bit Linux."""

_HEADER = struct.Struct("<QQQQ")
"""Domain, schema, bytes of the payload, bytes in all."""


def payloads(db: Database, events: pa.Table, strings: Strings) -> list[Payload]:
    """Return the payload of each event; {} if it has none, or none that can be read."""
    schemas = _schemas(db)
    text = events.column("jsonText").to_pylist()
    if (ids := events.column("jsonTextId")).null_count < len(ids):
        registered = strings.names(ints(ids, -1), "").to_pylist()
        text = [each or other for each, other in zip(text, registered, strict=True)]
    cells = list(zip(text, events.column("binaryData").to_pylist(), strict=True))
    decoded = {cell: _read_json(cell[0]) or _read_bytes(cell[1], schemas) for cell in {*cells}}
    return [decoded[cell] for cell in cells]


def _read_json(text: str | None) -> Payload:
    fields = schema.json_object(text)
    return {key: value for key, value in fields.items() if type(value) in (int, str)}


def _read_bytes(data: bytes | None, schemas: Mapping[tuple[int, int], _Fields]) -> Payload:
    if not data or len(data) < _HEADER.size:
        return {}
    domain, schema, size, length = _HEADER.unpack_from(data)
    if length != len(data) or _HEADER.size + size > length:
        return {}
    body = data[_HEADER.size : _HEADER.size + size]
    return {
        name: struct.unpack_from(f"<{kind}", body, offset)[0]
        for name, kind, offset in schemas.get((domain, schema), ())
        if offset + struct.calcsize(f"<{kind}") <= size
    }


def _schemas(db: Database) -> dict[tuple[int, int], _Fields]:
    """Return the labels, types and offsets of numbers, by domain and schema."""
    columns = {"domainId": int, "schemaId": int, "type": int, "offset": int, "name": str}
    rows = db.read("NVTX_PAYLOAD_SCHEMA_ENTRIES", columns)
    domain, schema, kind, offset = (ints(rows.column(name), 0) for name in [*columns][:4])
    fields_by_schema: dict[tuple[int, int], dict[str, tuple[str, str, int]]] = {}
    labels = rows.column("name").to_pylist()
    for one, other, code, index, label in zip(
        domain.tolist(), schema.tolist(), kind.tolist(), offset.tolist(), labels, strict=True
    ):
        if label and code in _FORMATS and index >= 0:
            fields_by_schema.setdefault((one, other), {})[label] = (label, _FORMATS[code], index)
    return {key: tuple(fields.values()) for key, fields in fields_by_schema.items()}


# NCCL pushes `ncclAllReduce` with its communicator's id, the same on all ranks, and the size of the
# message; the first versions that have payloads, the size alone. The kernel is launched inside that
# range or, in a group of calls, inside the `ncclGroupEnd` after it. The number of ranks of
# a communicator is recorded where it is made.
_PREFIX = "nccl"
_COMMUNICATOR, _SIZE, _RANKS = "NCCL communicator ID", "Message size [bytes]", "No. of ranks"
_BOTH_WAYS = ("AllReduce", "Broadcast", "Reduce")
"""Their message size is a rank's input; for others it is the part of one of n ranks."""


def collectives(
    db: Database,
    table: str,
    name: pa.DictionaryArray,
    kernels: pa.Table,
    runtime: pa.Table,
    strings: Strings,
) -> pa.Array:
    """Return what NCCL records of each kernel, as JSON of `schema.COLLECTIVE`; else null.

    `table` is the name of the table of NVTX events, `name` that of each kernel; kernels and API
    calls have nsys' own columns.
    """
    ours = np.array([*(text.startswith(_PREFIX) for text in name.dictionary.to_pylist()), False])
    rows = np.flatnonzero(ours[name.indices] if ours.any() else ours[:0])
    if not len(rows) or db.columns(table).isdisjoint(_HOLDERS):
        return pa.nulls(kernels.num_rows, schema.ACTIVITIES.field("collective").type)
    texts: list[str | None] = [None] * kernels.num_rows
    ranges = _Ranges(db, table, strings)
    for row, launch in zip(rows.tolist(), _launches(kernels.take(rows), runtime), strict=True):
        texts[row] = ranges.around(*launch) if launch else None
    return pa.array(texts, pa.string())


_HOLDERS = ("jsonText", "jsonTextId", "binaryData")
"""Columns that may hold payloads."""


def _launches(kernels: pa.Table, runtime: pa.Table) -> list[tuple[int, int] | None]:
    """Return thread and start of each kernel's launch; None without one."""
    wanted = kernels.column("correlationId")
    calls = runtime.filter(pc.is_in(runtime.column("correlationId"), wanted.combine_chunks()))
    thread, corr, start = (
        ints(calls.column(name), -1) for name in ("globalTid", "correlationId", "start")
    )
    process = thread >> _PROCESS
    launches = zip(process.tolist(), corr.tolist(), thread.tolist(), start.tolist(), strict=True)
    launch_of = {(owner, number): (one, at) for owner, number, one, at in launches}
    owners = ints(kernels.column("globalPid"), 0) >> _PROCESS
    keys = zip(owners.tolist(), ints(wanted, -1).tolist(), strict=True)
    return [launch_of.get(key) for key in keys]


_PROCESS = 24
"""Bits of the thread in a serialised id; the process is above them."""


class _Ranges:
    """NCCL's ranges of each thread, in order of their start."""

    def __init__(self, db: Database, table: str, strings: Strings) -> None:
        ids = pa.array(strings.starting(_PREFIX))
        has_domains = "domainId" in db.columns(table)
        numbers = ("start", "end", "globalTid", "domainId", "textId")
        events = db.read(
            table,
            {**dict.fromkeys(numbers, int), "text": str, **COLUMNS},
            lambda rows: rows.filter(_is_ours(rows, ids, has_domains=has_domains)),
        )
        events = events.take(np.argsort(ints(events.column("start"), -1), kind="stable"))
        self._start, self._end, thread = (
            ints(events.column(name), -1) for name in ("start", "end", "globalTid")
        )
        codes = ints(events.column("textId"), -1)
        named = strings.names(codes, "").cast(pa.string())
        texts = pc.if_else(pa.array(codes >= 0), named, events.column("text")).to_pylist()
        decoded = payloads(db, events, strings)
        ranks = {_id(each): each[_RANKS] for each in decoded if _RANKS in each}
        self._said = [
            _translate(text, each, ranks) for text, each in zip(texts, decoded, strict=True)
        ]
        self._speaking: dict[int, list[int]] = {}
        self._closing: dict[int, list[int]] = {}
        for row, (one, text) in enumerate(zip(thread.tolist(), texts, strict=True)):
            if self._said[row] is not None:
                self._speaking.setdefault(one, []).append(row)
            elif text == "ncclGroupEnd":
                self._closing.setdefault(one, []).append(row)

    def around(self, thread: int, at: int) -> str | None:
        """Return the payload of the range in which, or in whose group, something was launched."""
        spoken = self._last(self._speaking.get(thread, []), at)
        if spoken is None or at <= self._end[spoken]:
            return None if spoken is None else self._said[spoken]
        closed = self._last(self._closing.get(thread, []), at)
        if closed is None or at > self._end[closed] or self._start[closed] < self._end[spoken]:
            return None
        return self._said[spoken]

    def _last(self, rows: list[int], at: int) -> int | None:
        index = bisect_right(rows, at, key=lambda row: int(self._start[row]))
        return rows[index - 1] if index else None


def _is_ours(events: pa.Table, ids: pa.Array, *, has_domains: bool) -> pa.ChunkedArray:
    """Mark NCCL's events: in a domain of their own, with texts that begin with its name."""
    registered = pc.is_in(events.column("textId"), ids)
    spelt = pc.starts_with(events.column("text"), _PREFIX, ignore_case=True)
    named = pc.or_(registered, pc.fill_null(spelt, fill_value=False))
    if not has_domains:
        return named
    return pc.and_(
        named, pc.fill_null(pc.not_equal(events.column("domainId"), 0), fill_value=False)
    )


def _id(payload: Payload) -> str:
    return str(payload.get(_COMMUNICATOR, "")).replace(",", "")


def _translate(text: str, payload: Payload, ranks: Mapping[str, int | str]) -> str | None:
    """Convert a payload to the keys of `schema.COLLECTIVE`; None if it moves no message."""
    if _SIZE not in payload:
        return None
    name = text.removeprefix(_PREFIX)
    described: dict[str, object] = {"name": name}
    if group := _id(payload):
        described["group"] = group
        if (count := _whole_number(ranks.get(group, ""))) is not None:
            described["size"] = count
    size = _whole_number(payload[_SIZE])
    if size is not None and name in _BOTH_WAYS:
        described |= {"dtype": "uint8", "in": size, "out": size}
    return json.dumps(described)


def _whole_number(value: object) -> int | None:
    """Parse a number as nsys writes it, 1,024 in some versions; None if it is not one."""
    text = str(value).replace(",", "")
    return int(text) if text.isdecimal() and len(text) < _DIGITS else None


_DIGITS = 19
"""Numbers with this many digits may not fit an int64."""
