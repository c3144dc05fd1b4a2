"""File formats of other viewers: one module each, listed in FORMATS.

A module is imported when used. Its `KIND` says what its files hold, and which protocol it has:
"rows" (`RowsFormat`), "sums" over rows (`SumsFormat`), or "events" of GPU and host
(`EventsFormat`).
"""

from __future__ import annotations

from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pyprof.inputs.source import Source
    from pyprof.prof.group import Counts

S = TypeVar("S")


class SumsFormat(Protocol[S]):
    """A module whose files hold sums over rows.

    Those of a set are merged by `pyprof.records.merging.merge_sums`, and written once.
    """

    KIND: Literal["sums"]

    def sums(self, source: Source) -> S:
        """Sum up a capture, small enough to send."""

    def write(self, sums: S, file: BinaryIO, **options: Any) -> None:  # noqa: ANN401 - by name
        """Write the whole file."""


class Part(NamedTuple):
    """The file written for one capture of a set."""

    name: str
    """Label of its ranks."""
    path: Path
    counts: Counts


class EventsFormat(Protocol):
    """A module whose files hold events: those of a set are written separately, then joined."""

    KIND: Literal["events"]

    def write(self, source: Source, file: BinaryIO) -> None:
        """Write the whole file of one capture."""

    def join(self, parts: Sequence[Part], file: BinaryIO) -> None:
        """Join the files of one or more captures; not all in memory at a time."""


class RowsFormat(Protocol):
    """A module whose files hold a table of rows."""

    KIND: Literal["rows"]

    def write(self, tables: Iterator[pa.Table], file: BinaryIO, **options: Any) -> None:  # noqa: ANN401 - by name
        """Write the whole file, table after table; there is at least one."""


class Format(NamedTuple):
    """An exporter that is not imported yet."""

    module: str
    suffixes: tuple[str, ...]
    """Suffixes of its files."""
    description: str
    """Its line in `pyprof export --help`."""
    options: tuple[str, ...] = ()
    """Names of the command's options that its `write` takes."""

    def load(self) -> SumsFormat[Any] | EventsFormat | RowsFormat:
        """Import it."""
        return cast(
            "SumsFormat[Any] | EventsFormat | RowsFormat",
            import_module(f"{__name__}.{self.module}"),
        )


FORMATS = (
    Format(
        "as_collapsed",
        (".collapsed", ".folded"),
        "Collapsed stacks with their time in ns, for flame graphs: flamegraph.pl, inferno, "
        "speedscope.",
        ("folder",),
    ),
    Format(
        "as_csv",
        (".csv",),
        "Every column of every row, under the names that `pyprof.load` gives them, as CSV.",
        ("raw",),
    ),
    Format(
        "as_json",
        (".json",),
        "Every column of every row as JSON: a list of objects, null for unknown values.",
    ),
    Format(
        "as_markdown",
        (".md",),
        "Totals, the ops, kernels, layers and lines that took longest, and advice, as Markdown.",
    ),
    Format(
        "as_parquet",
        (".parquet", ".pq"),
        "Every column of every row as Parquet; each column carries its meaning as metadata.",
    ),
    Format(
        "as_pstats",
        (".prof", ".pstats"),
        "GPU time by Python stack, op and kernel, for pstats and snakeviz.",
        ("folder",),
    ),
    Format(
        "as_speedscope",
        (".speedscope.json",),
        "Stacks: totals, and over time per GPU stream, for https://www.speedscope.app.",
    ),
    Format(
        "as_trace",
        (".pt.trace.json", ".pt.trace.json.gz", ".perfetto", ".perfetto.gz", ".perfetto-trace"),
        "Timeline for Perfetto, chrome://tracing and readers of torch.profiler's traces.",
    ),
)


def find(name: str) -> Format | None:
    """Return the format of a file name by its longest known suffix; None if unknown."""
    format_by_suffix = {suffix: form for form in FORMATS for suffix in form.suffixes}
    ours = [suffix for suffix in format_by_suffix if name.lower().endswith(suffix)]
    return format_by_suffix[max(ours, key=len)] if ours else None
