"""The outcome of each change of a trial, as text: a table, losses, kernels, the lines to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.quantities import DASH, counted, duration
from pyprof.render.text.formatting import heading, layout_table, percent, wrapped
from pyprof.trial.experiment import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.answers.try_answer import KernelChange, LossCheck, TrialBaseline, TriedChange, Try
    from pyprof.trial.experiment import TrialRun

HEADER = ("change", "verdict", "time", "95 % interval", "predicted", "memory", "losses")
TEXTS = (0, 1, 6)
"""Indices of the columns that are texts."""
_KERNELS = 3
_MAX_SHOWN = 100
_DIGITS = 5
_PATCH = "--change patch=FILE.py"
_NOTHING = (
    "the script's own summary advises nothing that try can apply; name a change with --change "
    "(pyprof try --list shows all)"
)


def trial(answer: Try) -> Iterator[str]:
    """Yield the lines of the report."""
    yield from wrapped(baseline_sentence(answer))
    yield ""
    if answer.changes:
        yield from layout_table(
            [row(each, answer.baseline) for each in answer.changes], HEADER, TEXTS
        )
    elif answer.complete:
        yield from wrapped(_NOTHING)
    if not answer.complete:
        yield "interrupted: some runs are missing"
    for each in answer.changes:
        yield ""
        yield heading(each.change)
        for sentence in sentences(each, answer.baseline):
            yield from wrapped(sentence, "  ")
        yield from (f"    {line}" for line in each.code.splitlines())
    yield ""
    for text in answer.not_tried:
        yield from wrapped(f"advised, but for you to write: {text}; {_PATCH} measures it")
    yield f"captures, raw times and try.json: {answer.folder}"


def baseline_sentence(answer: Try) -> str:
    """Say how long the script takes without a change, and how often that was measured."""
    base = answer.baseline
    what = "a step takes" if base.unit == "step" else "the script takes"
    runs = counted(base.run_count, "run")
    if base.unit == "step":
        runs += f" of {counted(base.step_count, 'step')}, by {base.steps_of}"
    device = f" on {base.device}" if base.device else ""  # unknown if the script loads no torch
    where = f"{answer.script}{device}, without a change"
    text = f"{where}: {what} {duration(base.time_ns)} ({runs})"
    if base.busy:
        text += f"; the machine is busy: runs vary by {percent(base.spread_share)} %"
    return text


def row(change: TriedChange, base: TrialBaseline) -> tuple[str, ...]:
    """Return the cells of a change."""
    ratio = change.time_ratio
    return (
        change.change,
        change.verdict,
        ratio_text(ratio.mid if ratio else None),
        f"{ratio_text(ratio.low)} to {ratio_text(ratio.high)}" if ratio else DASH,
        ratio_text(change.predicted_ratio),
        ratio_text(change.peak_memory_ratio),
        losses_cell(change, base),
    )


def ratio_text(value: float | None) -> str:
    """Format a ratio: `0.82x`; beyond a factor of 100, only this limit is shown."""
    if value is None:
        return DASH
    if value > _MAX_SHOWN:
        return f">{_MAX_SHOWN}x"
    return f"{value:.2f}x" if value >= 1 / _MAX_SHOWN else f"<{1 / _MAX_SHOWN:.2f}x"


def losses_cell(change: TriedChange, base: TrialBaseline) -> str:
    """Return in a few words whether losses are as without the change."""
    loss = change.loss
    if not loss.count:
        return DASH
    if loss.largest_relative_difference is None:
        return "not finite"
    if loss.within_noise:
        return "equal" if not base.loss_noise else "as without it"
    rounding = ", as by rounding" * loss.as_by_rounding
    return f"differ by {_format_percent(loss.largest_relative_difference)}{rounding}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def sentences(change: TriedChange, base: TrialBaseline) -> Iterator[str]:
    """Yield the notes on a change, besides its cells."""
    if change.why:
        repeats = change.why.startswith(change.verdict)
        yield change.why if repeats else f"{change.verdict}: {change.why}"
    sentence = losses_sentence(change.loss, base)
    if sentence:
        yield sentence
    yield from change.notes
    if change.kernels:
        yield f"kernels: {', '.join(map(_kernel, change.kernels[:_KERNELS]))}"


def losses_sentence(loss: LossCheck, base: TrialBaseline) -> str:
    """Say how a change alters the losses; "" if it does not."""
    if not loss.count or loss.within_noise or loss.last is None or loss.last_baseline is None:
        return ""
    repeats = "it repeats exactly"
    if base.loss_noise is None:
        repeats = "one run does not show how well it repeats"
    elif base.loss_noise:
        repeats = f"it repeats within {_format_percent(base.loss_noise)}"
    return (
        f"loss after {loss.count} backward passes {loss.last:.{_DIGITS}g} against "
        f"{loss.last_baseline:.{_DIGITS}g}; without the change {repeats}"
    )


def _kernel(kernel: KernelChange) -> str:
    name = kernel.op or "unknown"
    if kernel.before_ns is None:
        return f"{name} {duration(kernel.after_ns)} (new)"
    if kernel.after_ns is None:
        return f"{name} {duration(kernel.before_ns)} -> none"
    return f"{name} {duration(kernel.before_ns)} -> {duration(kernel.after_ns)}"


def run_line(run: TrialRun, step_ns: float | None) -> str:
    """Say in one line how a run went; `step_ns` is its median step, None without steps."""
    result, name = run.result, label(run.variant)
    if result.refused or result.no_effect:
        why = "; ".join({**result.no_effect, **result.refused}.values())
        return f"run {run.number}, {name}: refused: {why}"
    if result.code:
        return f"run {run.number}, {name}: failed: {result.error}"
    if run.mode != "time":
        return f"run {run.number}, {name}: {_PURPOSES[run.mode]}"
    if step_ns is None:
        return f"run {run.number}, {name}: {duration(result.wall_ns)}"
    steps = counted(len(result.step_ns), "step")
    return f"run {run.number}, {name}: {steps} of {duration(step_ns)}"


_PURPOSES = {"losses": "losses compared", "profile": "profiled"}
