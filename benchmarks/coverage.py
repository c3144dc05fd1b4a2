"""How much of the GPU time of captures is modelled: a Markdown row for each file.

Usage: python benchmarks/coverage.py CAPTURE...
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from pyprof.errors import PyprofError
from pyprof.parse import record_file
from pyprof.prof.columns import COLUMNS
from pyprof.prof.coverage import known
from pyprof.prof.table import Override, Table


def _row(path: Path) -> str:
    table = Table(record_file.load(str(path)), Override())
    ns = table.duration_ns
    whole = max(int(ns.sum()), 1)
    tc = np.array(COLUMNS["tc"].values(table).to_pylist(), object)
    share = table.roofline.share
    chosen = (tc != "?", np.isfinite(share), share > 1)
    figures = (known(table).percent, *(100 * ns[rows].sum() / whole for rows in chosen))
    unknown = known(table).text.partition("rows: ")[2] or "-"
    cells = (path.parent.name, str(table.records.rows), f"{whole / 1e6:.2f}",
             *(f"{figure:.1f}" for figure in figures), unknown)  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _line(path: Path) -> str:
    try:
        return _row(path)
    except PyprofError as error:
        return f"| {path.parent.name} | {str(error).partition(': ')[2].partition(';')[0]} |"


def main(paths: list[str]) -> None:
    """Print the table."""
    print("| capture | rows | GPU ms | cost % | tc decided % | eff % | above peak % | unknown |")
    print("|---|---|---|---|---|---|---|---|")
    for path in paths:
        print(_line(Path(path)))


if __name__ == "__main__":
    main(sys.argv[1:])
