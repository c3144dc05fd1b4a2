"""What libraries attach to their NVTX events, in an nsys export: as JSON, or as bytes and schemas.

What has been seen: JSON with numbers as such and as texts with commas; in a capture of two H100s by
nsys 2026.2 the tables of schemas, with each row once a process, where the payloads themselves had
been left out. How bytes are laid out is told by others of captures by nsys 2026; bytes that are not
laid out so say nothing.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, TypeAlias

from pyprof.readers._sqlite import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyprof.readers._sqlite import Database
    from pyprof.readers._strings import Strings

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
    """Give the payload of each event; an empty one where it has none, or none that can be read."""
    schemas = _schemas(db)
    text = events.column("jsonText").to_pylist()
    if (ids := events.column("jsonTextId")).null_count < len(ids):
        registered = strings.names(numbers(ids, -1), "").to_pylist()
        text = [each or other for each, other in zip(text, registered, strict=True)]
    cells = list(zip(text, events.column("binaryData").to_pylist(), strict=True))
    decoded = {cell: _of_json(cell[0]) or _of_bytes(cell[1], schemas) for cell in {*cells}}
    return [decoded[cell] for cell in cells]


def _of_json(text: str | None) -> Payload:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    items = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in items if type(value) in (int, str)}


def _of_bytes(data: bytes | None, schemas: Mapping[tuple[int, int], _Fields]) -> Payload:
    if not data or len(data) < _HEADER.size:
        return {}
    domain, schema, size, whole = _HEADER.unpack_from(data)
    if whole != len(data) or _HEADER.size + size > whole:
        return {}
    body = data[_HEADER.size : _HEADER.size + size]
    return {
        name: struct.unpack_from(f"<{kind}", body, offset)[0]
        for name, kind, offset in schemas.get((domain, schema), ())
        if offset + struct.calcsize(f"<{kind}") <= size
    }


def _schemas(db: Database) -> dict[tuple[int, int], _Fields]:
    """Give the labels, types and places of numbers, by domain and schema."""
    columns = {"domainId": int, "schemaId": int, "type": int, "offset": int, "name": str}
    rows = db.read("NVTX_PAYLOAD_SCHEMA_ENTRIES", columns)
    domain, schema, kind, offset = (numbers(rows.column(name), 0) for name in [*columns][:4])
    found: dict[tuple[int, int], dict[str, tuple[str, str, int]]] = {}
    labels = rows.column("name").to_pylist()
    for one, other, code, place, label in zip(
        domain.tolist(), schema.tolist(), kind.tolist(), offset.tolist(), labels, strict=True
    ):
        if label and code in _FORMATS and place >= 0:
            found.setdefault((one, other), {})[label] = (label, _FORMATS[code], place)
    return {key: tuple(fields.values()) for key, fields in found.items()}
