"""The answer of `pyprof summary`, made of the sums of all captures."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyprof import schema
from pyprof.analysis.summary import host_ops
from pyprof.analysis.summary.counter_totals import measured
from pyprof.analysis.summary.facts import facts
from pyprof.analysis.summary.layer_tree import layer_times
from pyprof.analysis.summary.op_totals import line_totals, op_times
from pyprof.analysis.summary.overview import PARTS
from pyprof.analysis.summary.phases import serving_phases
from pyprof.analysis.summary.step_use import gains_of, step_use, waited_ns
from pyprof.analysis.summary.utilization import part_mfu
from pyprof.analysis.summary.verdict import verdict
from pyprof.answers.gains import in_order
from pyprof.answers.parts import known_cost
from pyprof.answers.summary_answer import PartTime, PeakUse, StepTimes, Summary
from pyprof.records.merging import merge_sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.analysis.summary.overview import LoopSums, SummarySums
    from pyprof.analysis.summary.utilization import Utilization
    from pyprof.answers.summary_answer import MemoryPeak

_MAX_PEAKS = 4
"""Maximum number of peaks that are named."""


def summary(sums: SummarySums, memory: MemoryPeak | None = None) -> Summary:
    """Make the complete answer, with the memory that was recorded, too."""
    loop, use = _choose_surest(sums.loops)
    ops, devices, host = op_times(sums.ops, loop.op_steps), sums.devices, sums.host
    peaks = sorted(sums.peaks, key=lambda label: (-sums.peaks[label], label))
    families = sorted(sums.families.items(), key=lambda entry: (-entry[1], entry[0]))
    steps, total_ns = _step_times(loop, use), sums.coverage.total_ns
    step = step_use(loop.use)
    waits_ns = waited_ns(loop.use, devices.devices if devices else ())
    advice = sums.advice.with_waits(waits_ns, step.step_count if step else None)
    answer = Summary(
        verdict=(),
        step=step,
        library=sums.library,
        gpus=sums.gpus,
        peaks=tuple(peaks[:_MAX_PEAKS]),
        chosen=sums.kept,
        notes=tuple(devices.notes) if devices else (),
        known_cost=known_cost(sums.coverage),
        found_by_ns={
            name: sums.found_by[name] for name in (*schema.VIAS, "") if name in sums.found_by
        },
        steps=steps,
        devices=None if devices is None else devices.devices,
        parts=tuple(_parts(sums, use)),
        families_ns=dict(families),
        step_families_ns=loop.families,
        serving=serving_phases(loop.steps, loop.chosen),
        utilization=_peak_use(use),
        ops=ops,
        ops_left_out=0,
        lines=line_totals(ops),
        lines_left_out=0,
        layers=layer_times(sums.layers, loop.layer_steps),
        host_ops=None if host is None else host_ops.host_op_times(host),
        host_ops_left_out=0,
        host_ops_why=f"{host_ops.WHY_UNKNOWN}, and only without --where" if host is None else None,
        measured=None
        if sums.counters is None
        else measured(sums.counters, total_ns, steps.averaged_count, sums.token_count),
        facts=facts(sums.facts),
        memory=memory,
        advice=gains_of(step, advice.suggestions),
        advice_looked_at=sums.scope.looked_at,
        advice_missing=sums.scope.unseen,
        warnings=sums.warnings,
    )
    answer = replace(answer, advice=in_order(answer.advice, per_step=answer.is_per_step))
    return replace(answer, verdict=verdict(answer))


def _choose_surest(loops: Mapping[tuple[bool, int], LoopSums]) -> tuple[LoopSums, Utilization]:
    """The most reliable steps, and the utilization that goes with them."""
    surest = loops[max(loops)]
    counted = [loop.utilization for loop in loops.values()]
    if surest.averaged and not surest.steps.guessed:
        counted = [surest.utilization]
    elif surest.averaged:
        counted = [replace(use, steps=None) for use in counted]
    return surest, replace(reduce(merge_sums, counted), steps=surest.utilization.steps)


def _step_times(loop: LoopSums, use: Utilization) -> StepTimes:
    steps, averaged = loop.steps, loop.averaged
    durations = steps.duration_ns.tolist()
    shares = use.of_steps(durations)
    return StepTimes(
        count=len(steps),
        origin=steps.origin,
        guessed=steps.guessed,
        warm_up_count=steps.warm_up,
        covered_share=steps.covered if len(steps) else None,
        first=averaged and averaged[0],
        last=averaged and averaged[1] - 1,
        mean_ns=averaged and steps.mean_ns(averaged),
        median_ns=steps.median_ns,
        duration_ns=tuple(durations),
        mfu=shares.mfu,
        hfu=shares.hfu,
        mbu=shares.mbu,
        are_chosen=loop.chosen is not None,
        phase=tuple(each.phase for each in steps.stated),
        tokens=tuple(each.tokens for each in steps.stated),
    )


def _peak_use(use: Utilization) -> PeakUse:
    flops, bandwidth = use.flops_peak, use.bandwidth
    return PeakUse(
        mfu=use.mfu,
        hfu=use.hfu,
        why=use.why,
        model_flops=use.work.model_flops,
        hardware_flops=use.work.hardware_flops,
        peak_flops_per_s=flops and flops.value,
        peak_flops_label=flops.label if flops else "",
        mbu=use.mbu,
        peak_bytes_per_s=bandwidth and bandwidth.value,
        peak_bytes_label=bandwidth.label if bandwidth else "",
        known_share=use.known,
    )


def _parts(sums: SummarySums, use: Utilization) -> Iterator[PartTime]:
    for name in (*PARTS, ""):
        if name in sums.parts and (work := sums.parts[name]).busy_ns:
            yield PartTime(name or None, work.busy_ns, part_mfu(work, use.flops_peak))
