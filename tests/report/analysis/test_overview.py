"""The brief of several captures: made of their briefs, or of all their rows, it is the same."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import TYPE_CHECKING

import pytest

from pyprof.inputs import source
from pyprof.report.analysis.overview import Brief, merge_briefs, summarise_brief
from tests.report.captured import capture
from tests.report.together import together

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.report.analysis.layer_tree import Node

REAL = (
    "kineto-h100-vit-inference/trace.json.gz",
    "nsys2024.2-a100-pyprof-markers/net.sqlite",
    "nsys2026.2-h100x2-fsdp/net.sqlite",
    "nvprof-v100-apex/net.sql",
)
OLD = "nvprof-v100-apex/net.dict"


def check(files: list[str]) -> Brief:
    """Compare what was merged with what was found of all rows at once."""
    sources = [source.load(file) for file in files]
    whole, merged = (
        summarise_brief(together(sources)),
        reduce(merge_briefs, map(summarise_brief, sources)),
    )
    assert merged.coverage == whole.coverage
    assert merged.phases == whole.phases
    assert _nodes(merged.layers) == _nodes(whole.layers)
    assert [_op(op) for op in merged.ops] == [_op(op) for op in whole.ops]
    for mine, theirs in zip(merged.ops, whole.ops, strict=True):
        assert dict(mine.sums) == pytest.approx(dict(theirs.sums), rel=1e-12)
    if whole.times is not None and merged.times is not None:
        assert sorted(map(repr, merged.times.devices)) == sorted(map(repr, whole.times.devices))
    assert {entry.rule for entry in merged.advice} >= {entry.rule for entry in whole.advice}
    return merged


def _nodes(root: Node) -> list[tuple[object, ...]]:
    return [
        (depth, node.name, node.self_ns, node.self_rows, node.total_ns, node.rows)
        for depth, node in root.walk()
    ]


def _op(op: object) -> tuple[object, ...]:
    names = ("op", "dir", "line", "calls", "kernels", "total_ns", "share", "kernel", "bound", "tc")
    return tuple(getattr(op, name) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*itertools.combinations(REAL, 2), (REAL[2], REAL[2]), (OLD, OLD)])
def test_briefs_of_real_captures_add_up(pair: tuple[str, str], captures: Path) -> None:
    """Captures of different tools and machines; and one twice, whose processes are then four."""
    check([str(captures / file) for file in pair])


def test_ranks_of_a_training_add_up(tmp_path: Path) -> None:
    """Three ranks, one of them slower, whose steps are the same."""
    files = [
        str(capture(tmp_path / f"rank{rank}.sqlite", slower=slower, steps=4))
        for rank, slower in enumerate((1, 2, 1))
    ]
    found, whole = check(files), summarise_brief(together([source.load(file) for file in files]))
    assert found.times is not None
    assert len(found.times.devices) == 3
    assert len(found.steps) == 4
    assert found.steps.duration_ns.tolist() == whole.steps.duration_ns.tolist()
