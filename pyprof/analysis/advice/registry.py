"""The registry of rules, which the modules of this package define, and what they could look at."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pyprof import schema
from pyprof.analysis.time.timeline import runs_alone
from pyprof.quantities import percent
from pyprof.records.merging import lists_by_key, merge_unique, merged_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Mask

GPU, KERNELS, NODES, CPU, TIMES, CAPTURE, OPS, COSTS, PEAKS, SMS, COUNTERS = (
    *("gpu", "kernels", "nodes", "cpu", "times", "capture"),
    *("ops", "costs", "peaks", "sms", "counters"),
)
"""What a rule may need. Without a GPU, subjects that need GPU are ignored, and those that need
KERNELS are reported as missing. NODES are the kernels and copies in graphs, which nsys may
record whole."""

_Find: TypeAlias = "Callable[[RuleContext], Advice | None]"


class Rule(NamedTuple):
    """A rule of advice."""

    find: _Find
    """Returns None if there is no evidence."""
    refuted_by: tuple[str, ...]
    """What only looks like evidence, or would make the advice untrue: it then finds nothing."""
    about: str
    """What it looks at."""
    needs: tuple[str, ...]
    """What it cannot do without, of the constants above."""


_RULES: dict[str, Rule] = {}


def rule(*refuted_by: str, about: str, needs: Sequence[str] = ()) -> Callable[[_Find], _Find]:
    """Register a function as a rule under its name, with the fields of `Rule`."""

    def register(find: _Find) -> _Find:
        name = find.__name__
        if name in _RULES:
            raise ValueError(f"there is a rule {name} already")
        _RULES[name] = Rule(find, refuted_by, about, tuple(needs))
        return find

    return register


def rules() -> dict[str, Rule]:
    """Load and return all rules, by name."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
    return dict(sorted(_RULES.items()))


_MAX_MISSING = 0.5
"""The share of the time above which missing data is reported."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The subjects of all rules that apply to the processor."""

    looked_at: tuple[str, ...] = merged_by(merge_unique, default=())
    missing: Mapping[str, tuple[str, ...]] = merged_by(lists_by_key, default_factory=dict)
    """By reason, the subjects that were not looked at in some capture."""

    @property
    def unseen(self) -> Mapping[str, tuple[str, ...]]:
        """By reason, the subjects that were looked at in no capture."""
        unseen = {
            reason: tuple(name for name in names if name not in self.looked_at)
            for reason, names in self.missing.items()
        }
        return {reason: names for reason, names in unseen.items() if names}


def find_scope(context: RuleContext) -> Scope:
    """Check which rules had what they need, for most of the time."""
    reasons = _reasons(context)
    looked_at: dict[str, None] = {}
    missing: dict[str, str] = {}
    for rule in rules().values():
        unmet = [reason for need in rule.needs if (reason := reasons[need]) is not None]
        if not unmet:
            looked_at[rule.about] = None
        elif _SILENT not in unmet:
            missing.setdefault(rule.about, unmet[0])
    by_reason: dict[str, tuple[str, ...]] = {}
    for about, reason in missing.items():
        if about not in looked_at:
            by_reason[reason] = (*by_reason.get(reason, ()), about)
    return Scope(tuple(looked_at), by_reason)


_SILENT = "nothing is amiss: this is for others"


def _reasons(context: RuleContext) -> Mapping[str, str | None]:
    """Return why each need is not met, for most of the time; None if it is."""
    table, on_cpu = context.table, context.kind(schema.CPU)
    has_gpu = _share(context, ~on_cpu) > 0
    # copies and fills need no op
    work = context.kind(schema.KERNEL) | context.kind(schema.GRAPH) | on_cpu

    def mostly(unknown: Mask, reason: str) -> str | None:
        share = _share(context, unknown & work) / (_share(context, work) or 1)
        text = reason.format(percent(share), "kernel" if has_gpu else "CPU")
        # what is known is looked at, and advised on, however little it is
        in_part = "{" in reason and percent(share) != percent(1)
        rest = "; only the rest was looked at" if in_part else ""
        return f"{text}{rest}" if share > _MAX_MISSING else None

    no_peak = context.class_matches(
        lambda each: each.flops_peak is None and each.bandwidth_peak is None
    )
    return {
        GPU: None if has_gpu else _SILENT,
        KERNELS: None if has_gpu else "judged on a GPU only",
        NODES: mostly(context.kind(schema.GRAPH), "{} of {} time is in CUDA graphs recorded whole"),
        CPU: None if _share(context, on_cpu) > 0 else _SILENT,
        TIMES: times_unknown(context),
        CAPTURE: _capture(context),
        OPS: mostly(context.without_op, "the op is unknown for {} of {} time"),
        COSTS: mostly(table.costs.unknown, "FLOPs or bytes are unknown for {} of {} time"),
        PEAKS: mostly(no_peak, "the GPU's peaks are unknown: add --gpu"),
        SMS: mostly(context.sm_count == 0, "the GPU's number of SMs is unknown"),
        COUNTERS: None if table.measured.any else _SILENT,
    }


def times_unknown(context: RuleContext) -> str | None:
    """Return why it is unknown what ran when in the program itself; None if it is known."""
    if "start" not in context.table.records.columns:
        return "the file has no times"
    if context.timeline is None:
        return _SILENT  # between rows that --where chose there is no idle time
    if runs_alone(context.capture):
        return "ncu runs each kernel alone"
    return "launches blocked (CUDA_LAUNCH_BLOCKING=1)" if context.timeline.blocking else None


def _capture(context: RuleContext) -> str | None:
    if context.capture is None:
        return _SILENT  # records of `pyprof parse`
    return None if context.capture.ranges.num_rows else "no ranges were recorded"


def _share(context: RuleContext, rows: Mask) -> float:
    total = context.ns[context.chosen].sum()
    return float(context.ns[context.chosen & rows].sum() / total) if total else 0.0
