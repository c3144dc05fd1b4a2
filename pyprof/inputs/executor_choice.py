"""Which executor works on the captures: this process, several, or a cluster's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyprof.errors import PyprofError
from pyprof.inputs.executor import InProcess
from pyprof.inputs.files import is_url
from pyprof.inputs.find import find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.inputs.executor import Executor


@contextmanager
def opened(
    workers: int = 1,
    dask: str | None = None,
    *,
    strict: bool = False,
    quiet: bool = False,
    sources: Sequence[str] = (),
    work: str | None = None,
) -> Iterator[Executor]:
    """Give the executor that is asked for: a cluster's, `workers` processes, or this process.

    `strict`: a capture that cannot be read is an error; `quiet`: no progress bar. `work` is the
    module of a command's work: its processes are copies of this one where that is safe, and else
    begin at once to load the module, where `sources` are several captures.
    """
    if dask is not None:
        from pyprof.inputs.dask_cluster import Cluster  # noqa: PLC0415 - needs the dask extra

        with Cluster(dask, strict=strict, quiet=quiet) as cluster:
            yield cluster
    elif workers > 1:
        from pyprof.inputs.processes import Processes  # noqa: PLC0415 - often not needed

        with Processes(workers, strict=strict, quiet=quiet, work=work) as processes:
            if not processes.forks and (captures := _count(sources)) > 1:
                processes.begin(captures)
            yield processes
    else:
        yield InProcess(strict=strict, quiet=quiet)


def _count(sources: Sequence[str]) -> int:
    """Count the captures of this machine; what is wrong with them will be said as they are used."""
    try:
        return 0 if any(map(is_url, sources)) else len(find(sources))
    except PyprofError:
        return 0
