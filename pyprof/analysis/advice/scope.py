"""What advice looked at, and what it could not look at, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.registry import subjects
from pyprof.records.merging import lists_by_key, merge_unique, merged_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Mask

GPU, KERNELS, CPU, TIMES, CAPTURE, OPS, COSTS, PEAKS, SMS, COUNTERS = (
    *("gpu", "kernels", "cpu", "times", "capture", "ops", "costs", "peaks", "sms", "counters"),
)
"""What a rule may need: GPU for what a CPU cannot have, KERNELS where it lacks a rule alone."""

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


def find_scope(case: RuleContext) -> Scope:
    """Check which rules had what they need, for most of the time."""
    reasons = {need: check(case) for need, check in _CHECKS.items()}
    looked_at: dict[str, None] = {}
    missing: dict[str, str] = {}
    for about, needs in subjects().values():
        if any(reasons[need] == _SILENT for need in needs):
            continue
        reason = next((text for need in needs if (text := reasons[need])), None)
        if reason is None:
            looked_at[about] = None
        else:
            missing.setdefault(about, reason)
    by_reason: dict[str, tuple[str, ...]] = {}
    for about, reason in missing.items():
        if about not in looked_at:
            by_reason[reason] = (*by_reason.get(reason, ()), about)
    return Scope(tuple(looked_at), by_reason)


_SILENT = "nothing is amiss: this is for others"


def _gpu(case: RuleContext) -> str | None:
    return None if _share(case, ~case.kind(schema.CPU)) > 0 else _SILENT


def _kernels(case: RuleContext) -> str | None:
    return None if _gpu(case) is None else "judged on a GPU only"


def _cpu(case: RuleContext) -> str | None:
    return None if _share(case, case.kind(schema.CPU)) > 0 else _SILENT


def _times(case: RuleContext) -> str | None:
    if "start" not in case.table.records.columns:
        return "the file has no times"
    if case.timeline is None:
        return _SILENT  # between rows that --where chose there is no idle time
    if case.capture is not None and case.capture.tool == "ncu":
        return "ncu runs each kernel alone"
    return "launches blocked (CUDA_LAUNCH_BLOCKING=1)" if case.timeline.blocking else None


def _capture(case: RuleContext) -> str | None:
    if case.capture is None:
        return _SILENT  # records of `pyprof parse`
    return None if case.capture.ranges.num_rows else "no ranges were recorded"


def _ops(case: RuleContext) -> str | None:
    return _mostly(case, case.without_op, "the op is unknown for {} of {} time")


def _costs(case: RuleContext) -> str | None:
    costs = case.table.costs
    unknown = (costs.flops < 0) | ((costs.bytes < 0) & ~costs.helper)
    return _mostly(case, unknown, "FLOPs or bytes are unknown for {} of {} time")


def _peaks(case: RuleContext) -> str | None:
    number, classified = case.table.classified
    unknown = [each.flops_peak is None and each.bandwidth_peak is None for each in classified]
    return _mostly(
        case, np.array(unknown, bool)[number], "the GPU's peaks are unknown: name it with --gpu"
    )


def _sms(case: RuleContext) -> str | None:
    gpu = case.table.records.dictionary("gpu")
    unknown = [not case.table.device_of(name).sm_count for name in (*gpu.values, None)]
    return _mostly(case, np.array(unknown, bool)[gpu.index], "the GPU's number of SMs is unknown")


def _counters(case: RuleContext) -> str | None:
    return None if case.table.measured.any else _SILENT


def _mostly(case: RuleContext, unknown: Mask, reason: str) -> str | None:
    """Return the reason if it is that of most of the time."""
    # copies and fills need no op
    work = case.kind(schema.KERNEL) | case.kind(schema.GRAPH) | case.kind(schema.CPU)
    share = _share(case, unknown & work) / (_share(case, work) or 1)
    if share <= _MAX_MISSING:
        return None
    return reason.format(f"{100 * share:.0f} %", "CPU" if _gpu(case) == _SILENT else "kernel")


def _share(case: RuleContext, rows: Mask) -> float:
    total = case.ns[case.chosen].sum()
    return float(case.ns[case.chosen & rows].sum() / total) if total else 0.0


_CHECKS: Mapping[str, Callable[[RuleContext], str | None]] = {
    GPU: _gpu,
    KERNELS: _kernels,
    CPU: _cpu,
    TIMES: _times,
    CAPTURE: _capture,
    OPS: _ops,
    COSTS: _costs,
    PEAKS: _peaks,
    SMS: _sms,
    COUNTERS: _counters,
}
