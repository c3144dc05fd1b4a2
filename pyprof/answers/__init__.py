"""Answers: the results of commands, as data. Every view is a function of an answer.

An answer is a frozen dataclass, registered under the name of its command; each field has a
docstring below it. Its JSON and its JSON Schema follow from the class: `document` writes the one,
`json_schema.schema` the other; a field that only views need is `not_in_json()`. Modules of this
folder are found by being here. They import nothing of analysis, and nothing of the views.

Units are in names: `_ns`, `_bytes`, `_per_s`; `share` is from 0 to 1. Unknown is None, and the
docstring, or a field `..._why`, gives the reason.
"""

from __future__ import annotations

import json
import math
import pkgutil
from dataclasses import Field, dataclass, field, fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import orjson

from pyprof import sanitize
from pyprof.process import output_file, overwrite_guard
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

VERSION = 1
"""Version of the schema: within it, fields are only added, never renamed, removed or redefined."""

_T = TypeVar("_T")
_KINDS: dict[str, type] = {}
_KIND_OF: dict[type, str] = {}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows, however many, that are written one by one; the last field of an answer."""

    tables: Iterable[pa.Table]
    """Tables of values that are valid JSON, or floats."""


_JSON = "json"


def not_in_json(**default: Any) -> Any:  # noqa: ANN401 - as `dataclasses.field`
    """Declare a field for views alone; `default` and `default_factory` are as in `field`."""
    return field(metadata={_JSON: False}, **default)


def json_fields(cls: type) -> list[Field[Any]]:
    """Return the fields of a dataclass that are in its JSON."""
    return [each for each in fields(cls) if each.metadata.get(_JSON, True)]


def answer(kind: str) -> Callable[[type[_T]], type[_T]]:
    """Register a dataclass as the answer of a command."""

    def register(cls: type[_T]) -> type[_T]:
        if kind in _KINDS:
            raise ValueError(f"there is an answer {kind!r} already")
        _KINDS[kind], _KIND_OF[cls] = cls, kind
        return cls

    return register


def kinds() -> Mapping[str, type]:
    """Return the classes of all answers, by kind."""
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return dict(sorted(_KINDS.items()))


def kind_of(given: object) -> str:
    """Return the kind of an answer: the name of its command."""
    return _KIND_OF[type(given)]


def write(target: str, given: object, warnings: Sequence[str] = ()) -> None:
    """Write an answer as the output of a command."""
    with output_file.open_output(target) as out:
        for chunk in chunks(given, warnings):
            out.write(chunk)


def document(given: object, warnings: Sequence[str] = ()) -> bytes:
    """Format an answer as JSON; see `chunks`."""
    return b"".join(chunks(given, warnings))


def chunks(given: object, warnings: Sequence[str] = ()) -> Iterator[bytes]:
    """Format an answer as JSON (RFC 8259) in UTF-8, part by part.

    NaN and infinity become null; a lone surrogate becomes U+FFFD.
    """
    content = {each.name: getattr(given, each.name) for each in json_fields(type(given))}
    streamed = [name for name, value in content.items() if isinstance(value, Rows)]
    rows = [content.pop(name) for name in streamed]
    head = dumps({**envelope(type(given), warnings), **plain(content)})
    if not streamed:
        yield head + b"\n"
        return
    yield head.removesuffix(b"\n}") + b",\n  " + dumps(streamed[0]) + b": ["
    separator = b"\n    "
    for line in row_lines(rows[0].tables):
        yield separator + line
        separator = b",\n    "
    yield b"\n  ]\n}\n"


def envelope(cls: type, warnings: Sequence[str] = ()) -> dict[str, object]:
    """Return the members with which the JSON of every answer begins."""
    as_given = overwrite_guard.current().restore_user_paths
    return {
        "schema_version": VERSION,
        "kind": _KIND_OF[cls],
        "pyprof_version": __version__,
        "warnings": [text(sanitize.redact_credentials(as_given(warning))) for warning in warnings],
    }


_BATCH_ROWS = 1 << 14


def row_lines(tables: Iterable[pa.Table]) -> Iterator[bytes]:
    """Format each row of Arrow tables as an object on one line; null, NaN and infinity are null."""
    for rows in tables:
        for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
            yield from map(orjson.dumps, batch.to_pylist())


def dumps(value: object) -> bytes:
    """Format a value of `plain` as indented JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)
    except TypeError:  # an integer beyond 64 bits
        return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).encode()


def plain(value: Any) -> Any:  # noqa: ANN401 - of any type
    """Convert dataclasses, mappings, sequences, NumPy values and strings to JSON types."""
    for types, make in _LEAVES:
        if isinstance(value, types):
            return make(value)
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in json_fields(type(value))}
    if hasattr(value, "items"):
        return {text(str(key)): plain(each) for key, each in value.items()}
    return None if value is None else [plain(each) for each in value]


def text(value: str) -> str:
    """Make text valid Unicode: paired surrogates become their character, others U+FFFD."""
    if value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_LEAVES: tuple[tuple[tuple[type, ...], Callable[[Any], object]], ...] = (
    ((str,), text),
    ((bool, np.bool_), bool),
    ((int, np.integer), int),
    ((float, np.floating), lambda value: float(value) if math.isfinite(value) else None),
)
