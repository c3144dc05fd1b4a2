"""`pyprof doctor --json`: what a machine lacks, or what a capture hides or distorts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof import sanitize
from pyprof.answers import answer
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.schema import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureContent:
    """What was recorded in a capture."""

    name: str
    """Its path, as the user wrote it."""
    tool: str
    """The tool that wrote it."""
    tool_version: str | None
    """The version of that tool; null if not recorded."""
    activity_count: int
    """Number of kernels, copies, fills and graph launches."""
    call_count: int
    """Number of API calls."""
    range_count: int
    """Number of ranges."""


@dataclass(frozen=True, slots=True)
class MachineFinding:
    """The result of one check of this machine."""

    state: str
    """ok, note or bad."""
    text: str
    """What was found."""
    remedy: str
    """What to do, a command if possible; empty if there is nothing to do."""


@answer("doctor")
@dataclass(frozen=True, slots=True)
class Doctor(Answer):
    """What this machine lacks for captures, or what a capture hides or distorts."""

    capture: CaptureContent | None
    """What the capture holds; null if the machine was examined."""
    pitfalls: tuple[str, ...]
    """What the capture hides or distorts, each with a remedy; empty if nothing was found."""
    machine: tuple[MachineFinding, ...]
    """The checks of this machine; empty if a capture was examined."""


def of_capture(capture: Capture, name: str, pitfalls: Sequence[str]) -> Doctor:
    """Build the answer about a capture."""
    content = CaptureContent(
        name=sanitize.redact_credentials(name),
        tool=capture.tool,
        tool_version=capture.version or None,
        activity_count=capture.activities.num_rows,
        call_count=capture.calls.num_rows,
        range_count=capture.ranges.num_rows,
    )
    return Doctor(content, tuple(pitfalls), ())
