"""The options of every command that works on sets of captures: where the work is done."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --workers, --dask and --strict; the command gets the opened engine as `engine`."""

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
    @click.option(
        "--strict", is_flag=True, help="Stop at a capture that cannot be read; else it is left out."
    )
    @wraps(command)
    def opened(workers: int | None, dask: str | None, *, strict: bool, **given: Any) -> None:  # noqa: ANN401
        if workers is not None and dask is not None:
            raise click.UsageError("--workers and --dask exclude each other")
        from pyprof.sets import engine  # noqa: PLC0415 - takes time to load

        quiet = bool(given.get("quiet"))
        with engine.opened(workers or 1, dask, strict=strict, quiet=quiet) as chosen:
            command(engine=chosen, **given)

    return opened
