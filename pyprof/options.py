"""The options of every command that works on sets of captures: where the work is done."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyprof import cli
from pyprof.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.prof.table import Override


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --workers, --dask and --strict; the command gets the opened engine as `engine`."""
    strict = click.option(
        "--strict", is_flag=True, help="Stop at a capture that cannot be read; else it is left out."
    )
    return strict(worker_options(command))


def worker_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --workers and --dask; the command gets the opened engine as `engine`."""

    @capture_options
    @click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Work on N captures at a time, in processes of this machine. Default: 1, in this one.",
    )
    @click.option(
        "--dask",
        metavar="ADDRESS",
        help="Work on a running Dask cluster: its scheduler's address, or a scheduler file.",
    )
    @wraps(command)
    def opened(
        workers: int | None,
        dask: str | None,
        *,
        strict: bool = False,
        **given: Any,  # noqa: ANN401 - the command's own
    ) -> None:
        if workers is not None and dask is not None:
            raise click.UsageError("--workers and --dask exclude each other")
        from pyprof.inputs import engine  # noqa: PLC0415 - takes time to load

        quiet = bool(given.get("quiet"))
        with engine.opened(workers or 1, dask, strict=strict, quiet=quiet) as chosen:
            command(engine=chosen, **given)

    return opened


def capture_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what is read beside captures; it is set while the command runs."""

    @click.option(
        "--graph-captures",
        multiple=True,
        metavar="PATH",
        help="Traces of the capture of CUDA graphs: a file, or a folder of them; may be repeated. "
        "Default: capture_traces/ beside each trace.",
    )
    @wraps(command)
    def with_inputs(graph_captures: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401 - the command's own
        from pyprof.readers import settings  # noqa: PLC0415 - only where captures are read

        for place in graph_captures:
            if not Path(place).exists():
                raise CaptureError(f"{place}: no such file or folder; check --graph-captures")
        with settings.using([str(Path(place).absolute()) for place in graph_captures]):
            command(**given)

    return with_inputs


# The options by which a user says what to measure against; all reports take the same.


_Command = TypeVar("_Command", bound="Callable[..., Any]")

_OPTIONS = (
    click.option("--gpu", metavar="NAME", help="Take the peaks of this device: see pyprof peaks."),
    click.option("--clock-mhz", type=cli.Number("1410"), metavar="MHZ",
                 help="Take the peaks at this SM clock."),
    click.option("--peak-flops", type=cli.Quantity("FLOP/s"), metavar="FLOP/S",
                 help="Measure against this peak: 989e12, 989T."),
    click.option("--peak-bandwidth", type=cli.Quantity("B/s"), metavar="B/S",
                 help="Measure against this bandwidth: 3.35e12, 3.35T."),
    click.option("--measured", is_flag=True,
                 help="Measure against what pyprof peaks --measure reached here."),
)  # fmt: skip
_NAMES = ("gpu", "clock_mhz", "peak_flops", "peak_bandwidth", "measured")


def peak_options(command: _Command) -> _Command:
    """Give a command these options; `override` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def override(given: Mapping[str, Any]) -> Override:
    """Make of the options' values what a table takes."""
    from pyprof.prof.table import Override  # noqa: PLC0415 - loads Arrow

    return Override(**{name: given[name] for name in _NAMES})


# What `--steps` names, as rows.
