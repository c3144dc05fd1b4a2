"""JSON texts from whole columns: a template filled once a row, by Arrow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_PLACE = re.compile(r"\$(\w+)")
_NS_PER_US = 1000


def fill(template: str, **columns: pa.Array) -> pa.Array:
    """Replace each `$name` of a template by that column's text, once a row.

    A row with a null in any of them becomes null.
    """
    parts = _PLACE.split(template)
    pieces = [columns[part] if place % 2 else part for place, part in enumerate(parts)]
    return pc.binary_join_element_wise(*pieces, "")


def microseconds(time_ns: NDArray[np.int64]) -> pa.Array:
    """Write ns as µs, which the format wants, to the ns."""
    whole, rest = np.divmod(time_ns, _NS_PER_US)
    rest_text = pc.utf8_lpad(pa.array(rest).cast(pa.string()), 3, "0")
    return pc.binary_join_element_wise(pa.array(whole).cast(pa.string()), rest_text, ".")


def integers(values: NDArray[np.int64]) -> pa.Array:
    """Write integers."""
    return pa.array(values).cast(pa.string())


def coded(values: Iterable[Any], index: NDArray[np.int64]) -> pa.Array:
    """Write each distinct value as JSON, then each row's; index -1 becomes `null`."""
    texts = [*(orjson.dumps(value).decode() for value in values), "null"]
    return pa.array(texts, pa.string()).take(pa.array(np.where(index < 0, len(texts) - 1, index)))


def numbers_or_null(column: pa.Array) -> pa.Array:
    """Write numbers, and `null` for what is not known."""
    return pc.fill_null(column.cast(pa.string()), "null")


def event(**fields: Any) -> str:  # noqa: ANN401 - JSON
    """Write a single event."""
    return orjson.dumps(fields).decode()
