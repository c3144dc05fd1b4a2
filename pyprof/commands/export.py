"""`pyprof export FILE -o OUT`: the same data in the formats of other viewers."""

from __future__ import annotations

import gzip
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from pyprof import export
from pyprof.cli.capture_options import Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.options import check_raw, gpu_option, override, raw_option, source_option
from pyprof.process import output_file

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


_COMPRESSION = 3  # a trace repeats itself: higher levels take long and gain little


class _ExportCommand(Command):
    """Lists the formats in its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = [(" ".join(form.suffixes), form.description) for form in export.FORMATS]
        with formatter.section("Formats"):
            formatter.write_dl(listed)
        super().format_epilog(ctx, formatter)


@click.command("export", cls=_ExportCommand)
@gpu_option
@source_option(
    "Name lines by the source in this folder (.prof, .collapsed); without it, no source is read."
)
@raw_option
@click.option(
    "-o", "--output", "target", required=True, metavar="OUT",
    help="Output file; its suffix selects the format.",
)  # fmt: skip
@reads_captures("FILE...")
def command(
    captures: Captures,
    target: str,
    *,
    folder: Path | None,
    raw: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:
    """Convert FILE for another viewer; the suffix of OUT selects the format.

    FILE is a capture, or what `pyprof parse` wrote from one. A timeline made from a capture also
    shows API calls and ranges on the CPU. Several files, a folder or a 'glob' are the ranks of
    one run.

    \b
    Examples:
      pyprof export net.sqlite -o net.pt.trace.json
      pyprof export net.sqlite -o net.prof
      pyprof export net.sqlite -o net.collapsed
      pyprof export net.dict -o net.speedscope.json
      pyprof export ranks/ -o ranks.parquet --workers 2
    """
    form = export.find(Path(target).name)
    if form is None:
        suffixes = ", ".join(suffix for each in export.FORMATS for suffix in each.suffixes)
        raise click.BadParameter(
            f"no format has this suffix; supported: {suffixes}", param_hint="'-o'"
        )
    check_raw(raw, "csv" if "raw" in form.options else "")
    if folder is not None and "folder" not in form.options:
        taking = [suffix for one in export.FORMATS if "folder" in one.options
                  for suffix in one.suffixes]  # fmt: skip
        raise click.UsageError(f"--source works only with {', '.join(taking)}")
    format_options: dict[str, Any] = {"folder": folder, "raw": raw}
    options = {name: format_options[name] for name in form.options}
    from pyprof.export import write  # noqa: PLC0415 - they load Arrow

    with (
        captures.stages(write.WRITE_STAGES) as begin,
        output_file.open_output(target) as out,
        _compress(out, target) as file,
    ):
        warnings = write.write(
            captures.paths, form, target, file, override(how), captures.executor, begin, **options
        )
    captures.warn(warnings)


def _compress(out: BinaryIO, target: str) -> AbstractContextManager[BinaryIO]:
    if not target.lower().endswith(".gz"):
        return nullcontext(out)
    return cast("BinaryIO", gzip.GzipFile("", "wb", _COMPRESSION, out, mtime=0))
