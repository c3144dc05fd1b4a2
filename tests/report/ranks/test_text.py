"""The last lines name what stands out, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyprof import schema
from pyprof.report.analysis.layer_tree import NO_LAYER
from pyprof.report.ranks import tables as facts
from pyprof.report.ranks.findings import across
from pyprof.report.ranks.text import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

MS = 1_000_000
_RANK = {
    "device": 0, "source": "net.sqlite", "gpu": "A100", "rows": 9, "span_ns": 90 * MS,
    "busy_ns": 90 * MS, "idle_ns": 0, "compute_ns": 80 * MS, "communication_ns": 10 * MS,
    "exposed_ns": 10 * MS, "copy_ns": 0, "origin": 'ranges "step N"',
}  # fmt: skip


def _said(own_ms: list[float], layers: dict[str, list[int]]) -> str:
    """Give the words for ranks whose steps take 10 ms, so much of that for themselves."""
    ranks = range(len(own_ms))
    steps = [
        {"rank": rank, "step": step, "duration_ns": 10 * MS, "warm_up": False,
         "exposed_ns": round((10 - own_ms[rank]) * MS)}
        for rank in ranks for step in range(3)
    ]  # fmt: skip
    loads = [
        {"rank": rank, "layer": layer, "gpu_ns": times[rank] * MS}
        for layer, times in layers.items() for rank in ranks
    ]  # fmt: skip
    tables: list[tuple[pa.Schema, Sequence[Mapping[str, object]]]] = [
        (facts.RANKS, [{"rank": rank, **_RANK} for rank in ranks]),
        (facts.STEPS, steps),
        (facts.LAYERS, loads),
        (facts.SIGNATURES, []),
        (facts.COLLECTIVES, []),
    ]
    made = (
        schema.table(columns, {name: [row.get(name) for row in rows] for name in columns.names})
        for columns, rows in tables
    )
    return "\n".join(in_words(across(facts.RankTables(*made))))


CASES = {
    "nothing": ([8, 8.01, 7.99, 8], {}, ["No rank, link or layer stands out."]),
    "outside layers": ([8, 8], {NO_LAYER: [10, 20]}, ["No rank, link or layer stands out."]),
    "alone": ([8], {}, ["Only one rank: nothing to compare"]),
    "one": ([8, 8, 9, 8], {}, ["Rank 2 is the straggler", "9.000 ms, 1.000 ms more than"]),
    "a pair": ([8, 9], {}, ["Rank 1 is the straggler", "1.000 ms more than the other's"]),
    "a host": ([8, 8, 8, 9, 9], {}, ["Ranks 3 and 4 delay the others", "1.000 ms more than"]),
    "a layer": ([8, 8], {"net.head": [10, 20], "net": [7, 7]},
                ["Layer net.head is uneven: rank 1 spends 20.000 ms in it, 33.3 % more"]),
}  # fmt: skip


@pytest.mark.parametrize(("own", "layers", "expected"), CASES.values(), ids=CASES)
def test_what_stands_out_is_named(
    own: list[float], layers: dict[str, list[int]], expected: list[str]
) -> None:
    """With the figures that it rests on."""
    said = _said(own, layers)
    assert all(text in said for text in expected), said
