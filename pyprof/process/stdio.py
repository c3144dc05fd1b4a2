"""Standard streams, any of which may be closed, or end in a closed pipe."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import click

from pyprof import sanitize

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer


_STDERR = 2


def prepare() -> None:
    """Open closed descriptors (`2>&-`) on the null device, and make sure that stderr exists.

    Otherwise the next file opened would receive the error messages of libraries.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:  # it takes the lowest
        os.set_inheritable(number, True)  # noqa: FBT003 - takes no name
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process


def reopened(stream: TextIO) -> TextIO:
    """Return the stream, opened again if it is closed but its descriptor is still open.

    Python leaves the descriptor of a standard stream open when the stream is closed.
    """
    if not isinstance(stream, io.TextIOWrapper) or not stream.closed:
        return stream
    number = {"<stdout>": 1, "<stderr>": _STDERR}.get(stream.name)
    if number is None:
        return stream
    try:
        return open(number, "w", encoding=stream.encoding, errors=stream.errors, closefd=False)
    except OSError:  # the descriptor is closed, too
        return stream


def say(text: str) -> None:
    """Print a message on stderr, in one line; never fails."""
    note(f"pyprof: {sanitize.message(text)}\n")


def note(text: str) -> None:
    """Write lines to stderr, if possible."""
    safe = sanitize.multiline(sanitize.redact_credentials(text))
    on_stderr(lambda: click.echo(safe, nl=False, err=True))


def on_stderr(write: Callable[[], object]) -> None:
    """Write to stderr; if that fails, discard this and all later output."""
    try:
        write()
    except (OSError, ValueError):
        silence(sys.stderr)


def silence(stream: TextIO | None) -> None:
    """Redirect a stream to the null device: Python flushes it as the process ends."""
    try:
        number = -1 if stream is None else stream.fileno()
    except (OSError, ValueError):  # a test's stream, or a closed one
        return
    if number >= 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, number)
        os.close(nothing)


class Bar(io.TextIOBase):
    """Stderr for a progress bar; failing to write to it is not an error."""

    def write(self, text: str) -> int:
        """Write what the bar draws."""
        on_stderr(lambda: sys.stderr.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush stderr."""
        on_stderr(sys.stderr.flush)

    def isatty(self) -> bool:
        """Whether stderr is a terminal."""
        return terminal(sys.stderr)


def terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def stdout() -> BinaryIO:
    """Return stdout for bytes; a terminal gets no control characters. It must be open."""
    return cast("BinaryIO", _Terminal()) if terminal(sys.stdout) else sys.stdout.buffer


class _Terminal(io.BufferedIOBase):
    """Stdout for bytes on a terminal: unsafe characters become blanks."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        text = self._decoder.decode(bytes(data))
        sys.stdout.buffer.write(sanitize.multiline(text).encode())
        return len(memoryview(data))

    def flush(self) -> None:
        sys.stdout.buffer.flush()
