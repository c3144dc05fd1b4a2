"""`pyprof try --json`: what came of each change to a script that stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pyprof.answers import answer
from pyprof.trial.experiment import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.diff.compare import Change as OpChange
    from pyprof.analysis.trial.verdict import Baseline, Finding
    from pyprof.trial.experiment import Variant

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialBaseline:
    """The script without a change."""

    device: str
    """GPU, or CPU with torch's threads."""
    unit: Literal["step", "run"]
    """What times are of: the steps of the script, or whole runs where it has none."""
    steps_of: str | None
    """What ends a step: pyprof.step(), an optimizer, calls of a module; null: whole runs."""
    step_count: int
    """Steps timed in each run, warm-up included; 0: whole runs."""
    run_count: int
    """Runs without a change."""
    time_ns: float
    """Median over runs of the median step, or of whole runs."""
    spread_share: float | None
    """Standard deviation of that over runs, relative; null of a single run."""
    busy: bool
    """Runs vary so much that something else must be using the machine."""
    peak_memory_bytes: int | None
    """On the GPU, else resident in the process; null if unknown."""
    loss_count: int
    """Losses whose backward() was called; 0: none was."""
    loss_noise: float | None
    """Largest relative difference of a loss between runs, 0 if they repeat exactly; null of a
    single run or without losses."""
    capture: str | None
    """Capture of a profiled run; null if there is none."""


@dataclass(frozen=True, slots=True)
class TimeRatio:
    """Ratio of times with and without a change: a 95 % interval."""

    low: float
    """Lower end."""
    mid: float
    """Ratio of medians."""
    high: float
    """Upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCheck:
    """Losses with a change beside those without it."""

    count: int
    """How many were compared."""
    within_noise: bool | None
    """Whether they differ by no more than they do without the change; null if that is unknown."""
    largest_relative_difference: float | None
    """Largest difference of any loss; null without losses, or if one is not finite."""
    last: float | None
    """The last loss with the change; null without losses, or if not finite."""
    last_baseline: float | None
    """The last loss without it; null as `last`."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """An op whose kernels take another time with a change, by the profiled runs."""

    op: str | None
    """Its name; null if unknown."""
    status: str
    """faster, slower, new, gone, not significant."""
    before_ns: float | None
    """Time without the change, per step or of the capture; null: it is new."""
    after_ns: float | None
    """Time with it; null: it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedChange:
    """The outcome of a change, or of several together."""

    change: str
    """As --change takes it; several are joined by " + "."""
    verdict: Literal["faster", "slower", "no difference", "refused", "failed"]
    """By time alone; failed: the script raises, or a loss is not finite."""
    why: str
    """Reason of a refusal, a failure or of no difference; empty for the others."""
    time_ratio: TimeRatio | None
    """A ratio below 1 is faster; null if it was refused or failed."""
    predicted_ratio: float | None
    """Ratio of kernel times with and without it, predicted by `pyprof whatif` from the profiled run
    without it; null if no rule applies.
    """
    time_ns: float | None
    """Median step, or whole run, with the change; null if there was none."""
    peak_memory_ratio: float | None
    """Peak memory with it by that without it; null if unknown."""
    loss: LossCheck
    """Its effect on losses."""
    notes: tuple[str, ...]
    """What else was seen, such as graph breaks."""
    kernels: tuple[KernelChange, ...]
    """Ops that changed most, by the profiled runs; empty without these."""
    capture: str | None
    """Capture of a profiled run; null if there is none."""
    code: str
    """Lines to write into one's own code."""


@answer("try")
@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A script run with and without changes, in turn."""

    script: str
    """The script or module, with its arguments."""
    folder: str
    """Where captures, raw times (runs.jsonl) and this document (try.json) are."""
    complete: bool
    """False if it was interrupted: some runs are missing."""
    baseline: TrialBaseline
    """The script without a change."""
    changes: tuple[TriedChange, ...]
    """In the order of --change; what helped together comes last."""
    not_tried: tuple[str, ...] = ()
    """Advice on the script that none of the changes follows; empty where --change names them."""


def trial_baseline(measured: Baseline, capture: str | None) -> TrialBaseline:
    """Make that part of the answer."""
    return TrialBaseline(
        device=measured.device,
        unit="step" if measured.steps_of else "run",
        steps_of=measured.steps_of,
        step_count=measured.step_count,
        run_count=measured.run_count,
        time_ns=measured.step_ns,
        spread_share=measured.spread,
        busy=measured.busy,
        peak_memory_bytes=measured.peak_memory_bytes,
        loss_count=measured.loss_count,
        loss_noise=measured.loss_noise,
        capture=capture,
    )


def tried_change(
    finding: Finding,
    *,
    captures: Mapping[Variant, str],
    kernels: Sequence[OpChange],
    predicted: float | None,
) -> TriedChange:
    """Make the part of the answer about a change."""
    ratio, loss = finding.timing and finding.timing.ratio, finding.loss
    return TriedChange(
        change=label(finding.variant),
        verdict=finding.verdict,
        why=finding.why,
        time_ratio=TimeRatio(ratio.low, ratio.mid, ratio.high) if ratio else None,
        predicted_ratio=predicted,
        time_ns=finding.step_ns,
        peak_memory_ratio=finding.peak_memory_ratio,
        loss=LossCheck(
            count=loss.count,
            within_noise=loss.within_noise,
            largest_relative_difference=loss.largest_relative_difference,
            last=loss.last[0] if loss.last else None,
            last_baseline=loss.last[1] if loss.last else None,
        ),
        notes=finding.notes,
        kernels=tuple(
            KernelChange(
                change.key[0],
                change.status,
                change.a_ns if change.a else None,
                change.b_ns if change.b else None,
            )
            for change in kernels
        ),
        capture=captures.get(finding.variant),
        code="\n".join(chosen.code for chosen in finding.variant),
    )


def from_json(document: Mapping[str, Any]) -> Try | None:
    """Return the answer that a try.json holds; None if something else is in it."""
    try:
        changes = tuple(_change(each) for each in document["changes"])
        base = _filled(TrialBaseline, document["baseline"])
        return _filled(Try, {
            **document, "baseline": base, "changes": changes,
            "not_tried": tuple(document["not_tried"]),
        })  # fmt: skip
    except (LookupError, TypeError, AttributeError):
        return None


def _change(document: Mapping[str, Any]) -> TriedChange:
    ratio = document["time_ratio"]
    return _filled(TriedChange, {
        **document,
        "time_ratio": None if ratio is None else _filled(TimeRatio, ratio),
        "loss": _filled(LossCheck, document["loss"]),
        "notes": tuple(document["notes"]),
        "kernels": tuple(_filled(KernelChange, each) for each in document["kernels"]),
    })  # fmt: skip


def _filled(cls: type[_T], document: Mapping[str, Any]) -> _T:
    """Fill a dataclass from the fields of a document; those of later versions are left out."""
    return cls(**{each.name: document[each.name] for each in fields(cls)})  # type: ignore[arg-type]
