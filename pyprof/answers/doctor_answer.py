"""`pyprof doctor --json`: what a machine lacks, or what a capture hides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof import sanitize
from pyprof.answers import answer
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.capture.machine import Finding
    from pyprof.schema import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureContent:
    """What a capture holds."""

    name: str
    """As the user wrote it."""
    tool: str
    """What wrote it."""
    tool_version: str | None
    """Its version; null if not recorded."""
    activity_count: int
    """Kernels, copies, fills, launches of graphs."""
    call_count: int
    """API calls."""
    range_count: int
    """Ranges."""


@dataclass(frozen=True, slots=True)
class MachineFinding:
    """One thing that was looked at on this machine."""

    state: str
    """ok, note or bad."""
    text: str
    """What is the case."""
    remedy: str
    """What to do, if possible a command; empty if nothing is."""


@answer("doctor")
@dataclass(frozen=True, slots=True)
class Doctor(Answer):
    """What this machine lacks for captures, or what a capture hides or distorts."""

    capture: CaptureContent | None
    """The capture; null if the machine was examined."""
    pitfalls: tuple[str, ...]
    """What the capture hides or distorts, each with what to do; empty: nothing is known."""
    machine: tuple[MachineFinding, ...]
    """What was found on this machine; empty if a capture was examined."""


def of_machine(findings: Iterable[Finding]) -> Doctor:
    """Make the answer from what was found on this machine."""
    found_here = (MachineFinding(each.state.value, each.text, each.remedy) for each in findings)
    return Doctor(None, (), tuple(found_here))


def of_capture(capture: Capture, name: str, pitfalls: Sequence[str]) -> Doctor:
    """Make the answer of a capture."""
    content = CaptureContent(
        name=sanitize.redact_credentials(name),
        tool=capture.tool,
        tool_version=capture.version or None,
        activity_count=capture.activities.num_rows,
        call_count=capture.calls.num_rows,
        range_count=capture.ranges.num_rows,
    )
    return Doctor(content, tuple(pitfalls), ())
