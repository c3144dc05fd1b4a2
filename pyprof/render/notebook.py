"""What a notebook shows of a recorded block: a head, and tables of ops, lines and advice.

One piece of HTML that stands by itself: no script, nothing to load, every text escaped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from pyprof.render.text.formatting import duration, milliseconds, part_name, percent, short_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.analysis.summary.op_totals import OpTotals
    from pyprof.analysis.summary.overview import Brief

_TOP = 10
_SHOWN_ADVICE = 3


def message(name: str, text: str) -> str:
    """Show a sentence in the place of tables."""
    return f"<div><b>{escape(name)}</b>: {escape(text)}</div>"


def tables(name: str, brief: Brief, notes: Sequence[str] = ()) -> str:
    """Show where the time of a block went."""
    parts = [*_head(name, brief, notes), *_ops(brief), *_lines(brief), *_advice(brief)]
    return f"<div>{''.join(parts)}</div>"


def _head(name: str, brief: Brief, notes: Sequence[str]) -> Iterator[str]:
    processor = brief.coverage.processor
    time = f"{duration(brief.coverage.total_ns)} of {processor} time"
    yield f"<p><b>{escape(name)}</b>: {escape(time)}; {escape(brief.coverage.text)}</p>"
    for text in (*notes, *brief.warnings):
        yield f"<p>{escape(text)}</p>"


def _ops(brief: Brief) -> Iterator[str]:
    rows = [
        (_name(op), part_name(op.dir), str(op.calls), milliseconds(op.total_ns),
         percent(op.share), short_line(op.line))
        for op in brief.ops[:_TOP]
    ]  # fmt: skip
    yield _table(("Op", "Direction", "Calls", "ms", "%", "Line"), rows, numbers=(2, 3, 4))
    yield _more(len(brief.ops), "ops")


def _lines(brief: Brief) -> Iterator[str]:
    lines = _by_line(brief)
    rows = [
        (short_line(line) if line else "unknown line", str(time.calls), milliseconds(time.total_ns),
         percent(time.share), ", ".join(time.ops))
        for line, time in lines[:_TOP]
    ]  # fmt: skip
    yield _table(("Line", "Calls", "ms", "%", "Ops"), rows, numbers=(1, 2, 3))
    yield _more(len(lines), "lines")


@dataclass(slots=True)
class _LineTime:
    """What the ops of one line add up to."""

    calls: int = 0
    total_ns: int = 0
    share: float = 0.0
    ops: dict[str, None] = field(default_factory=dict)


def _by_line(brief: Brief) -> list[tuple[str | None, _LineTime]]:
    """Add up ops by line, the most time first."""
    times: dict[str | None, _LineTime] = {}
    for op in brief.ops:
        time = times.setdefault(op.line, _LineTime())
        time.calls += op.calls
        time.total_ns += op.total_ns
        time.share += op.share
        time.ops[_name(op)] = None
    return sorted(times.items(), key=lambda entry: (-entry[1].total_ns, entry[0] or ""))


def _name(op: OpTotals) -> str:
    return op.op or op.unnamed or "unknown"


def _advice(brief: Brief) -> Iterator[str]:
    entries = brief.advice[:_SHOWN_ADVICE]
    items = (
        f"<li>{escape(entry.title)}: {escape(entry.action)}"
        f" (at most {milliseconds(entry.gain_ns)} ms)</li>"
        for entry in entries
    )
    if entries:
        yield f"<p>Potential gains</p><ul>{''.join(items)}</ul>"


def _more(count: int, what: str) -> str:
    return f"<p>... and {count - _TOP} more {what}</p>" if count > _TOP else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int]) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        sides = ("right" if place in numbers else "left" for place in range(len(row)))
        return "".join(
            f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', header)}</tr></thead><tbody>{body}</tbody></table>"
