"""What a notebook shows of a recorded block: verdict, advice, tables of ops and lines.

One self-contained piece of HTML: no script, nothing to load, every text escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyprof.answers.gains import gain_of, worth_a_look
from pyprof.quantities import counted, duration
from pyprof.render.text.formatting import milliseconds, part_name, percent, short_line
from pyprof.render.text.known_cost_text import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.answers.summary_answer import Summary

_TOP = 10
_SHOWN_ADVICE = 3


def message(name: str, text: str) -> str:
    """Show a sentence instead of tables."""
    return f"<div><b>{escape(name)}</b>: {escape(text)}</div>"


def tables(name: str, answer: Summary, notes: Sequence[str] = ()) -> str:
    """Where the time of a block went."""
    known = answer.known_cost
    time = f"{duration(known.total_ns)} of {known.processor} time"
    about = (sentence(known), *notes, *answer.warnings)
    parts = [
        f"<p><b>{escape(name)}</b>: {escape(time)}</p>",
        *(f"<p>{escape(each.text)}</p>" for each in answer.verdict),
        *_advice(answer),
        *_ops(answer),
        *_lines(answer),
        *(f"<p>{escape(text)}</p>" for text in about),
    ]
    return f"<div>{''.join(parts)}</div>"


def _ops(answer: Summary) -> Iterator[str]:
    rows = [
        (op.op or op.kernel or "unknown", part_name(op.dir), str(op.calls),
         milliseconds(op.time_ns), percent(op.share), short_line(op.line))
        for op in answer.ops[:_TOP]
    ]  # fmt: skip
    yield _table(("Op", "Direction", "Calls", "ms", "%", "Line"), rows, numbers=(2, 3, 4))
    yield _rows_left_out(len(answer.ops), "op")


def _lines(answer: Summary) -> Iterator[str]:
    rows = [
        (short_line(line.line) if line.line else "unknown line", str(line.calls),
         milliseconds(line.time_ns), percent(line.share),
         ", ".join(name or "unknown" for name in line.ops))
        for line in answer.lines[:_TOP]
    ]  # fmt: skip
    yield _table(("Line", "Calls", "ms", "%", "Ops"), rows, numbers=(1, 2, 3))
    yield _rows_left_out(len(answer.lines), "line")


def _advice(answer: Summary) -> Iterator[str]:
    entries = worth_a_look(answer.advice)[:_SHOWN_ADVICE]
    items = (
        f"<li>{escape(entry.title)}: {escape(entry.action)}"
        f" (gain {escape(gain_of(entry).words)})</li>"
        for entry in entries
    )
    if entries:
        yield f"<p>What to do</p><ul>{''.join(items)}</ul>"


def _rows_left_out(count: int, what: str) -> str:
    return f"<p>... and {counted(count - _TOP, f'more {what}')}</p>" if count > _TOP else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int]) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        sides = ("right" if index in numbers else "left" for index in range(len(row)))
        return "".join(
            f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', header)}</tr></thead><tbody>{body}</tbody></table>"
