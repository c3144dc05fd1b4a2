"""`pyprof whatif FILE...`: kernel time after a change, predicted with an interval."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from pyprof.cli.capture_options import Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.options import json_option, output_option, override
from pyprof.process import output_file

_FUSIONS = ("attention", "pointwise")


def _names(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Split a list at commas; raises BadParameter for a name that no rule has."""
    names = tuple(value.split(",")) if value else ()
    unknown = [name for name in names if name not in _FUSIONS]
    if unknown:
        text = f"{unknown[0]!r} is none of {', '.join(_FUSIONS)}"
        raise click.BadParameter(text, context, option)
    return names


def _factor(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Check a factor of the batch; raises BadParameter."""
    if value is None:
        return None
    from pyprof.process import arrow_setup  # noqa: PLC0415 - only with --batch

    arrow_setup.prepare()
    from pyprof.analysis.whatif.batching import factor_of  # noqa: PLC0415 - it loads Arrow

    try:
        factor_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None
    return value


def _gpu(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Check that a name is, or may be, a GPU's; raises BadParameter."""
    from pyprof.gpu.peaks import Device, cards_like, peaks  # noqa: PLC0415 - it loads tables

    if value is not None and peaks(Device(value)) is None and not cards_like(value):
        raise click.BadParameter(f"no GPU {value!r}: see pyprof peaks", context, option)
    return value


@click.command("whatif", cls=Command)
@click.option(
    "--dtype",
    type=click.Choice(["tf32", "bf16", "fp16"]),
    help="Compute float32 in this type; tf32: products only.",
)
@click.option(
    "--fuse",
    metavar="LIST",
    callback=_names,
    help="Fuse attention, pointwise (chains of kernels), or both, separated by a comma.",
)
@click.option(
    "--batch",
    metavar="FACTOR",
    callback=_factor,
    help="Multiply the batch: 2x, 0.5x.",
)
@click.option(
    "--gpu",
    metavar="NAME",
    callback=_gpu,
    help="Run on this GPU instead, if its efficiencies were measured; the refusal of another lists"
    " those that were. (In other commands --gpu says which peaks to use.)",
)
@click.option(
    "--graphs",
    "bounds",
    flag_value="--graphs",
    multiple=True,
    help="Replay CUDA graphs. Like the next two, it has an upper bound, not a prediction.",
)
@click.option("--overlap", "bounds", flag_value="--overlap", multiple=True,
              help="Communicate while something is computed.")  # fmt: skip
@click.option("--fused-optimizer", "bounds", flag_value="--fused-optimizer", multiple=True,
              help="Let the optimizer run as few kernels.")  # fmt: skip
@json_option
@output_option(".json selects JSON")
@reads_captures("FILE...")
def command(
    captures: Captures, target: str, dtype: str | None, fuse: tuple[str, ...],
    batch: str | None, gpu: str | None, bounds: tuple[str, ...], *, as_json: bool,
    **how: Any,  # noqa: ANN401 - options
) -> None:  # fmt: skip
    """Predict how much kernel time a change would save.

    FILE is a capture, or what `pyprof parse` wrote from one. Several files, a folder or a 'glob'
    are the ranks of one run.

    Without an option that names a change, each change of type and each fusion is predicted by
    itself, the best first; then all that are possible together. Each has the shortest and the
    longest time that is likely, what it assumes, and on what its rule was tried. Where no rule
    holds, the reason stands instead of a number.

    \b
    Examples:
      pyprof whatif net.sqlite
      pyprof whatif --dtype tf32 net.sqlite
      pyprof whatif --dtype bf16 --fuse attention,pointwise net.sqlite
      pyprof whatif --gpu "H100 SXM" net.sqlite
    """
    as_json |= output_file.optional_format(target, "json") == "json"
    from pyprof import answers  # noqa: PLC0415 - they load Arrow
    from pyprof.analysis.whatif import changes_of, summarise_whatif  # noqa: PLC0415 - as above
    from pyprof.inputs import source  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above
    from pyprof.render.text import formatting, whatif_text  # noqa: PLC0415 - as above

    asked = changes_of(dtype, fuse, batch, gpu, bounds)
    with captures.stages(source.STAGES) as begin:
        summarise = partial(summarise_whatif, changes=asked)
        answer = captures.map_reduce(summarise, merge_sums, override(how), begin)
    captures.warn(answer.warnings)
    if as_json:
        answers.write(target, answer, answer.warnings)
        return
    formatting.write(target, whatif_text.predicted_changes(answer))
