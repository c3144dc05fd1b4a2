"""`pyprof peaks`: the known peaks by card, and those measured on this machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from pyprof import cli, output_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.peaks_rows import PeaksRow


@click.command("peaks", cls=cli.Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", required=False)
@click.option(
    "--csv", "as_csv", is_flag=True, help="Write CSV, including sources and known doubts."
)
@cli.raw_option
@cli.json_option
@click.option("--measure", "measuring", is_flag=True,
              help="Measure matrix products and a copy here, and save the rates.")  # fmt: skip
@click.option("--device", metavar="cpu|cuda|cuda:N",
              help="Device to measure; default: the GPU, or the CPU if there is none.")  # fmt: skip
@click.option("-o", "--output", "target", default=output_file.STDOUT, metavar="FILE",
              help="Output file; .csv, .json select the format. Default: stdout.")  # fmt: skip
def command(
    name: str | None,
    target: str,
    device: str | None,
    *,
    as_csv: bool,
    as_json: bool,
    raw: bool,
    measuring: bool,
) -> None:
    """List the peak rates that `eff` is relative to, one row per card.

    NAME is a device name as in a capture or from the driver, or a part of one: "NVIDIA
    A100-SXM4-80GB", l4. Rates are dense TFLOP/s (TOP/s for integers), without sparsity, and GB/s.

    --measure runs matrix products in each type and a large copy with torch for a few seconds, and
    saves the best rates; `pyprof prof --measured` uses them as peaks.

    \b
    Examples:
      pyprof peaks
      pyprof peaks "NVIDIA H100 80GB HBM3"
      pyprof peaks --measure --device cpu
    """
    cli.check_raw(raw, "csv" if as_csv else "")
    _check_device(name, device, measuring=measuring)
    form = output_file.optional_format(target, "csv", "json")
    as_csv |= form == "csv"
    as_json |= form == "json"
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    from pyprof.render.text import formatting, peaks_text  # noqa: PLC0415 - only to do the work

    rows = _measure(device) if measuring else _list(name)
    if as_json:
        from pyprof import answers  # noqa: PLC0415 - as above
        from pyprof.answers import peaks_answer as answers_of_peaks  # noqa: PLC0415 - as above

        answers.write(target, answers_of_peaks.peaks(rows))
        return
    one = measuring or name is not None
    with output_file.open_output(target) as out:
        if as_csv:
            out.write(peaks_text.as_csv(rows, raw=raw))
        else:
            shown = peaks_text.each(rows) if one else peaks_text.overview(rows)
            out.write(formatting.finish(shown, coloured=formatting.colours(target)))


def _check_device(name: str | None, device: str | None, *, measuring: bool) -> None:
    """Raise click's errors for an invalid --device, or one without --measure."""
    if measuring and name is not None:
        raise click.UsageError("--measure takes no NAME; choose the device with --device")
    if device is not None and not measuring:
        raise click.UsageError("--device works only with --measure")
    if device is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise click.BadParameter(f"{device!r} must be cpu, cuda or cuda:N", param_hint="'--device'")


def _measure(device: str | None) -> Sequence[PeaksRow]:
    """Measure this machine, and save the rates."""
    from pyprof.answers.peaks_rows import measured_rows  # noqa: PLC0415 - as above
    from pyprof.gpu import ceilings, microbenchmark  # noqa: PLC0415 - only to do the work

    measured = microbenchmark.measure(device or microbenchmark.pick())
    place = ceilings.save(measured)
    cli.say(f"saved to {place}; pyprof prof --measured uses it")
    return measured_rows([measured])


def _list(name: str | None) -> Sequence[PeaksRow]:
    """Return the cards matching a name, with the rates measured here; all cards for None."""
    from pyprof.answers import peaks_rows  # noqa: PLC0415 - as above
    from pyprof.gpu import ceilings  # noqa: PLC0415 - only to do the work

    return peaks_rows.find(name, peaks_rows.measured_rows(ceilings.load().values()))
