"""File formats of other viewers. One module each, found by being here.

A module has `SUFFIXES`, the endings of the files that it writes, as a literal; the first line of
its docstring is its line in `pyprof export --help`. Both are read without running the module, so
that only the one that is used is loaded. Its `KIND` says what its files hold, and so what else it
has: "rows", all columns of them (`Tabular`), "sums" over rows (`Summing`), or "events", what the
rows and the host did (`Listing`).

One that takes options of the command names them in `OPTIONS`, a literal, too; its `write` gets them
by name.
"""

from __future__ import annotations

import ast
import pkgutil
from importlib import import_module
from pathlib import Path
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

    import pyarrow as pa

    from pyprof.inputs.source import Source
    from pyprof.prof.group import Counts

S = TypeVar("S")


class Summing(Protocol[S]):
    """A module whose files hold sums over rows: those of a set are added up, and written once."""

    KIND: Literal["sums"]
    SUFFIXES: tuple[str, ...]

    def sums(self, source: Source) -> S:
        """Sum up a capture, in a form that is small enough to send."""

    def merge_sums(self, a: S, b: S) -> S:
        """Make the sums of two captures those of both."""

    def write(self, sums: S, file: BinaryIO, **options: Any) -> None:  # noqa: ANN401 - by name
        """Write the whole file."""


class Part(NamedTuple):
    """What was written of one capture of a set."""

    name: str
    """Whose it is."""
    path: Path
    counts: Counts


class Listing(Protocol):
    """A module whose files hold what happened: those of a set are written apart, then joined."""

    KIND: Literal["events"]
    SUFFIXES: tuple[str, ...]

    def write(self, source: Source, file: BinaryIO) -> None:
        """Write the whole file of one capture."""

    def join(self, parts: Sequence[Part], file: BinaryIO) -> None:
        """Make the files of captures, of at least one, one file; not all in memory at a time."""


class Tabular(Protocol):
    """A module whose files hold a table of rows."""

    KIND: Literal["rows"]
    SUFFIXES: tuple[str, ...]

    def write(self, tables: Iterator[pa.Table], file: BinaryIO, **options: Any) -> None:  # noqa: ANN401 - by name
        """Write the whole file, some rows after the others; there is at least one table."""


class Format(NamedTuple):
    """An exporter that is not loaded yet."""

    module: str
    suffixes: tuple[str, ...]
    description: str
    options: tuple[str, ...] = ()

    def load(self) -> Summing[Any] | Listing | Tabular:
        """Import it."""
        return cast("Summing[Any] | Listing | Tabular", import_module(f"{__name__}.{self.module}"))


def formats() -> Iterator[Format]:
    """List the formats, in alphabetical order of their modules."""
    for module in pkgutil.iter_modules(__path__):
        tree = ast.parse((Path(__path__[0]) / f"{module.name}.py").read_bytes())
        description = (ast.get_docstring(tree) or "").partition("\n")[0]
        literals = {
            _name(statement): statement.value
            for statement in tree.body
            if isinstance(statement, ast.Assign)
        }
        if "SUFFIXES" in literals:
            suffixes, options = (
                ast.literal_eval(literals[name]) if name in literals else ()
                for name in ("SUFFIXES", "OPTIONS")
            )
            yield Format(module.name, suffixes, description, options)


def _name(statement: ast.Assign) -> str | None:
    target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else None


def find(name: str) -> Format | None:
    """Give the format of a file name by its longest known suffix; None where none is known."""
    format_by_suffix = {suffix: form for form in formats() for suffix in form.suffixes}
    ours = [suffix for suffix in format_by_suffix if name.lower().endswith(suffix)]
    return format_by_suffix[max(ours, key=len)] if ours else None
