"""The verdict of a summary: what bounds the work, and what to change first, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyprof.answers.parts import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One line of the verdict, with what proves it."""

    about: str
    """bound: what bounds the work; top: the line, or op, with most GPU time; gain: the largest
    gain; missing: what a better answer needs."""
    subject: str
    """What it names: for bound an idle cause, communication, copies or kernels; for top a line, an
    op or a kernel; for gain a rule; for missing gpu, costs or steps."""
    text: str
    """The sentence."""
    time_ns: float | None
    """The time that it speaks of, in a mean step if there are steps; null if none."""
    share: float | None
    """The same as a share of the step, or of the GPU time for top and missing; null if unknown."""
    evidence: tuple[Finding, ...]
    """What proves it, the most time first; never empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepUse:
    """What a GPU does in a mean step, or without steps in the whole capture: means over GPUs."""

    step_count: int | None
    """How many steps it is a mean of; null without steps."""
    gpu_count: int
    """How many GPUs, each as one process used it."""
    waits_known: bool
    """Whether calls that wait for the GPU are known; else their time counts as launch or host."""
    span_ns: float
    """The time of the step on the GPU, or from its first start to its last end, without pauses."""
    busy_ns: float
    """When anything ran."""
    compute_ns: float
    """When kernels ran, but those of collectives."""
    exposed_communication_ns: float
    """When collectives ran and nothing computed."""
    exposed_copy_ns: float
    """When copies ran and nothing else."""
    idle_by_cause_ns: Mapping[str, float]
    """When nothing ran, by cause."""
    late_row_ids: Mapping[str, tuple[int, ...]]
    """`idx` of the rows that began after the longest waits for a cause, at most 3; empty for causes
    that are not the main one of any GPU."""
