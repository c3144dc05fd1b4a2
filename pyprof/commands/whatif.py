"""`pyprof whatif FILE...`: kernel time after a change, predicted with an interval."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pyprof import cli, output_file
from pyprof.options import Captures, override, peak_options, reads_captures

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("whatif", cls=cli.Command)
@click.option("--dtype", type=click.Choice(["tf32"]), help="Run float32 products in this type.")
@click.option("--fuse", type=click.Choice(["pointwise"]), help="Fuse chains of kernels.")
@peak_options
@cli.json_option
@click.option("-o", "--output", "target", default=output_file.STDOUT, metavar="FILE",
              help="Output file; .json selects JSON. Default: stdout.")  # fmt: skip
@reads_captures("FILE...")
def command(
    captures: Captures, target: str, dtype: str | None, fuse: str | None,
    *, as_json: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:  # fmt: skip
    """Predict how much kernel time a change would save.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    Without --dtype and --fuse, each change is predicted by itself, and the best comes first. Each
    has the shortest and the longest time that is likely, what it assumes, and on what the rule was
    tried. Where no rule holds, the reason stands instead of a number.

    \b
    Examples:
      pyprof whatif net.sqlite
      pyprof whatif --dtype tf32 net.sqlite
      pyprof whatif --fuse pointwise --json net.sqlite
    """
    as_json |= output_file.optional_format(target, "json") == "json"
    from pyprof import answers  # noqa: PLC0415 - they load Arrow
    from pyprof.analysis.whatif import summarise_whatif  # noqa: PLC0415 - as above
    from pyprof.answers.whatif_answer import merge_whatif  # noqa: PLC0415 - as above
    from pyprof.inputs import source  # noqa: PLC0415 - as above
    from pyprof.render.text import formatting, whatif_text  # noqa: PLC0415 - as above

    asked = _changes(dtype, fuse)
    with captures.stages(source.STAGES) as begin:
        summarise = partial(summarise_whatif, changes=asked)
        answer = captures.map_reduce(summarise, merge_whatif, override(how), begin)
    if as_json:
        answers.write(target, answer)
        return
    with output_file.open_output(target) as out:
        shown = [*whatif_text.predicted_changes(answer)]
        out.write(formatting.finish(shown, coloured=formatting.colours(target)))


def _changes(dtype: str | None, fuse: str | None) -> Sequence[str]:
    options = {"--dtype": dtype, "--fuse": fuse}
    return tuple(f"{option} {value}" for option, value in options.items() if value is not None)
