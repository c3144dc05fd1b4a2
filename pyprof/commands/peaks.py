"""`pyprof peaks`: the known peaks by card, and those measured on this machine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pyprof.cli.command import Command
from pyprof.cli.options import json_option, output_option
from pyprof.process import output_file
from pyprof.process.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.peaks_answer import CardPeaks


@click.command("peaks", cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", required=False)
@click.option(
    "--csv", "as_csv", is_flag=True, help="Write CSV, including sources and known doubts."
)
@json_option
@click.option("--measure", "device", is_flag=False, flag_value="", metavar="[cpu|cuda|cuda:N]",
              help="Measure matrix products and a copy here, by default on the GPU if there is one,"
              " and save the rates.")  # fmt: skip
@output_option(".csv, .json select the format")
def command(
    name: str | None,
    target: str,
    device: str | None,
    *,
    as_csv: bool,
    as_json: bool,
) -> None:
    """List the peak rates that `eff` is relative to, one row per card.

    NAME is a device name as in a capture or from the driver, or a part of one: "NVIDIA
    A100-SXM4-80GB", l4. Rates are dense TFLOP/s (TOP/s for integers), without sparsity, and GB/s.

    --measure runs matrix products in each type and a large copy with torch for a few seconds, and
    saves the best rates; `pyprof prof --gpu measured` uses them as peaks. On a GPU it also measures
    what softmax, norms, point-wise kernels, batched products and attention reach of the datasheet's
    peaks; `pyprof whatif --gpu` then knows this card.

    \b
    Examples:
      pyprof peaks
      pyprof peaks "NVIDIA H100 80GB HBM3"
      pyprof peaks --measure cpu
    """
    if device and not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        hint = "'--measure'"
        raise click.BadParameter(f"{device!r} must be cpu, cuda or cuda:N", param_hint=hint)
    if device is not None and name is not None:
        raise click.UsageError("--measure takes no NAME, only cpu, cuda or cuda:N")
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    asked = "csv" * as_csv + "json" * as_json
    form = output_file.optional_format(target, "csv", "json", option=asked)
    as_csv, as_json = form == "csv", form == "json"
    from pyprof.render.text import formatting, peaks_text  # noqa: PLC0415 - only to do the work

    rows = _measure(device) if device is not None else known(name)
    if as_json:
        from pyprof import answers  # noqa: PLC0415 - as above
        from pyprof.answers.peaks_answer import Peaks  # noqa: PLC0415 - as above

        answers.write(target, Peaks(tuple(rows)))
        return
    if as_csv:
        with output_file.open_output(target) as out:
            out.write(peaks_text.as_csv(rows))
        return
    some = device is not None or name is not None
    formatting.write(target, peaks_text.each(rows) if some else peaks_text.overview(rows))


def _measure(device: str) -> Sequence[CardPeaks]:
    from pyprof.answers.peaks_answer import measured_rows  # noqa: PLC0415 - as above
    from pyprof.gpu.peaks import ceilings, family_benchmark, microbenchmark  # noqa: PLC0415 - only to do the work

    device = device or microbenchmark.pick()
    measured = microbenchmark.measure(device)
    measured = replace(measured, shares=family_benchmark.measure_shares(device))
    place = ceilings.save(measured)
    say(f"saved to {place}; pyprof prof --gpu measured uses it")
    return measured_rows([measured])


def known(name: str | None) -> Sequence[CardPeaks]:
    """Return the cards matching a name, with the rates measured here; all cards for None."""
    from pyprof.answers import peaks_answer  # noqa: PLC0415 - as above
    from pyprof.gpu.peaks import ceilings  # noqa: PLC0415 - only to do the work

    return peaks_answer.find(name, peaks_answer.measured_rows(ceilings.load().values()))
