"""The options of every command that works on sets of captures: where the work is done."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyprof import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.prof.table import Override


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --workers, --dask and --strict; the command gets the opened engine as `engine`."""
    strict = click.option(
        "--strict",
        is_flag=True,
        help="Stop at a capture that cannot be read, instead of leaving it out.",
    )
    return strict(worker_options(command))


def worker_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --workers and --dask; the command gets the opened engine as `engine`."""

    @click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Work on N captures at a time, in N processes. Default: 1, in this process.",
    )
    @click.option(
        "--dask",
        metavar="ADDRESS",
        help="Work on a running Dask cluster, given by its scheduler's address or scheduler file.",
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


# The options by which a user says what to measure against; all reports take the same.


_Command = TypeVar("_Command", bound="Callable[..., Any]")

_OPTIONS = (
    click.option("--gpu", metavar="NAME",
                 help="Use the peaks of this device; pyprof peaks lists them."),
    click.option("--clock-mhz", type=cli.Number("1410"), metavar="MHZ",
                 help="Use the peaks at this SM clock."),
    click.option("--peak-flops", type=cli.Quantity("FLOP/s"), metavar="FLOP/S",
                 help="Use this peak: 989e12, 989T."),
    click.option("--peak-bandwidth", type=cli.Quantity("B/s"), metavar="B/S",
                 help="Use this peak bandwidth: 3.35e12, 3.35T."),
    click.option("--measured", is_flag=True,
                 help="Use the peaks that pyprof peaks --measure reached on this machine."),
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
