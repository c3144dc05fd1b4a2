"""The texts of all ranges, each distinct one looked at once.

Two runs of an op differ in its sequence number and ids alone. These are taken out (and kept in
a column), so that millions of ranges come down to some hundreds of templates.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyprof.marker import Kind

NO_SEQ = -1

_ROWS = 1 << 16  # taken apart at once


@dataclass(frozen=True, slots=True)
class Texts:
    """Templates, and which of them each range has."""

    code: NDArray[np.int32]
    """Per range: its template."""
    seq: NDArray[np.int64]
    """Per range: its sequence number; NO_SEQ where it has none."""
    templates: list[str]
    kind: NDArray[np.int8]
    """Per template: what it is (`marker.Kind`)."""


def read_texts(text: pa.ChunkedArray) -> Texts:
    """Take the texts of ranges apart."""
    slices = [
        chunk.slice(start, _ROWS) for chunk in text.chunks for start in range(0, len(chunk), _ROWS)
    ]
    with ThreadPoolExecutor() as pool:  # Arrow works outside Python's lock
        parts = list(pool.map(_split, slices or [pa.array([], pa.string())]))
    coded = pa.chunked_array([part[0] for part in parts]).unify_dictionaries()
    templates = coded.chunk(0).dictionary.to_pylist()
    return Texts(
        code=np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks]),
        seq=np.concatenate([part[1] for part in parts]),
        templates=templates,
        kind=np.array([marker.classify(template) for template in templates], np.int8),
    )


def _split(text: pa.Array) -> tuple[pa.DictionaryArray, NDArray[np.int64]]:
    stripped = pc.replace_substring_regex(text, marker.TEMPLATE_PATTERN, r"\1")
    found = pc.extract_regex(text, marker.SEQ_PATTERN)
    numbers = pc.fill_null(pc.struct_field(found, "seq"), str(NO_SEQ)).cast(pa.int64())
    return stripped.dictionary_encode(), numbers.to_numpy()


def select(texts: Texts, wanted: NDArray[np.bool_] | NDArray[np.int64]) -> Texts:
    """Keep some of the ranges."""
    return Texts(texts.code[wanted], texts.seq[wanted], texts.templates, texts.kind)


def kinds(texts: Texts) -> NDArray[np.int8]:
    """Give the kind of each range."""
    return texts.kind[texts.code] if len(texts.code) else np.zeros(0, np.int8)


def tell(texts: Texts, kind: Kind, question: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Answer a question about each range: that of its template, False if of another kind."""
    answers = np.zeros(len(texts.templates), bool)
    for template in np.flatnonzero(texts.kind == kind).tolist():
        answers[template] = question(texts.templates[template])
    return answers[texts.code] if len(texts.code) else np.zeros(0, bool)
