"""`pyprof memory FILE...`: what filled the memory of the GPU, when, and who holds it."""

from __future__ import annotations

import click

from pyprof import cli

_TOP = 10
_KEYS = ("category", "layer", "line", "op", "function", "direction", "size", "evidence")
_DEFAULT_KEYS = ("category", "layer", "line", "direction")


@click.command("memory", cls=cli.Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--by", "keys", type=cli.Choice(_KEYS), multiple=True,
              help="Group what is held at the peak by this. Repeatable; default: category, layer, "
              "line and direction.")  # fmt: skip
@click.option("--top", type=click.IntRange(1), default=_TOP, show_default=True, metavar="N",
              help="Number of rows of each table.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write JSON, as -o FILE.json does.")
@cli.raw_option
@click.option("-o", "--output", "target", default=cli.STDOUT, metavar="FILE",
              help="Output file; .json selects JSON, .csv the live blocks at the peak as CSV. "
              "Default: stdout.")  # fmt: skip
def command(
    files: tuple[str, ...],
    keys: tuple[str, ...],
    top: int,
    target: str,
    *,
    as_json: bool,
    raw: bool,
) -> None:
    """Show what filled the memory of the GPU: the peak, what made it up, growth and OOMs.

    FILE is a torch memory snapshot (torch.cuda.memory._dump_snapshot). Several files, or a folder
    of snapshots, are the ranks of one run: the one that peaks highest is shown in full.

    What blocks are for follows from the stacks of their allocation and free, and from when they
    lived; `--by evidence` says which. Sizes are as the program asked for them.

    \b
    Examples:
      pyprof memory snapshot.pickle
      pyprof memory --by line --top 30 snapshot.pickle
      pyprof memory -o peak.csv snapshot.pickle
    """
    form = "json" if as_json else cli.claims(target, "json", "csv")
    cli.check_raw(raw, form)
    from pyprof.inputs.memory_recordings import recordings  # noqa: PLC0415 - loads Arrow
    from pyprof.report.analysis import memory  # noqa: PLC0415 - as above
    from pyprof.report.export import memory_files  # noqa: PLC0415 - as above
    from pyprof.report.render import memory as show  # noqa: PLC0415 - as above
    from pyprof.report.render import text  # noqa: PLC0415 - as above

    if form == "csv":
        content = memory_files.as_csv(memory.all_held(recordings(files)), raw=raw)
    else:
        devices = memory.highest_first(recordings(files))
        if form == "json":
            content = memory_files.as_json(devices)
        else:
            shown = show.devices(devices, keys or _DEFAULT_KEYS, top)
            content = text.finish(shown, coloured=text.colours(target))
    with cli.output(target) as out:
        out.write(content)
