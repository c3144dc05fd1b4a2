"""Options that several commands share: form of the output, rows to list, steps, peaks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyprof.cli.option_types import Number, Quantity, WholeNumber
from pyprof.process import output_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.prof.table import Override
    from pyprof.prof.where import Condition

    _Decorator = Callable[[Callable[..., None]], Callable[..., None]]

raw_option = click.option(
    "--raw",
    is_flag=True,
    help="In CSV, do not put an apostrophe before texts that spreadsheets take for formulas.",
)
"""Adds --raw to a command that writes rows as CSV."""
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write JSON, as -o FILE.json does; docs/json.md describes it.",
)
steps_option = click.option(
    "--steps", metavar="RANGE", help="Only these steps, counted from 0: `3:`, `3:7`, `3`."
)
where_option = click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="EXPR",
    help="Only rows that match: tc=0, op~attention, 'eff<20', 'sil>1e6'. Repeatable, or join"
    " conditions with `and`: rows must match all.",
)
"""Adds --where to a command; `read_conditions` parses its values."""


def output_option(selects: str) -> _Decorator:
    """Add -o FILE, by default stdout; `selects` says what suffixes do. It comes as `target`."""
    return click.option(
        "-o", "--output", "target", default=output_file.STDOUT, metavar="FILE",
        help=f"Output file; {selects}. Default: stdout.",
    )  # fmt: skip


def top_option(default: int, help_text: str) -> _Decorator:
    """Add --top, the number of rows that a report lists."""
    kind = WholeNumber(1)
    return click.option(
        "--top", type=kind, default=default, show_default=True, metavar="N", help=help_text
    )


def source_option(help_text: str) -> _Decorator:
    """Add --source; the command gets it as `folder`, None if not given."""
    kind = click.Path(exists=True, file_okay=False, path_type=Path)
    return click.option("--source", "folder", metavar="DIR", type=kind, help=help_text)


def check_raw(raw: bool, form: str) -> None:  # noqa: FBT001 - as the option comes
    """Raise UsageError if `--raw` is given for a format other than CSV."""
    if raw and form != "csv":
        raise click.UsageError("--raw works only with CSV")


def read_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Parse the values of --where; raises BadParameter."""
    from pyprof.prof import where  # noqa: PLC0415 - it loads Arrow

    try:
        return where.conditions(texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--where'") from None


_RATES = {
    "clock": ("clock_mhz", Number("1410")),
    "flops": ("peak_flops", Quantity("FLOP/s")),
    "bandwidth": ("peak_bandwidth", Quantity("B/s")),
}
"""What `--gpu KEY=VALUE` sets."""


def _asked_peaks(texts: Sequence[str]) -> dict[str, Any]:
    """Parse the values of --gpu into the fields of `Override`; raises BadParameter."""
    asked: dict[str, Any] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        key, equals, value = part.partition("=")
        if equals and key not in _RATES:
            raise click.BadParameter(f"{key!r} must be one of {', '.join(_RATES)}")
        if equals:
            name, kind = _RATES[key]
            asked[name] = kind.convert(value, None, None)
        elif part == "measured":
            asked["measured"] = True
        else:
            asked["gpu"] = part
    return asked


def _check_peaks(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    _asked_peaks(texts)
    return texts


gpu_option = click.option(
    "--gpu",
    multiple=True,
    callback=_check_peaks,
    metavar="NAME|KEY=VALUE",
    help="Use the peaks of this device, which pyprof peaks lists; or, joined by commas, clock=1410"
    " (MHz), flops=989T, bandwidth=3.35T; or `measured`, by pyprof peaks --measure here.",
)
"""Adds --gpu to a command; `override` reads it."""


def override(options: Mapping[str, Any]) -> Override:
    """Return the overrides that the options ask for: --gpu, and a model that --with names."""
    from pyprof.prof.table import Override  # noqa: PLC0415 - loads Arrow

    return Override(**_asked_peaks(options.get("gpu", ())), model=options.get("model"))
