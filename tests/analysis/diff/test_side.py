"""A side of a comparison is the same from its captures' sums as from all their rows."""

from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest

from pyprof.analysis.diff.side import Side, Sums, merge_sides, summarise_side
from pyprof.inputs import source
from tests.analysis.captured import capture
from tests.analysis.captures import training, write_dict
from tests.analysis.together import together
from tests.known import known

PERHAPS = ("shape", "dtype", "layer", "line")
"""Keys that a capture may know of no row."""


SUMS = ("time_ns", "busy_ns", "idle_ns", "exposed_ns", "rows")


def check(files: list[str], steps: str | None = None) -> tuple[Side, Side]:
    """Compare what was merged with what was found of all rows at once; return both."""
    names = ("op", *PERHAPS)
    sources = [source.load(file) for file in files]
    merged = reduce(merge_sides, [summarise_side(one, names, steps) for one in sources])
    whole = summarise_side(together(sources), names, steps)
    for name in ("chosen", "warnings", "step_count"):
        assert getattr(merged, name) == getattr(whole, name), name
    assert {*merged.gpus} == {*whole.gpus}
    assert merged.steps.median_ns == whole.steps.median_ns
    alike(merged.whole, whole.whole, names)
    return merged, whole


def alike(merged: Sums, whole: Sums, names: tuple[str, ...]) -> None:
    """Compare sums over the same rows."""
    for name in SUMS:
        assert getattr(merged, name) == getattr(whole, name), name
    assert (merged.flops, merged.bytes) == pytest.approx((whole.flops, whole.bytes), rel=1e-12)
    assert merged.filled == whole.filled
    assert merged.by(names) == whole.by(names)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("steps", [None, "1:3"])
def test_ranks_of_a_training_add_up(steps: str | None, tmp_path: Path) -> None:
    merged, whole = check(
        [
            str(capture(tmp_path / f"rank{rank}.sqlite", slower=slower, steps=4))
            for rank, slower in enumerate((1, 2, 1))
        ],
        steps,
    )
    assert merged.counted is not None
    assert whole.counted is not None
    alike(merged.counted.sums, whole.counted.sums, ("op", *PERHAPS))


def test_steps_of_another_kind_do_not_count(tmp_path: Path) -> None:
    """An evaluation next to the training is not part of its steps."""
    found = summarise_side(source.load(str(capture(tmp_path / "net.sqlite", steps=4))), ("op",))
    other = replace(found, steps=replace(found.steps, origin="Optimizer.step"))
    merged = merge_sides(found, other)
    assert merged.steps.kind == found.steps.kind
    assert merged.counted is found.counted
    assert merged.whole.rows == 2 * found.whole.rows


def test_steps_that_one_rank_alone_has_are_left_out(tmp_path: Path) -> None:
    """One was stopped after 3 steps; of each step, both have the rows."""
    files = [write_dict(tmp_path / f"{count}.dict", training(count)) for count in (5, 3)]
    sides = [summarise_side(source.load(str(file)), ("op",)) for file in files]
    counted = known(merge_sides(*sides).counted)
    kept = counted.in_all_captures(counted.samples.steps)
    assert kept.select(["step", "rows"]).to_pydict() == {"step": [0, 1, 2], "rows": [8.0] * 3}
