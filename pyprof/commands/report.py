"""`pyprof report FILE -o report.html`: everything in one page that you can send."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import click

from pyprof import cli, output_file, sanitize
from pyprof.options import Captures, override, peak_options, reads_captures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@click.command("report", cls=cli.Command)
@click.option("--steps", metavar="RANGE",
              help="Only these steps, counted from 0: `3:`, `3:7`, `3`.")  # fmt: skip
@cli.source_option("Folder of the source: include the text of the slowest lines.")
@click.option("--memory", "snapshot", metavar="SNAPSHOT",
              help="Torch memory snapshot of the same run. NAME.memory.pickle beside FILE, and "
              "memory events in FILE, are shown anyway.")  # fmt: skip
@peak_options
@click.option("-o", "--output", "target", default="report.html", show_default=True, metavar="FILE",
              help="Output file; - for stdout.")  # fmt: skip
@reads_captures("FILE...")
def command(
    captures: Captures,
    target: str,
    steps: str | None,
    folder: Path | None,
    snapshot: str | None,
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
      pyprof report net.sqlite -o report.html
      pyprof report net.sqlite --steps 3: -o steady.html
      pyprof report net.sqlite --source ~/project -o lines.html
      pyprof report --memory snapshot.pickle net.pt.trace.json -o memory.html
      pyprof report ranks/ -o ranks.html --workers 2
    """
    output_file.optional_format(target, "html", "htm", text=False)
    if snapshot is not None:
        if len(captures.paths) > 1 or Path(captures.paths[0]).is_dir():
            raise click.UsageError(
                "--memory goes with one FILE; of several, NAME.memory.pickle beside each is shown"
            )
        cli.register_inputs([snapshot])
    from pyprof.inputs import source  # noqa: PLC0415 - it loads Arrow
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above
    from pyprof.render.page import content as page  # noqa: PLC0415 - as above

    with captures.stages(source.STAGES + 1) as begin:
        summarise = partial(page.summarise_page, chosen=steps, snapshot=snapshot)
        page_content = captures.map_reduce(summarise, merge_sums, override(how), begin)
        begin("drawing")
        origin = page.Origin(_label(captures.paths), " ".join(_words(click.get_current_context())))
        content = page.html(page_content, origin, folder).encode()
    captures.warn(page_content.summary.warnings)
    with output_file.open_output(target) as out:
        out.write(content)
    if not captures.quiet and target != output_file.STDOUT:
        cli.say(f"{target}: {len(content) / 1e6:.1f} MB")


_HOST = re.compile(r"^.*?_(\d+)\.\d+(?=\.pt\.trace\.json)")
"""Host, process and time in file names of torch.profiler's handler."""


def _name(path: str) -> str:
    """Return a file's name without folders, hosts and credentials."""
    path = sanitize.redact_credentials(path).partition("?")[0]
    return _HOST.sub(r"\1", PureWindowsPath(path).name or path)


def _label(paths: Sequence[str]) -> str:
    """Return a label for the captures."""
    names = list(dict.fromkeys(map(_name, paths)))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


_SILENT = {"target", "quiet", "workers", "dask"}
"""Options that do not affect the page."""


def _words(context: click.Context) -> Iterator[str]:
    """Yield the words of the command line, with names in place of paths."""
    yield "pyprof report"
    given = click.core.ParameterSource.COMMANDLINE
    for option in sorted(context.command.params, key=lambda each: isinstance(each, click.Option)):
        name = option.name or ""
        of_page = name in context.params and name not in _SILENT  # --force is cli's own
        if not of_page or context.get_parameter_source(name) is not given:
            continue
        value = context.params[name]
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(option, click.Option):
                yield max(option.opts, key=len)
            if text is not True:
                yield _name(str(text))
