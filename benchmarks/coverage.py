"""How much of the GPU time of captures is explained: a Markdown row for each file.

Usage: python benchmarks/coverage.py [--model-config FILE] CAPTURE...

Shares of the GPU time: rows with an op, a layer (or range of the user's), a line of source, a known
cost, a decided use of Tensor Cores, a share of the roofline; and rows above their roof.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from pyprof.answers.parts import known_cost
from pyprof.errors import PyprofError
from pyprof.inputs import model_config
from pyprof.parse import record_file
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.coverage import cost_coverage
from pyprof.prof.table import Override, Table
from pyprof.render.text.known_cost_text import sentence


def _row(path: Path, override: Override) -> str:
    table = Table(record_file.load(str(path)), override)
    ns = table.duration_ns
    whole = max(int(ns.sum()), 1)
    says = [np.asarray(COLUMNS[name].values(table).is_valid()) for name in ("op", "layer", "line")]
    tc = np.array(COLUMNS["tc"].values(table).to_pylist(), object)
    share = table.roofline.share
    shares = [100 * ns[rows].sum() / whole
              for rows in (*says, tc != "?", np.isfinite(share), share > 1)]  # fmt: skip
    figures = (*shares[:3], cost_coverage(table).percent, *shares[3:])
    unknown = sentence(known_cost(cost_coverage(table))).partition("rows: ")[2] or "-"
    cells = (path.parent.name, str(table.records.rows), f"{whole / 1e6:.2f}",
             *(f"{figure:.1f}" for figure in figures), unknown)  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _line(path: Path, override: Override) -> str:
    try:
        return _row(path, override)
    except PyprofError as error:
        return f"| {path.parent.name} | {str(error).partition(': ')[2].partition(';')[0]} |"


def main(paths: list[str]) -> None:
    """Print the table."""
    override = Override()
    if paths[:1] == ["--model-config"]:
        override, paths = Override(model=model_config.read(paths[1])), paths[2:]
    shares = "op % | layer % | line % | cost % | tc decided % | eff % | above peak %"
    print(f"| capture | rows | GPU ms | {shares} | unknown |")
    print(f"|{'---|' * 11}")
    for path in paths:
        print(_line(Path(path), override))


if __name__ == "__main__":
    main(sys.argv[1:])
