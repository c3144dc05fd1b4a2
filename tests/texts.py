"""The texts of ranges, written and read by tests unchanged."""

from collections.abc import Sequence

import pyarrow as pa

from pyprof.marker import templates


def apart(texts: Sequence[str]) -> dict[str, pa.Array]:
    """Write the columns of `schema.RANGES` that hold these texts."""
    found = templates.split(pa.array(texts, pa.string()))
    return dict(zip(templates.NAMES, found.flatten(), strict=True))


def with_texts(ranges: pa.Table) -> pa.Table:
    """Put the texts of some ranges together in their column `text`."""
    place = ranges.column_names.index("text")
    return ranges.set_column(place, "text", templates.spell(templates.texts_of_table(ranges)))


def texts(ranges: pa.Table) -> list[str]:
    found: list[str] = with_texts(ranges).column("text").to_pylist()
    return found
