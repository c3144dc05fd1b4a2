"""The options by which a user says what to measure against; all reports take the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyprof import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.prof.table import Override

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
