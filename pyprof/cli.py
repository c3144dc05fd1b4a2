"""What all commands share: one-line errors, output that is complete or absent, quiet pipes."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TextIO, cast

import click

from pyprof import aliases, overwrite_guard, sanitize
from pyprof.cli_types import complete_files, suggestion
from pyprof.errors import PyprofError, refused
from pyprof.process import atomic_files, signals, stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

STDOUT = overwrite_guard.STDOUT


def say(text: str) -> None:
    """Tell the user something on stderr, as `streams.say` does; inputs are named as given."""
    stdio.say(overwrite_guard.current().restore_user_paths(text))


class Main(click.Command):
    """What is run from the shell: its messages are safe to show, and need nobody to read them."""

    def make_context(self, *args: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's
        """Read the command line; help and version are written here."""
        try:
            return super().make_context(*args, **settings)
        except BrokenPipeError:
            raise
        except click.NoSuchOption as error:
            raise self._of_rows(error) from None
        except OSError as error:
            stdio.silence(sys.stdout)
            say(f"stdout: {error.strerror or error}")
            raise click.exceptions.Exit(1) from None

    def _of_rows(self, error: click.NoSuchOption) -> click.UsageError:
        """Say how rows are chosen, where an option is called as a column is."""
        name = error.option_name.lstrip("-")
        if not any("--where" in param.opts for param in self.params):
            return error
        column = name if name in aliases.CHOSEN_BY else aliases.resolve(name, aliases.CHOSEN_BY)
        if column is None:
            return error
        message = f"No such option {error.option_name!r}; rows are chosen by --where {column}=VALUE"
        return click.UsageError(message, error.ctx)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:  # noqa: ANN401 - click's
        """Run it with the process's arguments, and end the process."""
        stdio.prepare()
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **extra)
        with signals.ending():
            try:
                code = run(*args, standalone_mode=False, **extra)
            except click.ClickException as error:
                shown = io.StringIO()
                error.show(shown)
                stdio.note(shown.getvalue())
                code = error.exit_code
            except click.Abort as error:
                stdio.note("Aborted!\n")
                by_signal = isinstance(error.__cause__, KeyboardInterrupt)
                code = signals.INTERRUPTED if by_signal else 1
            except signals.Ended as ended:
                say(f"ended by {ended.name}")
                code = ended.code
        sys.exit(code)


class Group(Main, click.Group):
    """Commands by name; for a wrong one it says which may be meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names."""
        if args[:1] and args[0][:1] != "-" and self.get_command(ctx, args[0]) is None:
            if Path(args[0]).exists():
                ctx.fail(f"{args[0]} is a file; name a command before it: pyprof summary FILE")
            hint = suggestion(args[0], self.list_commands(ctx))
            ctx.fail(f"No such command {args[0]!r}{hint or '.'}")
        return super().resolve_command(ctx, args)


class Command(Main):
    """A command whose user errors end it with one line on stderr and exit code 1.

    Its help answers to `-h`, too. One that writes what `-o` names takes `--force`, and writes over
    nothing that it reads. With `makes_folders` it makes the folder that `-o` names.
    """

    def __init__(self, *args: Any, makes_folders: bool = False, **settings: Any) -> None:  # noqa: ANN401 - click's
        self.makes_folders = makes_folders
        context = dict(settings.pop("context_settings", None) or {})
        context.setdefault("help_option_names", ["-h", "--help"])
        super().__init__(*args, **{**settings, "context_settings": context})
        if any("-o" in param.opts for param in self.params):
            self.params.append(_force())
        complete_files(self.params)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        try:
            _decide(self, ctx)
            return super().invoke(ctx)
        except PyprofError as error:
            say(str(error))
            ctx.exit(1)
        except _ReaderGoneError:
            stdio.silence(sys.stdout)
            ctx.exit(0)
        except MemoryError:
            say(_NO_MEMORY)
            ctx.exit(1)
        except UnicodeEncodeError as error:
            # Python keeps the bytes of a path that is not UTF-8; Arrow and torch take no such text.
            if error.reason != "surrogates not allowed":
                _unexpected(ctx, error)
            say(f"{error.object!a}: not UTF-8; rename the file, or set LC_ALL=C.UTF-8")
            ctx.exit(1)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OSError as error:
            if (text := refused(error)) is None:
                _unexpected(ctx, error)
            say(text)
            ctx.exit(1)
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
    say(f"internal error ({what}); please report it with the output of {DEBUG}=1")
    ctx.exit(1)


class _ReaderGoneError(Exception):
    """Whoever read the output has seen enough."""


def _force() -> click.Option:
    def keep(context: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001
        del param
        overwrite_guard.of_command(context).force = value

    help_text = "Allow -o to replace a capture. Inputs are never replaced."
    return click.Option(
        ["--force"], is_flag=True, expose_value=False, callback=keep, help=help_text
    )


def raw_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add --raw to a command that writes CSV; the command gets it as `raw`."""
    help_text = "In CSV, do not put an apostrophe before texts that spreadsheets take for formulas."
    return click.option("--raw", is_flag=True, help=help_text)(function)


def json_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add --json to a command; the command gets it as `as_json`."""
    help_text = "Write JSON, as -o FILE.json does; docs/json.md describes it."
    return click.option("--json", "as_json", is_flag=True, help=help_text)(function)


def source_option(help_text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --source; the command gets it as `folder`, None where it is not given."""
    kind = click.Path(exists=True, file_okay=False, path_type=Path)
    return click.option("--source", "folder", metavar="DIR", type=kind, help=help_text)


def check_raw(raw: bool, form: str) -> None:  # noqa: FBT001 - as the option comes
    """Wrong usage where `--raw` is given for another form than CSV."""
    if raw and form != "csv":
        raise click.UsageError("--raw works only with CSV")


def _decide(command: Command, ctx: click.Context) -> None:
    """Refuse an output before any work; whatever else names a file is taken for an input."""
    target = ctx.params.get("target")
    others = [value for name, value in ctx.params.items() if name != "target"]
    named = [text for value in others for text in _texts(value)]
    nothing = any(isinstance(p, click.Argument) and not ctx.params[p.name or ""]
                  for p in command.params)  # fmt: skip
    output_guard = overwrite_guard.of_command(ctx)
    output_guard.reads([*named, *([overwrite_guard.STDIN] if nothing else [])])
    if target is not None:
        output_guard.check_writable(str(target))
        if not command.makes_folders:
            _check_place(str(target))


def _check_place(target: str) -> None:
    """Raise PyprofError where nothing can be written, which else would show behind the work."""
    path = Path(os.path.realpath(target))
    if target == STDOUT:
        if sys.stdout is None:
            raise PyprofError(_CLOSED)
    elif path.is_dir():
        raise _unwritable(target, errno.EISDIR)
    elif path.is_symlink():  # whose end is itself
        raise _unwritable(target, errno.ELOOP)
    elif not path.parent.exists():
        raise _unwritable(target, errno.ENOENT)
    elif not path.parent.is_dir():
        raise _unwritable(target, errno.ENOTDIR)
    elif not (_is_stream(path) or os.access(path.parent, os.W_OK | os.X_OK)):
        raise _unwritable(target, errno.EACCES)


_CLOSED = "stdout is closed; name a file with -o"


def _texts(value: object) -> list[str]:
    several = value if isinstance(value, tuple) else (value,)
    return [str(one) for one in several if isinstance(one, (str, Path))]


def warn(texts: Sequence[str]) -> None:
    """Tell the user something on stderr that does not stop the work."""
    for text in texts:
        say(f"warning: {text}")


def register_inputs(places: Iterable[str]) -> None:
    """Tell what the command reads besides what it was given by name.

    Raises PyprofError where that is its output.
    """
    overwrite_guard.current().reads(places)


@contextmanager
def output(target: str) -> Iterator[BinaryIO]:
    """Open a file for writing that appears only when it is whole; `-` is stdout.

    A device or a pipe (/dev/null, /dev/stdout) is written to as it is, a link followed.

    Raises PyprofError where it cannot be written, is what the command reads, or is a capture.
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
        _as_created(Path(name))
        output_guard.check_writable(target)  # it may have appeared since
        os.replace(name, path)  # noqa: PTH105 - Path.replace is the same call
    except OSError as error:
        raise _unwritable(target, error) from None
    finally:
        with signals.postponed():
            if name is not None:
                Path(name).unlink(missing_ok=True)


_OTHERS = {
    *("json", "jsonl", "csv", "tsv", "parquet", "xlsx", "html", "htm", "md", "png", "svg", "pdf"),
    *("gz", "sqlite", "nsys-rep", "qdrep", "sql", "nvvp"),
}
"""Suffixes of files that hold no text of ours."""


def output_format(target: str, *suffixes: str) -> str:
    """Give the form that a file's suffix asks for, one of `suffixes`; "" for text.

    Wrong usage where it is the suffix of something else.
    """
    suffix = _suffix(target)
    if suffix in {"", "txt"}:
        return ""
    if suffix not in suffixes:
        raise _misnamed(target, "txt", *suffixes)
    return suffix


def optional_format(target: str, *suffixes: str, text: bool = True) -> str:
    """Give the form that a file's suffix asks for, one of `suffixes`; "" for any other.

    Wrong usage where it is that of a file of another kind than this command writes: a file must not
    deny what it holds, and no capture is written over.
    """
    suffix = _suffix(target)
    if suffix in _OTHERS and suffix not in suffixes and not _is_stream(Path(target)):
        raise _misnamed(target, *(["txt"] if text else []), *suffixes)
    return suffix if suffix in suffixes else ""


def _suffix(target: str) -> str:
    return Path(target).suffix.lower().removeprefix(".")


def _misnamed(target: str, *suffixes: str) -> click.BadParameter:
    there = ", ".join(f".{name}" for name in suffixes)
    return click.BadParameter(
        f"{target!r} must end in one of {there}, which this command writes", param_hint="'-o'"
    )


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
            raise PyprofError(_CLOSED)
        else:
            yield stdio.stdout()
            sys.stdout.flush()
    except BrokenPipeError:
        raise _ReaderGoneError from None
    except OSError as error:
        if target == STDOUT:
            stdio.silence(sys.stdout)
        raise _unwritable("stdout" if target == STDOUT else target, error) from None


def _as_created(path: Path) -> None:
    """Give a temporary file the permissions that an ordinary new file has."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _unwritable(target: str, error: OSError | int) -> PyprofError:
    cause = os.strerror(error) if isinstance(error, int) else error.strerror or error
    return PyprofError(f"{target}: {cause}; choose another place with -o")


@contextmanager
def progress(length: int, label: str, least: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr where that is a terminal and there are at least `least` steps."""
    bar_of = cast("TextIO", stdio.Bar())
    hidden = not bar_of.isatty() or length < least
    with click.progressbar(
        length=length, label=sanitize.message(label), file=bar_of, hidden=hidden
    ) as bar:
        yield bar.update


_LONG_BYTES = 30_000_000
"""Input from which a report takes seconds."""


@contextmanager
def stages(count: int, *files: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that says which stage of `count` begins, on a bar as `progress` shows one.

    Shown for large files alone, and not where the user wants `quiet`.
    """
    given_bytes = sum(Path(file).stat().st_size for file in files if Path(file).is_file())
    bar_of = cast("TextIO", stdio.Bar())
    hidden = quiet or not bar_of.isatty() or given_bytes < _LONG_BYTES
    with click.progressbar(
        length=count,
        show_eta=False,  # stages differ in length
        show_pos=True,
        item_show_func=lambda stage: stage and sanitize.message(stage),
        file=bar_of,
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
