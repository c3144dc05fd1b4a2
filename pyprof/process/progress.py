"""Progress bars on stderr, only if that is a terminal and the work is long."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import click

from pyprof.process import stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(length: int, label: str, least: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr if that is a terminal and there are at least `least` steps."""
    bar_of = cast("TextIO", stdio.Bar())
    hidden = not bar_of.isatty() or length < least
    with click.progressbar(length=length, label=label, file=bar_of, hidden=hidden) as bar:
        yield bar.update


_LONG_BYTES = 30_000_000
"""Input size from which reports take seconds."""


@contextmanager
def stage_bar(count: int, *files: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next of `count` stages on a progress bar.

    Shown only for large files, and unless `quiet`.
    """
    given_bytes = sum(Path(file).stat().st_size for file in files if Path(file).is_file())
    bar_of = cast("TextIO", stdio.Bar())
    hidden = quiet or not bar_of.isatty() or given_bytes < _LONG_BYTES
    with click.progressbar(
        length=count,
        show_eta=False,  # stages differ in length
        show_pos=True,
        item_show_func=lambda stage: stage,
        file=bar_of,
        update_min_steps=0,  # show the first stage, though none has ended
        hidden=hidden,
    ) as bar:
        ended = 0

        def begin(stage: str) -> None:
            nonlocal ended
            bar.update(ended, stage)
            ended = 1

        yield begin
        bar.update(count - bar.pos, "done")
