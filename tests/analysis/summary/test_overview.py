"""The brief of several captures: made of their briefs, or of all their rows, it is the same."""

import itertools
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from pyprof import schema
from pyprof.analysis.summary.layer_tree import Node
from pyprof.analysis.summary.overview import Brief, merge_briefs, summarise_brief
from pyprof.inputs import executor, source
from pyprof.parse import parse
from pyprof.prof.table import Override, Table
from tests.analysis import captures as built
from tests.analysis.captured import capture
from tests.analysis.captures import US, Range, Work, trace
from tests.analysis.together import together

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
@pytest.mark.parametrize("pair", [*itertools.pairwise(REAL), (REAL[2], REAL[2]), (OLD, OLD)])
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


# --- in any order -------------------------------------------------------------------------------


def _figures(brief: Brief) -> dict[str, Any]:
    """Collect what must not depend on the order of captures, rounded as sums of floats are."""
    steps, use = brief.steps, brief.utilization
    return {
        "steps": (steps.origin, steps.texts, steps.duration_ns.tolist(), steps.covered),
        "averaged": (brief.averaged, brief.chosen),
        "ops": [(*_op(op), op.above_peak, round(op.step_ns)) for op in brief.ops],
        "layers": [(*node, round(step.step_ns)) for node, (_, step)
                   in zip(_nodes(brief.layers), brief.layers.walk(), strict=True)],
        "coverage": (brief.coverage.total_ns, sorted(brief.coverage.unknown.items())),
        "parts": [*brief.phase_work.items()],
        "families": [*brief.families.items()],
        "vias": [*brief.vias.items()],
        "peaks": (brief.peaks, use.peak_flops_label, use.why),
        "shares": [round(share or 0, 9) for share in (use.mfu, use.hfu, use.mbu)],
        "gpus": sorted(map(str, brief.gpus)),
        "host": sorted(map(str, brief.host.to_pylist())) if brief.host is not None else None,
        "times": sorted(map(repr, brief.times.devices)) if brief.times else None,
        "notes": [*brief.times.notes] if brief.times else None,
        "warnings": sorted(brief.warnings),
        "advice": [(each.rule, each.title, each.action, each.gain_ns, each.evidence[0].total_ns)
                   for each in brief.advice],
    }  # fmt: skip


def check_orders(briefs: Sequence[Brief]) -> None:
    """Merge in every order, as the tree of workers and one by one: always the same."""
    expected = _figures(executor.tree(merge_briefs, briefs))
    for order in itertools.permutations(briefs):
        for merged in (executor.tree(merge_briefs, order), reduce(merge_briefs, order)):
            found = _figures(merged)
            for name, value in expected.items():
                assert found[name] == value, name


def _brief(net: schema.Capture, gpu_flops: float, chosen: str | None = None) -> Brief:
    override = Override(peak_flops=gpu_flops, peak_bandwidth=1e12)
    return summarise_brief(source.Source(Table(parse(net), override), net), chosen)


def _repeated(rounds: int, other_us: int) -> schema.Capture:
    """Write rounds of five kernels, which nothing marks, beside one long other kernel."""
    begins = [(90 * n + 10 * k) * US for n in range(rounds) for k in range(5)]
    work = [
        Work((at + 5 * US, at + 9 * US), (at, at + 2 * US), f"kernel_{place % 5}")
        for place, at in enumerate(begins)
    ]
    end = begins[-1] + 10 * US
    return built.capture([*work, Work((end, end + other_us * US), (end, end + US), "other")])


def _optimized() -> schema.Capture:
    ranges = [Range("Optimizer.step#Adam.step", (at, at + 10)) for at in (100, 200, 300)]
    work = [Work((at, at + 9), (at - 5, at - 2)) for at in (20, 106, 120, 250)]
    return built.capture(work, ranges=[*ranges, trace((0, 400), "/src/train.py:7")])


def test_captures_add_up_alike_in_every_order() -> None:
    """With steps of several kinds, numbers and certainty, and without any."""
    nets = {
        "marked": (built.training(4), 1e13),
        "marked, more": (built.training(6, first=100 * US), 2e13),
        "marked, as often": (built.training(6, first=900 * US), 3e13),
        "optimizer": (_optimized(), 1e13),
        "guessed": (_repeated(9, 1), 1e13),
        "guessed, of little": (_repeated(9, 9000), 1e13),
        "none": (_repeated(1, 5), 1e13),
    }
    briefs = {name: _brief(*given) for name, given in nets.items()}
    for some in (
        ("marked", "marked, more", "guessed", "none"),
        ("marked", "marked, more", "marked, as often"),
        ("optimizer", "guessed", "guessed, of little", "none"),
        ("guessed, of little", "none", "guessed, of little"),
    ):
        check_orders([briefs[name] for name in some])


def test_chosen_steps_add_up_alike_in_every_order() -> None:
    """`2:` is more steps of the capture that has more."""
    nets = (built.training(4), built.training(6), _optimized())
    briefs = [_brief(net, 1e13, "2:") for net in nets]
    check_orders(briefs)
    assert reduce(merge_briefs, briefs).averaged == (2, 6)


def test_what_is_of_other_steps_is_in_none() -> None:
    """The time of ops in a step is that of the captures with the surest steps."""
    marked, optimized = _brief(built.training(4), 1e13), _brief(_optimized(), 1e13)
    merged = merge_briefs(optimized, marked)
    assert merged.steps.origin == 'ranges "step N"'
    assert sum(op.step_ns for op in merged.ops) == sum(op.step_ns for op in marked.ops)
    assert merged.layers.step_ns == marked.layers.step_ns
    assert sum(op.total_ns for op in merged.ops) == merged.coverage.total_ns


IN_ORDERS = ("kineto-v100-resnet-ddp", "kineto-h100-vit-inference", "kineto-v100-resnet50-2021")


@pytest.mark.slow
def test_real_captures_add_up_alike_in_every_order(captures: Path) -> None:
    """Three with marked steps, 5, 1 and 6; one with guessed steps."""
    files = [captures / name / "trace.json.gz" for name in IN_ORDERS]
    files.append(captures / "nsys2024.6-a100-cudagraph" / "net.sqlite")
    check_orders([summarise_brief(source.load(str(file))) for file in files])
