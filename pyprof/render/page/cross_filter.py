"""What a selection on the page is computed from: GPU time by everything that identifies a row.

A click on a line, a kernel, a point or a module reduces every other part to what shares time with
it. The page computes that itself, from the sums here.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.answers.page.report_answer import ATTRIBUTES, STACK_SEPARATOR
from pyprof.answers.summary_answer import NO_LAYER
from pyprof.render.text.formatting import part_name, short_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from pyprof.arrays import Int64Array

_MAX_FACTS = 4000
_CUT = 160


class FilterData:
    """The facts as a page holds them: each text once, facts as numbers; a key selects some."""

    def __init__(self, facts: pa.Table) -> None:
        order = [("ns", "descending"), *((name, "ascending") for name in ATTRIBUTES)]
        self._all = facts.sort_by(order)
        self._facts = self._all.slice(0, _MAX_FACTS)
        self._numbers: dict[str, dict[str | None, int]] = {name: {None: -1} for name in ATTRIBUTES}
        texts = {name: self._facts.column(name).to_pylist() for name in ATTRIBUTES}
        stacks = [stack.split(STACK_SEPARATOR) if stack else [] for stack in texts.pop("stack")]
        self._columns = {name: self._number_texts(name, column) for name, column in texts.items()}
        # a line is the same, whether it calls or launches
        self._lines_of = [self._number_texts("line", lines) for lines in stacks]

    def _number_texts(self, name: str, texts: Iterable[str | None]) -> list[int]:
        numbers = self._numbers[name]
        return [numbers.setdefault(text, len(numbers) - 1) for text in texts]

    def key(self, **texts: str | None) -> str | None:
        """Write the selection of a table's row: `op=3 dir=-1`; None if no fact can have it."""
        return _write_key({
            name: self._numbers["line" if name == "stack" else name].get(text)
            for name, text in texts.items()
        })  # fmt: skip

    @cached_property
    def _number(self) -> Mapping[tuple[str | None, ...], int]:
        return {texts: number for number, texts in enumerate(_texts(self._facts))}

    def numbers(self, rows: pa.Table) -> Int64Array:
        """Return the number of the fact with each row's ATTRIBUTES; -1 for none."""
        return np.array([self._number.get(texts, -1) for texts in _texts(rows)], np.int64)

    def numbers_of(self, name: str, rows: pa.Table) -> Int64Array:
        """Return the number of each row's text in one column; -1 for none."""
        texts = self._numbers[name]
        return np.array([texts.get(text, -1) for text in rows.column(name).to_pylist()], np.int64)

    def named_key(self, names: Mapping[str, str]) -> str | None:
        """Write a key of names as people read them, such as `(no op)` for no name."""
        by_text = self._numbers_by_text
        return _write_key({name: by_text[name].get(text) for name, text in names.items()})

    @cached_property
    def _numbers_by_text(self) -> Mapping[str, Mapping[str, int]]:
        return {
            name: {_format_text(name, text): number for text, number in self._numbers[name].items()}
            for name in ATTRIBUTES
        }

    def layers(self) -> list[str]:
        """Return the layers by number."""
        return [text for text in self._numbers["layer"] if text is not None]

    def data(self) -> Mapping[str, Any]:
        """Return everything as JSON can hold it, file names without directories."""
        whole_ns = sum(self._all.column("ns").to_pylist())
        kept_ns = self._facts.column("ns").to_pylist()
        return {
            "columns": {**self._columns, "stack": self._lines_of},
            "ns": kept_ns,
            "rows": self._facts.column("rows").to_pylist(),
            "texts": {
                name: [
                    _format_text(name, text)[:_CUT]
                    for text in self._numbers[name]
                    if text is not None
                ]
                for name in ATTRIBUTES
                if name != "stack"
            },
            "total_ns": whole_ns,
            "left_out": self._all.num_rows - self._facts.num_rows,
            "left_out_ns": whole_ns - sum(kept_ns),
        }


def _write_key(numbers: Mapping[str, int | None]) -> str | None:
    if None in numbers.values():
        return None
    return " ".join(f"{name}={number}" for name, number in numbers.items())


def _texts(rows: pa.Table) -> Iterator[tuple[str | None, ...]]:
    return zip(*(rows.column(name).to_pylist() for name in ATTRIBUTES), strict=True)


def _format_text(name: str, text: str | None) -> str:
    """Format a text as the page's tables do."""
    return NO_TEXT.get(name, "") if text is None else _FORMATS.get(name, str)(text)


_FORMATS = {"line": short_line, "dir": part_name}
NO_TEXT = {"layer": NO_LAYER, "op": "(no op)", "line": "(no line)", "dir": "unknown"}
"""What is shown if a fact has no text."""
