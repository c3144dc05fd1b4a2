"""The summary of several captures is the same from their sums as from all their rows."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from pyprof import schema
from pyprof.analysis.summary.composition import summary
from pyprof.analysis.summary.overview import SummarySums, summarise
from pyprof.answers import plain
from pyprof.answers.summary_answer import DeviceUse, LayerTime, OpTime, Summary
from pyprof.inputs import executor, source
from pyprof.parse import parse
from pyprof.prof.table import Override, Table
from pyprof.records.merging import merge_sums
from tests.analysis import captures as built
from tests.analysis.answered import answered
from tests.analysis.captured import capture
from tests.analysis.captures import US, Work
from tests.analysis.together import together


def check(files: list[str]) -> Summary:
    """Compare what was merged with what was found of all rows at once."""
    sources = [source.load(file) for file in files]
    whole = answered(together(sources))
    merged = summary(reduce(merge_sums, map(summarise, sources)))
    assert merged.known_cost == whole.known_cost
    assert [(part.part, part.time_ns) for part in merged.parts] == [
        (part.part, part.time_ns) for part in whole.parts
    ]
    for name, fields in (("layers", _layer), ("ops", _op)):
        assert [*map(fields, getattr(merged, name))] == [*map(fields, getattr(whole, name))]
    for mine, theirs in zip(merged.ops, whole.ops, strict=True):
        assert (mine.flops_per_s or 0) == pytest.approx(theirs.flops_per_s or 0, rel=1e-12)
    if whole.devices is not None and merged.devices is not None:
        assert sorted(map(_device, merged.devices)) == sorted(map(_device, whole.devices))
    assert {entry.rule for entry in merged.advice} >= {entry.rule for entry in whole.advice}
    return merged


def _layer(layer: LayerTime) -> tuple[object, ...]:
    return layer.path, layer.own_ns, layer.time_ns, layer.rows


def _op(op: OpTime) -> tuple[object, ...]:
    names = ("op", "dir", "line", "calls", "kernels", "time_ns", "share", "kernel", "bound", "tc")
    return tuple(getattr(op, name) for name in names)


def _device(device: DeviceUse) -> str:
    return repr(replace(device, pid=-1))


@pytest.mark.slow
def test_ranks_of_a_training_add_up(tmp_path: Path) -> None:
    files = [
        str(capture(tmp_path / f"rank{rank}.sqlite", slower=slower, steps=4))
        for rank, slower in enumerate((1, 2, 1))
    ]
    found, whole = check(files), answered(together([source.load(file) for file in files]))
    assert len(found.devices or ()) == 3
    assert found.steps.count == 4
    assert found.steps.duration_ns == whole.steps.duration_ns


_BY_ORDER = {"row_ids", "late_row_ids", "evidence"}
"""Rows are numbered on from capture to capture; of equal evidence some is left out."""


def _content(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """Return an answer to 9 digits, lists sorted, without what depends on the order of captures."""
    if isinstance(value, dict):
        return {name: _content(value[name]) for name in value.keys() - _BY_ORDER}
    if isinstance(value, list):
        return sorted((_content(each) for each in value), key=repr)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def check_orders(sums: Sequence[SummarySums]) -> None:
    """Merge in every order and grouping: always the same."""
    expected = _content(plain(summary(executor.tree(merge_sums, sums))))
    for order in itertools.permutations(sums):
        for merged in (executor.tree(merge_sums, order), reduce(merge_sums, order)):
            found = _content(plain(summary(merged)))
            for name, value in expected.items():
                assert found[name] == value, name


def _sums(net: schema.Capture, gpu_flops: float, chosen: str | None = None) -> SummarySums:
    override = Override(peak_flops=gpu_flops, peak_bandwidth=1e12)
    return summarise(source.Source(Table(parse(net), override), net), chosen)


def _repeated(rounds: int, other_us: int) -> schema.Capture:
    """Write rounds of five kernels, which nothing marks, beside one long other kernel."""
    begins = [(90 * n + 10 * k) * US for n in range(rounds) for k in range(5)]
    work = [
        Work((at + 5 * US, at + 9 * US), (at, at + 2 * US), f"kernel_{place % 5}")
        for place, at in enumerate(begins)
    ]
    end = begins[-1] + 10 * US
    return built.capture([*work, Work((end, end + other_us * US), (end, end + US), "other")])


@pytest.mark.slow
def test_captures_add_up_in_every_order() -> None:
    nets = {
        "marked": (built.training(4), 1e13),
        "marked, more": (built.training(6, first=100 * US), 2e13),
        "marked, as often": (built.training(6, first=900 * US), 3e13),
        "optimizer": (built.optimized(), 1e13),
        "guessed": (_repeated(9, 1), 1e13),
        "guessed, of little": (_repeated(9, 9000), 1e13),
        "none": (_repeated(1, 5), 1e13),
    }
    found = {name: _sums(*given) for name, given in nets.items()}
    for some in (
        ("marked", "marked, more", "guessed", "none"),
        ("marked", "marked, more", "marked, as often"),
        ("guessed, of little", "none", "guessed, of little"),
        ("optimizer", "guessed", "guessed, of little", "none"),
    ):
        check_orders([found[name] for name in some])


@pytest.mark.slow
def test_chosen_steps_add_up_in_every_order() -> None:
    """`2:` is more steps of the capture that has more."""
    nets = (built.training(4), built.training(6), built.optimized())
    found = [_sums(net, 1e13, "2:") for net in nets]
    check_orders(found)
    steps = summary(reduce(merge_sums, found)).steps
    assert (steps.first, steps.last) == (2, 5)
