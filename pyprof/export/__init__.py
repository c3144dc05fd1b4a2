"""File formats of other viewers: one module `as_NAME` each, found by its name.

The first paragraph of its docstring is its line of help, `SUFFIXES` are those of its files, and
`OPTIONS` names the options of the command that its `write` takes.

A module is imported when used. Its `KIND` names what its files hold, and with it the protocol:
"rows" (`RowsFormat`), "sums" over rows (`SumsFormat`), or "events" of GPU and host
(`EventsFormat`).
"""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.resources import files
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


def _formats() -> Iterator[Format]:
    """The modules `as_NAME`. They are read, not imported: that takes as long as the command."""
    for file in sorted(files(__name__).iterdir(), key=lambda file: file.name):
        if file.name.startswith("as_") and file.name.endswith(".py"):
            head = ast.parse(file.read_text(encoding="utf-8"))
            stated = {
                target.id: ast.literal_eval(node.value)
                for node in head.body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name) and target.id in ("SUFFIXES", "OPTIONS")
            }
            help_line = (ast.get_docstring(head) or "").partition("\n\n")[0].replace("\n", " ")
            yield Format(file.name[:-3], stated["SUFFIXES"], help_line, stated.get("OPTIONS", ()))


FORMATS = tuple(_formats())


def find(name: str) -> Format | None:
    """Return the format of a file name by its longest known suffix; None if unknown."""
    format_by_suffix = {suffix: form for form in FORMATS for suffix in form.suffixes}
    ours = [suffix for suffix in format_by_suffix if name.lower().endswith(suffix)]
    return format_by_suffix[max(ours, key=len)] if ours else None
