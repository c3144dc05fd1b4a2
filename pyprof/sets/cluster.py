"""A running Dask cluster: captures are worked on where its workers are, results stay there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyprof.errors import CaptureError, PyprofError
from pyprof.sets.engine import Failed, Handle, attempt, progress, settled, tree

try:
    from distributed import Client, KilledWorker, as_completed
except ImportError:
    raise PyprofError("--dask needs Dask; pip install torch-pyprof[dask]") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from distributed import Future
    from typing_extensions import Self

A = TypeVar("A")
T = TypeVar("T")

_RETRIES = 2
"""Of work that raises, as it does when a network file system stumbles."""


class Cluster:
    """An engine on a cluster. `address` is its scheduler's, or the path of a scheduler file.

    The scheduler gives what a lost worker had to the others. Raises PyprofError where no
    scheduler answers.
    """

    def __init__(self, address: str, *, strict: bool = False, quiet: bool = False) -> None:
        self.strict, self.quiet = strict, quiet
        self._address = address
        place = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
        try:
            self._client = Client(**place, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise PyprofError(
                f"no Dask scheduler answers at {address} ({error}); give the address that "
                "dask scheduler prints, such as tcp://host:8786"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        """Work on every item, somewhere; strict stops at the first that cannot be read."""
        work = partial(attempt, function)
        futures = self._client.map(work, items, pure=False, retries=_RETRIES)
        failures = self._client.map(failure, futures, pure=False)
        with progress(items, label, quiet=self.quiet) as advance:
            for done in as_completed(failures, loop=self._client.loop):
                failed = self._result(done)
                advance(1)
                if self.strict and failed is not None:
                    raise CaptureError(failed.reason)
        return settled(items, futures, self._client.gather(failures), strict=self.strict)

    def reduce(self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]]) -> T:
        """Merge on the workers; only what is left at the end comes here."""

        def later(left: Future, right: Future) -> Future:
            return self._client.submit(merge, left, right, pure=False, retries=_RETRIES)

        found: T = self._result(tree(later, [handle.place for handle in handles]))
        return found

    def gather(self, handles: Sequence[Handle[T]]) -> Iterator[T]:
        """Fetch the results, one at a time."""
        return (self._result(handle.place) for handle in handles)

    def _result(self, future: Future) -> Any:  # noqa: ANN401 - whatever was worked out
        try:
            return future.result()
        except KilledWorker as error:
            raise PyprofError(
                f"workers of {self._address} end before their work is done, as they do when "
                f"memory runs out ({_line(error)}); give them more memory, or fewer threads"
            ) from None
        except ModuleNotFoundError as error:
            raise PyprofError(
                f"the workers of {self._address} lack a package ({_line(error)}); "
                "install torch-pyprof[dask] there, too"
            ) from None


def failure(result: object) -> Failed | None:
    """Keep of a result only why there is none."""
    return result if isinstance(result, Failed) else None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
