"""`pyprof report FILE -o report.html`: everything in one page that you can send."""

from __future__ import annotations

import shlex
import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyprof.cli.capture_options import WITH_MODEL, Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.options import gpu_option, override, source_option, steps_option
from pyprof.commands.roofline import PICTURES, draw
from pyprof.process import output_file
from pyprof.process.messages import say, warn
from pyprof.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@click.command("report", cls=Command, output="report.html")
@steps_option
@source_option("Folder of the source: include the text of the slowest lines.")
@gpu_option
@click.option("-o", "--output", "target", metavar="FILE",
              help="Output file; .png, .svg, .pdf: the roofline alone; - for stdout. Default: NAME."
              "report.html, here, of FILE's name.")  # fmt: skip
@click.option("--open", "opens", is_flag=True, help="Open the page in the web browser.")
@reads_captures("FILE...", extra=(*WITH_MODEL, "snapshot"))
def command(
    captures: Captures,
    target: str,
    steps: str | None,
    folder: Path | None,
    snapshot: str | None,
    *,
    opens: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:
    """Write a report on FILE as one HTML page.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    The page has summary, advice, slowest lines, timeline, memory, steps, modules, roofline, ops
    and kernels; a click on any of them selects what it stands for in all others. It needs no
    network, and contains no host, user or folder names, nor source, unless --source names its
    folder. It stays below 5 MB: it holds totals, and only the most expensive rows of long tables.

    \b
    Examples:
      pyprof report net.sqlite --open
      pyprof report net.sqlite --steps 3: -o steady.html
      pyprof report net.sqlite --source ~/project -o lines.html
      pyprof report --with snapshot.pickle net.pt.trace.json -o memory.html
      pyprof report net.sqlite -o roofline.png
      pyprof report ranks/ -o ranks.html --workers 2
    """
    if opens and target == output_file.STDOUT:
        raise click.UsageError("--open needs a file: stdout has no place to open")
    form = output_file.optional_format(target, "html", "htm", *PICTURES, text=False)
    if form in PICTURES:
        if folder is not None or snapshot is not None:
            raise click.UsageError(
                "--source and a memory snapshot go with a page, not with a picture"
            )
        draw(captures, target, form, steps, override(how))
        _show(target, wanted=opens)
        return
    if snapshot is not None and (len(captures.paths) > 1 or Path(captures.paths[0]).is_dir()):
        raise click.UsageError(
            "a memory snapshot goes with one FILE; of several, NAME.memory.pickle beside each is"
            " shown"
        )
    from pyprof.analysis import report  # noqa: PLC0415 - it loads Arrow
    from pyprof.inputs import source  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above
    from pyprof.render.page import content as page  # noqa: PLC0415 - as above

    with captures.stages(source.STAGES + 1) as begin:
        summarise = partial(report.summarise_report, chosen=steps, snapshot=snapshot)
        sums = captures.map_reduce(summarise, merge_sums, override(how), begin)
        begin("drawing")
        origin = page.Origin(
            _label(captures.paths), " ".join(_command_words(click.get_current_context()))
        )
        content = page.html(report.report(sums), origin, folder).encode(errors="backslashreplace")
    captures.warn(sums.summary.warnings)
    with output_file.open_output(target) as out:
        out.write(content)
    if not captures.quiet and target != output_file.STDOUT:
        say(f"{target}: {amount(len(content), 'B')}")
    _show(target, wanted=opens)


def _show(target: str, *, wanted: bool) -> None:
    if wanted and not webbrowser.open(Path(target).resolve().as_uri()):
        warn([f"no web browser was found; open {target} in one"])


def _label(paths: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(paths))
    name = output_file.public_name(distinct[0])
    return name if len(distinct) == 1 else f"{name} and {len(distinct) - 1} more"


_SILENT = {"target", "opens", "quiet", "workers"}
"""Options that do not affect the page."""
_NO_PATHS = {"gpu", "steps"}
"""Options whose values are shown as typed: "/" is not a folder in `bandwidth=1000 GB/s`."""


def _command_words(context: click.Context) -> Iterator[str]:
    """Yield the words of the command line, with names in place of paths."""
    yield "pyprof report"
    given = click.core.ParameterSource.COMMANDLINE
    for option in sorted(context.command.params, key=lambda each: isinstance(each, click.Option)):
        name = option.name or ""
        of_page = name in context.params and name not in _SILENT
        if not of_page or context.get_parameter_source(name) is not given:
            continue
        value = context.params[name]
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(option, click.Option):
                yield max(option.opts, key=len)
            if text is not True:
                word = str(text)
                yield shlex.quote(word if name in _NO_PATHS else output_file.public_name(word))
