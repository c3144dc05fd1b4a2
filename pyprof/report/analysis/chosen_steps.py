"""What `--steps` names, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyprof.report.analysis.steps import Steps, choose, find_steps

if TYPE_CHECKING:
    from pyprof.arrays import Mask
    from pyprof.inputs.source import Source


def bounds(steps: Steps, text: str | None) -> tuple[int, int] | None:
    """Read the option; None where it is not given. Naming no step is misuse."""
    if text is None:
        return None
    try:
        return choose(text, len(steps))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--steps'") from None


def rows(source: Source, text: str | None) -> Mask | None:
    """Find the rows of the steps that the option names; None, for all, where it is not given."""
    if text is None:
        return None
    capture_steps = find_steps(source.table.records, source.capture)
    return capture_steps.rows(bounds(capture_steps, text))
