"""Output files: complete or absent, never in place of an input or a capture; and their formats."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, BinaryIO

import click

from pyprof import sanitize
from pyprof.errors import PyprofError
from pyprof.process import atomic_files, overwrite_guard, signals, stdio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STDOUT = overwrite_guard.STDOUT


class ReaderGoneError(Exception):
    """The reader of stdout closed it."""


@contextmanager
def open_output(target: str) -> Iterator[BinaryIO]:
    """Open a file for writing that appears only when complete; `-` is stdout.

    A device or a pipe (/dev/null, /dev/stdout) is written to directly, and links are followed.
    Raises PyprofError if it cannot be written, is an input, or is a capture.
    """
    output_guard = overwrite_guard.current()
    output_guard.check_writable(target)
    if target == STDOUT or _is_stream(Path(target)):
        with _stream(target) as file:
            yield file
        return
    path = Path(os.path.realpath(target))
    name = None
    try:
        with signals.postponed():
            handle, name = atomic_files.create_temp(path)
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).chmod(_permissions(path))
        output_guard.check_writable(target)  # again: it may have appeared since
        os.replace(name, path)  # noqa: PTH105 - Path.replace is the same call
    except OSError as error:
        raise _write_error(target, error) from None
    finally:
        with signals.postponed():
            if name is not None:
                Path(name).unlink(missing_ok=True)


_LEFT_OUT = re.compile(
    r"(?:\.(?:gz|zst|xz|json|trace|pt|sqlite|nsys-rep|qdrep|sql|nvvp|db|csv|dict|parquet|pickle))+$"
)
"""Suffixes of captures, such as that of `net.pt.trace.json.gz`."""
_HOST = re.compile(r"^.*?_(\d+)\.\d+(?=\.pt\.trace\.json)")
"""Host, process and time in file names of torch.profiler's handler."""


def public_name(path: str) -> str:
    """Return a file's name without folders, hosts and credentials."""
    path = sanitize.redact_credentials(path).partition("?")[0]
    return _HOST.sub(r"\1", PureWindowsPath(path).name or path)


def named_after(inputs: Sequence[str], suffix: str) -> str:
    """Return the name of an output here: `net.report.html` of `runs/net.sqlite`.

    It is the suffix alone for several inputs, a glob or stdin.
    """
    if len(inputs) != 1:
        return suffix
    path = Path(inputs[0])
    name = _LEFT_OUT.sub("", public_name(path.name or path.resolve().name))
    is_plain = re.search(r"\w", name) and not re.search(r"[*?\[]", name)
    return f"{name}.{suffix}" if is_plain else suffix


_OTHERS = {
    *("json", "jsonl", "csv", "tsv", "parquet", "xlsx", "html", "htm", "md", "png", "svg", "pdf"),
    *("gz", "sqlite", "nsys-rep", "qdrep", "sql", "nvvp", "db", "dict", "pickle"),
}
"""Suffixes of files that must not contain plain text."""


def output_format(target: str, *suffixes: str, option: str = "") -> str:
    """Return the format of a file's suffix, one of `suffixes`; "" for text.

    Raises BadParameter for any other suffix. With an option, it is as `optional_format`.
    """
    if option:
        return optional_format(target, *suffixes, option=option)
    suffix = _suffix(target)
    if suffix in {"", "txt"}:
        return ""
    if suffix not in suffixes:
        raise _wrong_suffix_error(target, "txt", *suffixes)
    return suffix


def optional_format(target: str, *suffixes: str, text: bool = True, option: str = "") -> str:
    """Return the format of a file's suffix, one of `suffixes`; "" for any other.

    Raises BadParameter for the suffix of a format that this command does not write: a file's
    name must match its content, and no capture is overwritten. If an `option` selects the format,
    returns that, and raises UsageError for a suffix of another one.
    """
    suffix = _suffix(target)
    others = _OTHERS if text else {*_OTHERS, "txt"}
    if suffix in others and suffix not in suffixes and not _is_stream(Path(target)):
        raise _wrong_suffix_error(target, *(["txt"] if text else []), *suffixes)
    form = suffix if suffix in suffixes else ""
    if option and form not in {"", option}:
        raise click.UsageError(f"--{option} does not write {target!r}: leave out --{option}, or"
                               f" name it .{option}")  # fmt: skip
    return option or form


def _suffix(target: str) -> str:
    return Path(target).suffix.lower().removeprefix(".")


def _wrong_suffix_error(target: str, *suffixes: str) -> click.BadParameter:
    there = ", ".join(f".{name}" for name in suffixes)
    return click.BadParameter(
        f"{target!r} must end in one of {there}, which this command writes", param_hint="'-o'"
    )


def _is_stream(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _stream(target: str) -> Iterator[BinaryIO]:
    """Open stdout, a device or a pipe; raises ReaderGoneError if its reader closes it."""
    try:
        if target != STDOUT:
            with Path(target).open("wb") as file:
                yield file
        elif sys.stdout is None:  # closed by the shell: `>&-`
            raise PyprofError(_CLOSED)
        else:
            yield stdio.stdout()
            sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGoneError from None
    except OSError as error:
        if target == STDOUT:
            stdio.silence(sys.stdout)
        raise _write_error("stdout" if target == STDOUT else target, error) from None


def _permissions(path: Path) -> int:
    """Return the mode of the file that is replaced, else that of an ordinary new file."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _write_error(target: str, error: OSError | int) -> PyprofError:
    cause = os.strerror(error) if isinstance(error, int) else error.strerror or error
    return PyprofError(f"{target}: {cause}; choose another place with -o")


def check_location(target: str) -> None:
    """Raise PyprofError now if writing would fail after the work."""
    path = Path(os.path.realpath(target))
    if target == STDOUT:
        if sys.stdout is None:
            raise PyprofError(_CLOSED)
    elif path.is_dir():
        raise _write_error(target, errno.EISDIR)
    elif path.is_symlink():  # a link to itself
        raise _write_error(target, errno.ELOOP)
    elif not path.parent.exists():
        raise _write_error(target, errno.ENOENT)
    elif not path.parent.is_dir():
        raise _write_error(target, errno.ENOTDIR)
    elif not (_is_stream(path) or os.access(path.parent, os.W_OK | os.X_OK)):
        raise _write_error(target, errno.EACCES)


_CLOSED = "stdout is closed; name a file with -o"
