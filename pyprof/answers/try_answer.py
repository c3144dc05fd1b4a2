"""`pyprof try --json`: the effect of each change to a script whose file stays as it is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from pyprof.answers import answer

if TYPE_CHECKING:
    from collections.abc import Mapping


_T = TypeVar("_T")
Verdict: TypeAlias = Literal["faster", "slower", "no difference", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialBaseline:
    """The script without any change."""

    device: str
    """The GPU, or the CPU with the number of torch's threads."""
    unit: Literal["step", "run"]
    """What was timed: steps of the script, or whole runs if it has none."""
    steps_of: str | None
    """What ends a step: pyprof.step(), an optimizer, or calls of a module; null for whole runs."""
    step_count: int
    """Number of steps timed in each run, including warm-up; 0 for whole runs."""
    run_count: int
    """Number of runs without a change."""
    time_ns: float
    """Median over runs of the median step, or of whole runs."""
    spread_share: float | None
    """Relative standard deviation of that over runs; null for a single run."""
    busy: bool
    """Whether runs vary so much that something else must be using the machine."""
    peak_memory_bytes: int | None
    """Peak memory on the GPU, else of the process (resident); null if unknown."""
    loss_count: int
    """Number of losses whose backward() was called."""
    loss_noise: float | None
    """Largest relative difference of a loss between runs, 0 if they repeat exactly; null for a
    single run or without losses."""
    capture: str | None
    """Path of the capture of a profiled run; null if there is none."""


@dataclass(frozen=True, slots=True)
class TimeRatio:
    """Ratio of the time with a change to that without it, with its 95 % interval."""

    low: float
    """Lower end."""
    mid: float
    """Ratio of medians."""
    high: float
    """Upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCheck:
    """Losses with a change, compared with those without it."""

    count: int
    """Number of compared losses."""
    within_noise: bool | None = None
    """Whether they differ by no more than they do without the change; null if that is unknown."""
    as_by_rounding: bool = False
    """Whether they differ by more than that, but by less than 0.001 %, as of another order."""
    largest_relative_difference: float | None = None
    """Largest difference of a loss; null without losses, or if one is not finite."""
    last: float | None = None
    """The last loss with the change; null without losses, or if not finite."""
    last_baseline: float | None = None
    """The last loss without it; null if `last` is."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """An op whose kernels take another time with a change, by the profiled runs."""

    op: str | None
    """Its name; null if unknown."""
    status: str
    """faster, slower, new, gone or not significant."""
    before_ns: float | None
    """Time without the change, per step or in the whole capture; null if it is new."""
    after_ns: float | None
    """Time with the change; null if it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedChange:
    """The outcome of a change, or of several together."""

    change: str
    """The change as --change takes it; several are joined by " + "."""
    verdict: Verdict
    """By time alone; failed: the script raises, or a loss is not finite."""
    why: str
    """Reason for a refusal, a failure or no difference; else empty."""
    time_ratio: TimeRatio | None
    """Ratio of times, below 1 if faster; null if the change was refused or failed."""
    predicted_ratio: float | None
    """Ratio of kernel times with and without it, predicted by `pyprof whatif` from the profiled run
    without it; null if no rule applies.
    """
    time_ns: float | None
    """Median time of a step, or of whole runs, with the change; null if none was timed."""
    peak_memory_ratio: float | None
    """Peak memory with the change divided by that without it; null if unknown."""
    loss: LossCheck
    """The effect on losses."""
    notes: tuple[str, ...]
    """Other observations, such as graph breaks."""
    kernels: tuple[KernelChange, ...]
    """The ops that changed most between the profiled runs; empty without such runs."""
    capture: str | None
    """Path of the capture of a profiled run; null if there is none."""
    code: str
    """Lines to add to the script to keep the change."""


@answer("try")
@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A script that was run with and without changes, alternately."""

    script: str
    """The script or module, with its arguments."""
    folder: str
    """Folder of the captures, raw times (runs.jsonl) and this document (try.json)."""
    complete: bool
    """False if the trial was interrupted, so that runs are missing."""
    baseline: TrialBaseline
    """The script without any change."""
    changes: tuple[TriedChange, ...]
    """The changes in the order of --change; last, those that helped, together."""
    not_tried: tuple[str, ...] = ()
    """Advice about the script that no tried change follows; empty if --change was given."""


def from_json(document: Mapping[str, Any]) -> Try | None:
    """Return the answer in a try.json; None if the document is something else."""
    try:
        changes = tuple(_change(each) for each in document["changes"])
        base = _fill(TrialBaseline, document["baseline"])
        return _fill(Try, {
            **document, "baseline": base, "changes": changes,
            "not_tried": tuple(document["not_tried"]),
        })  # fmt: skip
    except (LookupError, TypeError, AttributeError):
        return None


def _change(document: Mapping[str, Any]) -> TriedChange:
    ratio = document["time_ratio"]
    return _fill(TriedChange, {
        **document,
        "time_ratio": None if ratio is None else _fill(TimeRatio, ratio),
        "loss": _fill(LossCheck, document["loss"]),
        "notes": tuple(document["notes"]),
        "kernels": tuple(_fill(KernelChange, each) for each in document["kernels"]),
    })  # fmt: skip


def _fill(cls: type[_T], document: Mapping[str, Any]) -> _T:
    """Fill a dataclass from the fields of a document; those of later versions are left out."""
    return cls(**{each.name: document[each.name] for each in fields(cls)})  # type: ignore[arg-type]
