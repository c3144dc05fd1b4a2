"""Which engine works on the captures: this process, several, or a cluster's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyprof.inputs.engine import InProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.inputs.engine import Engine


@contextmanager
def opened(
    workers: int = 1, dask: str | None = None, *, strict: bool = False, quiet: bool = False
) -> Iterator[Engine]:
    """Give the engine that is asked for: a cluster's, `workers` processes, or this process.

    `strict`: a capture that cannot be read is an error; `quiet`: no progress bar.
    """
    if dask is not None:
        from pyprof.inputs.dask_cluster import Cluster  # noqa: PLC0415 - needs the dask extra

        with Cluster(dask, strict=strict, quiet=quiet) as cluster:
            yield cluster
    elif workers > 1:
        from pyprof.inputs.processes import Processes  # noqa: PLC0415 - often not needed

        with Processes(workers, strict=strict, quiet=quiet) as processes:
            yield processes
    else:
        yield InProcess(strict=strict, quiet=quiet)
