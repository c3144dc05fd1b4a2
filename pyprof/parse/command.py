"""`pyprof parse CAPTURE`: tie every kernel to the op, layer, line and forward op that caused it."""

from __future__ import annotations

from pathlib import Path

import click

from pyprof import cli

_FORMATS = (".dict", ".jsonl", ".parquet")
_LONG = 200_000  # rows from which a progress bar is worth its line


@click.command(cls=cli.Command)
@click.argument("capture", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "target",
    default=cli.STDOUT,
    metavar="FILE",
    help="Where to write: FILE.dict, FILE.jsonl or FILE.parquet. Default: dict lines on stdout.",
)
@click.option(
    "--kernels-only", is_flag=True, help="Leave out memory copies, memsets and graph launches."
)
@click.option("-q", "--quiet", is_flag=True, help="No warnings, no progress bar.")
def parse(capture: Path, target: str, *, kernels_only: bool, quiet: bool) -> None:
    """Tie every kernel of CAPTURE to the op, layer, source line and forward op that caused it.

    CAPTURE is an nsys export (.sqlite) or report (.nsys-rep), an nvprof database, or a
    torch.profiler trace (.json, .json.gz); which one is told by its content. One dict a line
    comes out, in the order in which the GPU started the work.

    \b
    Example:
      pyprof parse net.sqlite -o net.dict
    """
    suffix = Path(target).suffix
    if target != cli.STDOUT and suffix not in _FORMATS:
        raise click.BadParameter(f"{target}: end it in {', '.join(_FORMATS)}", param_hint="'-o'")
    from pyprof.parse import dictfile, parquet, parse_file  # noqa: PLC0415 - they load Arrow

    records = parse_file(capture, kernels_only=kernels_only)
    if not quiet:
        cli.warn(records.warnings)
    with cli.output(target) as file:
        if suffix == ".parquet":
            parquet.write(records, file)
        else:
            with cli.progress(
                records.rows, "writing", _LONG if not quiet else records.rows + 1
            ) as advance:
                dictfile.write(records, file, advance)
