"""Changes that were not tested on pairs of captures: what they could gain at most, by advice."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyprof import schema
from pyprof.analysis import advice
from pyprof.analysis.advice.registry import GPU, KERNELS, TIMES, rules, times_unknown
from pyprof.analysis.summary.overview import overview
from pyprof.analysis.summary.step_use import step_use, use_sums
from pyprof.answers.whatif_answer import RefusedChange, UpperBound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.inputs.source import Source


NO_GPU_WORK = "no GPU work was captured"


class _Bound(NamedTuple):
    rule: str
    """The advice whose gain it is."""
    absent: str
    """Why there is none."""
    code: str | None
    """The change in a PyTorch program; else, or if None, the advice's own words."""


BOUNDS: Mapping[str, _Bound] = {
    "--graphs": _Bound(
        "launch_bound",
        "the GPU does not wait for launches",
        "model = torch.compile(model, mode='reduce-overhead')",
    ),
    "--overlap": _Bound(
        "communication",
        "no communication runs while nothing is computed",
        None,
    ),
    "--fused-optimizer": _Bound(
        "unfused_optimizer",
        "no optimizer that has a fused form runs chains of small kernels",
        None,  # the advice need not know which optimizer it is
    ),
}
"""By the option that asks for it."""


def upper_bounds(source: Source, asked: Sequence[str]) -> Iterator[UpperBound | RefusedChange]:
    """Yield what each change could gain at most, or why it would gain nothing."""
    view = overview(source)
    context = advice.RuleContext(source.table, view.timeline, source.capture)
    of_rule = {entry.rule: entry for entry in advice.advise(context, view.steps) if not entry.once}
    no_gpu = context.kind(schema.CPU).all()
    use = step_use(use_sums(source, view.timeline, view.steps, None))
    per_step = use is None or use.step_count is not None
    for change in asked:
        rule, absent, code = BOUNDS[change]
        if change == "--graphs" and context.torch_device != "cuda":
            yield RefusedChange(change=change, why="the device has no CUDA graphs")
            continue
        entry = of_rule.get(rule)
        if entry is None or entry.gain_ns is None:
            needs = set(rules()[rule].needs)
            why = times_unknown(context) if TIMES in needs else None
            why = NO_GPU_WORK if no_gpu and {GPU, KERNELS} & needs else why or absent
            yield RefusedChange(change=change, why=why)
            continue
        words = entry.action.partition(";")[0]
        yield UpperBound(
            change=change,
            gain_ns=entry.gain_ns,
            gain_step_ns=entry.gain_ns / entry.steps if entry.steps and per_step else None,
            rows=len(entry.rows),
            title=entry.title,
            code=code if code and context.of_pytorch else words,
        )
