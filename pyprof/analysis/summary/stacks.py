"""Python stack, op and kernel of each row as one stack of frames, each distinct stack once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.parse.ranges.range_stacks import file_and_line
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.op_names import qualified
from pyprof.records.records import DictionaryColumn, RowTime, combinations, encode, time_by_value

if TYPE_CHECKING:
    from pyprof.prof.table import Table


class Frame(NamedTuple):
    """One level of a stack: a line of Python, or an op or kernel, which have no file."""

    file: str
    line: int
    name: str
    """Empty for a line, whose function is looked up in its file, if that is at hand."""


Stack = tuple[Frame, ...]

NO_FILE = "~"
"""The file name for frames without one, as pstats writes it for built-in functions."""


def stacks(table: Table) -> DictionaryColumn:
    """Return each row's stack, the outermost frame first: source lines, the op, the kernel.

    A backward kernel has that of its forward call.
    """
    trace = table.own_or_forward("trace")
    mod, op = (encode(COLUMNS[name].values(table)) for name in ("mod", "op"))
    kernel = table.records.dictionary("kShortName")
    parts = (trace.index, mod.index, op.index, kernel.index)
    first, key = combinations(*parts)
    together = np.lexsort([part[first] for part in reversed(parts)])  # groups lines, then ops
    number_of_stack: dict[Stack, int] = {}
    index = np.zeros(len(first), np.int64)
    for number, row in zip(together.tolist(), first[together].tolist(), strict=True):
        frames = []
        for line in trace.at(row) or ():
            place = file_and_line(line)  # None: a text of another form, a file without a line
            frames.append(Frame(*place, "") if place else Frame(line, 0, ""))
        if op.at(row) is not None:
            frames.append(Frame(NO_FILE, 0, qualified(mod.at(row), op.at(row))))
        stack = (*frames, Frame(NO_FILE, 0, kernel.values[kernel.index[row]]))
        index[number] = number_of_stack.setdefault(stack, len(number_of_stack))
    return DictionaryColumn(index[key], list(number_of_stack))


StackSums = dict[Stack, RowTime]


def sums(table: Table) -> StackSums:
    """Sum up the rows of each stack."""
    return time_by_value(stacks(table), table.duration_ns)
