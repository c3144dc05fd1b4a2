"""`pyprof memory FILE...`: what filled the memory of the GPU, when, and who holds it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyprof.cli.command import Command
from pyprof.cli.option_types import Choice
from pyprof.cli.options import json_option, output_option, top_option
from pyprof.errors import CaptureError
from pyprof.process import output_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.allocations.read import Recorded
    from pyprof.analysis.memory.held_memory import Moment
    from pyprof.answers.memory_answer import Memory
    from pyprof.inputs.source import Source

_STACKS = ("collapsed", "folded")
_KEYS = ("category", "layer", "line", "op", "function", "direction", "size", "evidence", "stack")
_DEFAULT_KEYS = ("category", "layer", "line", "direction")


_UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_AT = re.compile(r"(\d{1,15})(?:(\.\d{1,15})?\s*(ns|us|ms|s))?", re.ASCII)


def _check_moment(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """Check a time since the first event, with its unit, or the number of an event."""
    if text is not None and _AT.fullmatch(text.strip()) is None:
        message = f"{text!r} is not a time, such as 12.5ms, nor an event's number"
        raise click.BadParameter(message, context, option)
    return text  # interpreting it needs more imports


def _moment(text: str | None) -> Moment | None:
    """Parse a moment; a time is taken half a last digit later, since times are shown rounded."""
    from pyprof.analysis.memory.held_memory import Moment  # noqa: PLC0415 - loads more than click

    match = _AT.fullmatch((text or "").strip())
    if match is None:
        return None
    integer, fraction, unit = match.groups()
    if unit is None:
        return Moment(None, int(integer))
    digits = len(fraction or ".") - 1
    return Moment((float(integer + (fraction or "")) + 0.5 * 10.0**-digits) * _UNITS_NS[unit])


@click.command("memory", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--trace", "trace", metavar="TRACE",
              help="Capture of the same run, for layers and times; a trace with memory events "
              "needs none.")  # fmt: skip
@click.option("--by", "keys", type=Choice(_KEYS), multiple=True,
              help="Group what is held at the peak by this. Repeatable; default: category, layer, "
              "line and direction.")  # fmt: skip
@click.option("--at", "at", callback=_check_moment, metavar="TIME",
              help="Show what is held then, not at the peak: a time since the first event, such as "
              "12.5ms, or an event's number.")  # fmt: skip
@top_option(10, "Number of rows of each table in text; JSON has all.")
@json_option
@output_option(
    ".json selects JSON, .csv the live blocks at the peak as CSV, .collapsed their call stacks for "
    "flame graphs, .html charts"
)
def command(
    files: tuple[str, ...],
    trace: str | None,
    keys: tuple[str, ...],
    at: str | None,
    top: int,
    target: str,
    *,
    as_json: bool,
) -> None:
    """Show what filled the memory of the GPU: the peak, what made it up, growth and OOMs.

    FILE is a torch memory snapshot (torch.cuda.memory._dump_snapshot), a torch.profiler trace with
    profile_memory=True, also of the CPU, or a capture of nsys or rocprofv3 with memory usage.
    Several files, or a folder of snapshots, are the ranks of one run: the one that peaks highest
    is shown in full.

    What blocks are for follows from the stacks of their allocation and free, and from when they
    lived; `--by evidence` says which. Sizes are as the program asked for them.

    \b
    Examples:
      pyprof memory snapshot.pickle
      pyprof memory --by line --top 30 snapshot.pickle
      pyprof memory --by stack --top 3 snapshot.pickle
      pyprof memory --at 12.5ms snapshot.pickle
      pyprof memory --trace net.pt.trace.json snapshot.pickle
      pyprof memory --json snapshot.pickle
      pyprof memory -o peak.csv snapshot.pickle
      pyprof memory -o peak.collapsed snapshot.pickle
      pyprof memory -o memory.html snapshot.pickle
    """
    suffixes = ("json", "csv", "html", *_STACKS)
    form = output_file.optional_format(target, *suffixes, option="json" * as_json)
    if keys and form:
        raise click.UsageError("--by is for text; leave it out")
    moment = _moment(at)
    if moment is not None and form == "html":
        raise click.UsageError("--at is for text, .json, .csv and .collapsed; pages show the peak")
    from pyprof import answers  # noqa: PLC0415 - loads Arrow
    from pyprof.analysis.memory import peaks  # noqa: PLC0415 - as above
    from pyprof.export import memory_files  # noqa: PLC0415 - as above
    from pyprof.render.text import formatting as text  # noqa: PLC0415 - as above
    from pyprof.render.text import memory_text as show  # noqa: PLC0415 - as above

    if form == "csv":
        content = memory_files.as_csv(peaks.all_held(_read(files, trace)[0], moment))
    else:
        analysed = analyse(files, trace, moment)
        if form == "json":
            answers.write(target, analysed)
            return
        if form == "html":
            from pyprof.render.page import memory_page as pictures  # noqa: PLC0415 - extra

            content = pictures.page_of(analysed).encode()
        elif form in _STACKS:
            content = memory_files.as_collapsed(analysed)
        else:
            shown = show.report(analysed, keys or _DEFAULT_KEYS, top)
            content = text.finish(shown, coloured=text.colours(target))
    with output_file.open_output(target) as out:
        out.write(content)


def analyse(files: Sequence[str], trace: str | None = None, at: Moment | None = None) -> Memory:
    """Analyse recordings of memory, with the trace of the same run; the highest peak first."""
    from pyprof.analysis.memory.peaks import highest_first  # noqa: PLC0415 - loads Arrow
    from pyprof.answers.memory_answer import Memory  # noqa: PLC0415 - as above

    return Memory(highest_first(*_read(files, trace), at=at))


def _read(files: Sequence[str], trace: str | None) -> tuple[Iterator[Recorded], Source | None]:
    """Read the recordings one by one, and the trace of the same run."""
    from pyprof.inputs.memory_recordings import recordings  # noqa: PLC0415 - loads Arrow
    from pyprof.inputs.source import load  # noqa: PLC0415 - as above
    from pyprof.readers import kineto, read_head  # noqa: PLC0415 - as above

    if trace is not None:
        source = load(trace)
        return recordings(files, source.capture), source
    path = Path(files[0])
    if len(files) == 1 and path.is_file() and kineto.sniff(path, read_head(path)):
        with suppress(CaptureError):  # memory without any op that took time
            source = load(files[0])  # it is the trace of its own run
            return recordings(files), source
    return recordings(files), None
