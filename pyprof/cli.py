"""What every command shares: errors in one line, output that is whole or not there, quiet pipes."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import click

from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    _FloatType = click.ParamType[float]
else:
    _FloatType = click.ParamType  # takes no type argument in older click

STDOUT = "-"


class Command(click.Command):
    """A command whose user errors end it with one line on stderr and exit code 1.

    Its help answers to `-h`, too.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:  # noqa: ANN401 - click's
        context = dict(settings.pop("context_settings", None) or {})
        context.setdefault("help_option_names", ["-h", "--help"])
        super().__init__(*args, **{**settings, "context_settings": context})

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        try:
            return super().invoke(ctx)
        except PyprofError as error:
            click.echo(f"pyprof: {' '.join(str(error).split())}", err=True)
            ctx.exit(1)
        except BrokenPipeError:
            _close_stdout()
            ctx.exit(0)
        except MemoryError:
            click.echo(f"pyprof: {_NO_MEMORY}", err=True)
            ctx.exit(1)
        except UnicodeEncodeError as error:
            # Python keeps the bytes of a path that is not UTF-8; Arrow and torch take no such text.
            if error.reason != "surrogates not allowed":
                _unexpected(ctx, error)
            told = "not UTF-8; rename the file, or set LC_ALL=C.UTF-8"
            click.echo(f"pyprof: {error.object!a}: {told}", err=True)
            ctx.exit(1)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - the last resort
            _unexpected(ctx, error)


_NO_MEMORY = (
    "not enough memory for this input; close other programs, use a machine with more, "
    "or capture a shorter part of the run"
)
DEBUG = "PYPROF_DEBUG"
"""Set to 1, an error that nothing expected is shown with its traceback."""


def _unexpected(ctx: click.Context, error: Exception) -> NoReturn:
    """End with one line what is a fault of pyprof's own."""
    if os.environ.get(DEBUG):
        raise error
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    click.echo(
        f"pyprof: internal error ({what}); please report it, with what {DEBUG}=1 shows", err=True
    )
    ctx.exit(1)


_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}


class Quantity(_FloatType):
    """A rate above 0 in `unit`, as people write it: 989e12, 989T, 3.35 TB/s. Prefixes are SI's."""

    def __init__(self, unit: str) -> None:
        self.unit = self.name = unit
        symbol = re.escape(unit).replace("/s", "(?:/s|S|ps)?")
        number = r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)"
        self._form = re.compile(rf"{number}\s*([kMGTP]?)(?:{symbol})?", re.IGNORECASE)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number; wrong usage where it is none, or not above 0."""
        found = self._form.fullmatch(str(value).strip())
        rate = float(found[1]) * _PREFIXES[found[2].lower()] if found else 0.0
        if not 0 < rate < float("inf"):
            self.fail(f"{value!r} is no rate in {self.unit}, such as 1.5e12 or 1.5T", param, ctx)
        return rate


class Number(_FloatType):
    """A finite number above 0 and up to `most`; click's own range lets nan and infinity through."""

    name = "number"

    def __init__(self, example: str, most: float = float("inf"), *, zero: bool = False) -> None:
        self._example, self._most, self._zero = example, most, zero

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number; wrong usage where it is none, or outside the range."""
        try:
            number = float(str(value))
        except ValueError:
            number = float("nan")
        fits = 0 <= number <= self._most if self._zero else 0 < number <= self._most
        if not fits or number == float("inf"):
            self.fail(
                f"{value!r} is no number {self._range()}, such as {self._example}", param, ctx
            )
        return number

    def _range(self) -> str:
        least = "from 0" if self._zero else "above 0"
        return least if self._most == float("inf") else f"{least} to {self._most:g}"


def _close_stdout() -> None:
    # Python flushes stdout once more at exit, which would fail again and say so.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def warn(texts: Sequence[str]) -> None:
    """Tell the user something on stderr that does not stop the work."""
    for text in texts:
        click.echo(f"pyprof: warning: {' '.join(text.split())}", err=True)


@contextmanager
def output(target: str) -> Iterator[BinaryIO]:
    """Open a file for writing that appears only when it is whole; `-` is stdout.

    A device or a pipe (/dev/null, /dev/stdout) is written to as it is, a link followed.

    Raises PyprofError where it cannot be written.
    """
    if target == STDOUT or _is_stream(Path(target)):
        with _stream(target) as file:
            yield file
        return
    path = Path(os.path.realpath(target))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _unwritable(target, error) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        _as_created(Path(name))
        os.replace(name, path)  # noqa: PTH105 - Path.replace is the same call
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        Path(name).unlink(missing_ok=True)


def form(target: str, *known: str) -> str:
    """Give the form that a file's suffix asks for, one of `known`; "" for text.

    Wrong usage where it is the suffix of something else.
    """
    suffix = Path(target).suffix.lower()
    if suffix in {"", ".txt"}:
        return ""
    if suffix[1:] not in known:
        there = ", ".join(f".{name}" for name in ("txt", *known))
        raise click.BadParameter(f"{target!r} ends in none of {there}", param_hint="'-o'")
    return suffix[1:]


def _is_stream(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _stream(target: str) -> Iterator[BinaryIO]:
    """Open what cannot be replaced by a whole file; a reader that went away is no error of ours."""
    try:
        if target != STDOUT:
            with Path(target).open("wb") as file:
                yield file
        elif sys.stdout is None:  # closed by the shell: `>&-`
            raise PyprofError("stdout is closed; name a file with -o")
        else:
            yield sys.stdout.buffer
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        if target == STDOUT:
            _close_stdout()
        raise _unwritable("stdout" if target == STDOUT else target, error) from None


def _as_created(path: Path) -> None:
    """Give a temporary file the permissions that an ordinary new file has."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _unwritable(target: str, error: OSError) -> PyprofError:
    return PyprofError(f"{target}: {error.strerror or error}; choose another place with -o")


@contextmanager
def progress(length: int, label: str, least: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr where that is a terminal and there are at least `least` steps."""
    hidden = not sys.stderr.isatty() or length < least
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden) as bar:
        yield bar.update


_LONG_BYTES = 30_000_000
"""Input from which a report takes seconds."""


@contextmanager
def stages(count: int, *files: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that says which stage of `count` begins, on a bar as `progress` shows one.

    Shown for large files alone, and not where the user wants `quiet`.
    """
    given_bytes = sum(Path(file).stat().st_size for file in files if Path(file).is_file())
    hidden = quiet or not sys.stderr.isatty() or given_bytes < _LONG_BYTES
    with click.progressbar(
        length=count,
        show_eta=False,  # stages differ in length
        show_pos=True,
        item_show_func=lambda stage: stage,
        file=sys.stderr,
        update_min_steps=0,  # the first stage ends none
        hidden=hidden,
    ) as bar:
        ended = 0

        def begin(stage: str) -> None:
            nonlocal ended
            bar.update(ended, stage)
            ended = 1

        yield begin
        bar.update(count - bar.pos, "done")
