"""TraceLens's tables of ops: each row with its call."""

import ast
import csv

from pyprof import marker
from pyprof.marker import Call
from pyprof.ops import dtypes
from tests.conftest import CAPTURES
from tests.known import known

TABLE = "tracelens_unified_perf_summary.csv"
MIB = 1 << 20


def rows(capture: str) -> list[tuple[dict[str, str], Call]]:
    """Read the rows of a capture's table that are of ops with recorded arguments."""
    with (CAPTURES / capture / TABLE).open(newline="") as file:
        return [(row, _call(row)) for row in csv.DictReader(file) if row["Input Dims"]]


def _call(row: dict[str, str]) -> Call:
    sizes, strides = ast.literal_eval(row["Input Dims"]), ast.literal_eval(row["Input Strides"])
    text = marker.encode_seq(
        row["name"].partition("->")[0],
        sizes=_lists(sizes),
        dtypes=_types(ast.literal_eval(row["Input type"])),
        strides=_lists(strides),
        inputs=list(ast.literal_eval(row["Concrete Inputs"])),
    )
    return known(marker.decode_seq(text).call)


def _types(given: object) -> object:
    if isinstance(given, tuple):
        return [_types(item) for item in given]
    return dtypes.canonical(str(given)) or ""


def _lists(given: object) -> object:
    return [_lists(item) for item in given] if isinstance(given, tuple) else given
