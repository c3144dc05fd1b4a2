"""What all ranges state, each distinct statement looked at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker
from pyprof.arrays import ints
from pyprof.records.records import first_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray
    from pyprof.marker import Kind, Statement

NO_SEQ = -1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Texts:
    """Distinct statements, and which of them each range makes."""

    code: NDArray[np.int32]
    """Per range: its statement."""
    seq: Int64Array
    """Per range: its sequence number; NO_SEQ where it has none."""
    statements: list[Statement]
    kind: NDArray[np.int8]
    """Per statement: what it is (`marker.Kind`)."""


def read_texts(ranges: pa.Table) -> Texts:
    """Look at the texts of a table of ranges."""
    text = ranges.column("text").unify_dictionaries()
    templates = text.chunk(0).dictionary.to_pylist() if text.num_chunks else []
    kind = answers([*map(marker.without_sizes, templates)], marker.classify)
    code = np.concatenate([np.zeros(0, np.int32), *(part.indices for part in text.chunks)])
    return Texts(
        code,
        ints(ranges.column("seq"), NO_SEQ),
        [*map(marker.statement, templates)],
        np.array(kind, np.int8),
    )


def answers(texts: Sequence[str], question: Callable[[str], T]) -> list[T]:
    """Answer a question about texts that does not depend on which numbers stand in them.

    It is asked once for all that differ in numbers alone, as the names of steps do.
    """
    words = pc.replace_substring_regex(pa.array(texts, pa.string()), r"\d+", "0")
    number = words.dictionary_encode().indices.to_numpy()
    answer = [question(texts[row]) for row in first_rows(number).tolist()]
    return [answer[place] for place in number.tolist()]


def where(text: pa.ChunkedArray, question: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """Answer a question about each text of a table of ranges, by asking it of the templates."""
    answers = [question(part.dictionary).take(part.indices) for part in text.chunks]
    return pa.chunked_array(answers, pa.bool_())


def select(texts: Texts, wanted: NDArray[np.bool_] | IntArray) -> Texts:
    """Keep some of the ranges."""
    return Texts(texts.code[wanted], texts.seq[wanted], texts.statements, texts.kind)


def kinds(texts: Texts) -> NDArray[np.int8]:
    """The kind of each range."""
    return texts.kind[texts.code] if len(texts.code) else np.zeros(0, np.int8)


def matches(texts: Texts, kind: Kind, question: Callable[[Statement], bool]) -> NDArray[np.bool_]:
    """Ask each statement of a kind; give each range its statement's answer, False if of another."""
    answers = np.zeros(len(texts.statements), bool)
    for place in np.flatnonzero(texts.kind == kind).tolist():
        answers[place] = question(texts.statements[place])
    return answers[texts.code] if len(texts.code) else np.zeros(0, bool)
