"""A running Dask cluster: its workers read the captures and keep the results.

Dask maps, retries and distributes; ours is one line of error for each way that can fail, and a
check for the scheduler first, since a Client would retry for half a minute.
"""

from __future__ import annotations

import asyncio
import json
import socket
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

from pyprof.errors import CaptureError, PyprofError, reason
from pyprof.inputs.executor import Failed, Handle, item_progress, name_of, successes, tree, try_item
from pyprof.process.extras import install_command
from pyprof.process.messages import warn
from pyprof.readers.settings import Carried
from pyprof.version import __version__

try:
    import dask.config
    from dask.utils import parse_timedelta
    from distributed import CancelledError, Client, KilledWorker, Security, as_completed
    from distributed.comm import connect, get_address_host_port
except ImportError:
    raise PyprofError(
        f"--workers ADDRESS needs Dask: {install_command('dask[distributed]')}"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distributed import Future
    from typing_extensions import Self

A = TypeVar("A")
T = TypeVar("T")
R = TypeVar("R")

_RETRIES = 2
"""Retries of work that raises, as when a network file system stumbles."""

_ENDS = (
    "its worker ended every time, perhaps out of memory; give workers more memory, or fewer threads"
)

_ANSWER_S = 5.0
"""Time limit for a connection to the scheduler's host; its answer may take longer."""


class Cluster:
    """An executor on a cluster; `address` is the scheduler's, or the path of a scheduler file.

    The scheduler reassigns the work of a lost worker. Raises PyprofError if no scheduler answers.
    """

    def __init__(self, address: str, *, strict: bool = False, quiet: bool = False) -> None:
        self.strict, self.quiet = strict, quiet
        self._address = address
        try:
            self._client = Client(_scheduler(address), set_as_default=False)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            raise PyprofError(
                f"no Dask scheduler answers at {address} ({reason(error)}); give the address that "
                "dask scheduler prints, such as tcp://host:8786, or its scheduler file"
            ) from None
        try:
            self._check()
        except BaseException:
            self._client.close()
            raise

    def _check(self) -> None:
        """Check that all workers have this version of the package; without it they would die."""
        ask = (resolve_name, "pyprof:__version__")
        try:
            workers = self._client.run(*ask)
            versions = {self._client.run_on_scheduler(*ask), *workers.values()}
        except ImportError:
            versions = {"no version"}
        if other := sorted(versions - {__version__}):
            raise PyprofError(
                f"{self._address}: the scheduler or workers have {other[0]} of torch-pyprof, not "
                f"{__version__}; install torch-pyprof[dask]=={__version__} there, too"
            )
        if not workers:
            warn([f"{self._address} has no workers yet; waiting for them"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        """Work on every item, somewhere; if strict, stop at the first that cannot be read."""
        work = partial(try_item, Carried(function))
        futures = self._client.map(work, items, pure=False, retries=_RETRIES)
        failures = self._client.map(failure, futures, pure=False)
        item_of = dict(zip(failures, items, strict=True))
        failure_of: dict[Future, Failed | None] = {}
        with item_progress(items, label, quiet=self.quiet) as advance:
            for done in as_completed(failures, loop=self._client.loop):
                try:
                    failed: Failed | None = self._wait_for(done)
                except KilledWorker:
                    failed = Failed(f"{name_of(item_of[done])}: {_ENDS}")
                failure_of[done] = failed
                advance(1)
                if self.strict and failed is not None:
                    raise CaptureError(failed.reason)
        return successes(items, futures, [failure_of[one] for one in failures], strict=self.strict)

    def reduce(self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]]) -> T:
        """Merge on the workers; only the final result is fetched."""
        result: T = self._result(self._submit_tree(merge, handles))
        return result

    def reduce_and_finish(
        self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]], finish: Callable[[T], R]
    ) -> R:
        """Merge and finish on the workers; only the final result is fetched."""
        merged = self._submit_tree(merge, handles)
        result: R = self._result(self._submit(finish, merged))
        return result

    def _submit_tree(self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]]) -> Future:
        return tree(partial(self._submit, merge), [handle.value for handle in handles])

    def _submit(self, function: Callable[..., object], *arguments: Future) -> Future:
        return self._client.submit(function, *arguments, pure=False, retries=_RETRIES)

    def gather(self, handles: Sequence[Handle[T]]) -> Iterator[T]:
        """Fetch the results, one at a time."""
        return (self._result(handle.value) for handle in handles)

    def _result(self, future: Future) -> Any:  # noqa: ANN401 - whatever it is
        try:
            return self._wait_for(future)
        except KilledWorker:
            raise PyprofError(f"{self._address}: {_ENDS}") from None

    def _wait_for(self, future: Future) -> Any:  # noqa: ANN401 - as above
        try:
            return future.result()
        except CancelledError:
            raise PyprofError(
                f"{self._address}: the scheduler is gone; start one, and repeat the command"
            ) from None


def _scheduler(address: str) -> str:
    """Return the address of a scheduler, perhaps from a scheduler file.

    Raises ValueError if it is neither, OSError if nothing listens there. A Client that finds this
    out itself retries for half a minute, or leaves threads that wait for minutes.
    """
    path = Path(address)
    if path.is_file():
        described = json.loads(path.read_bytes())
        address = str(described.get("address") if isinstance(described, dict) else described)
    host_port = get_address_host_port(address)
    if not address.startswith(_OTHER_THAN_TCP):
        socket.create_connection(host_port, _ANSWER_S).close()
        asyncio.run(_check_answer(address))
    return address


async def _check_answer(address: str) -> None:
    """Check that a scheduler answers: the dashboard, say, accepts connections but never replies.

    Raises asyncio.TimeoutError after Dask's connect timeout, which `Client` itself ignores.
    """
    security = Security().get_connection_args("client")
    patience = dask.config.get("distributed.comm.timeouts.connect")
    greeting = connect(address, **security)
    await (await asyncio.wait_for(greeting, parse_timedelta(patience))).close()


_OTHER_THAN_TCP = ("ucx", "inproc://")
"""Prefixes of addresses without sockets."""


def failure(result: object) -> Failed | None:
    """Keep only the failure of a result, if any."""
    return result if isinstance(result, Failed) else None
