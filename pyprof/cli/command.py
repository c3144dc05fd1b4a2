"""What all commands share: one-line errors, quiet pipes, help, safe outputs."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from pyprof.cli import former_options
from pyprof.cli.option_types import complete_files
from pyprof.errors import PyprofError, refused
from pyprof.process import output_file, overwrite_guard, signals, stdio
from pyprof.process.messages import say
from pyprof.suggestions import CHOSEN_BY, resolve, suggestion

ADVANCED = frozenset(("--raw", "--workers", "--with", "--no-init", "--graph-nodes", "--no-seed"))
"""Options that few people need, in whatever command; help lists them last."""


class Main(click.Command):
    """A program run from the shell: messages are sanitized, and closed streams do no harm."""

    def make_context(self, *args: Any, **settings: Any) -> click.Context:  # noqa: ANN401 - click's
        """Read the command line; help and version are written here."""
        try:
            return super().make_context(*args, **settings)
        except BrokenPipeError:
            raise
        except click.NoSuchOption as error:
            raise self._suggest_instead(error) from None
        except OSError as error:
            stdio.silence(sys.stdout)
            say(f"stdout: {error.strerror or error}")
            raise click.exceptions.Exit(1) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; a former option works as the one that replaced it, with a note."""
        try:
            return super().parse_args(ctx, [*args])
        except click.NoSuchOption as error:
            now = former_options.rewritten(self.name, error.option_name, args)
            if now is None:
                raise
            arguments, text = now
            say(text)
            return self.parse_args(ctx, arguments)

    def _suggest_instead(self, error: click.NoSuchOption) -> click.UsageError:
        """Say what to write for an option that is gone, or is named like a column."""
        if (advice := former_options.GONE.get(error.option_name)) is not None:
            return click.UsageError(f"{error.option_name} is gone: {advice}", error.ctx)
        name = error.option_name.lstrip("-")
        if not any("--where" in param.opts for param in self.params):
            return error
        column = name if name in CHOSEN_BY else resolve(name, CHOSEN_BY)
        if column is None:
            return error
        message = f"No such option {error.option_name!r}; rows are chosen by --where {column}=VALUE"
        return click.UsageError(message, error.ctx)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:  # noqa: ANN401 - click's
        """Run the command; in `standalone_mode`, end the process with its exit code."""
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
    """Commands by name; suggests one for a mistyped name."""

    def command_for_file(self, path: str) -> str | None:
        """Return the command to run for a file named in place of a command; else None."""
        del path
        return None

    def _suggest_instead(self, error: click.NoSuchOption) -> click.UsageError:
        """Say where the options of commands stand."""
        shown = super()._suggest_instead(error)
        if shown is not error:
            return shown
        name = error.option_name
        return click.UsageError(f"No such option {name!r} before a command; write it after the"
                                " command or the file", error.ctx)  # fmt: skip

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names."""
        if args[:1] and args[0][:1] != "-" and self.get_command(ctx, args[0]) is None:
            name = self.command_for_file(args[0])
            if name is not None:
                return name, self.get_command(ctx, name), args
            hint = suggestion(args[0], self.list_commands(ctx))
            ctx.fail(f"No such command {args[0]!r}{hint or '.'}")
        return super().resolve_command(ctx, args)


class Command(Main):
    """A command whose user errors end it with one line on stderr and exit code 1.

    `-h` shows its help, too. `-o` never overwrites an input or a capture. With `makes_folders` the
    command itself creates the folder that `-o` names. Without `-o` the output is named after FILE,
    and ends in `output`.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's
        makes_folders: bool = False,
        output: str | None = None,
        **settings: Any,  # noqa: ANN401 - click's
    ) -> None:
        self.makes_folders = makes_folders
        self.output = output
        context = dict(settings.pop("context_settings", None) or {})
        context.setdefault("help_option_names", ["-h", "--help"])
        super().__init__(*args, **{**settings, "context_settings": context})
        complete_files(self.params)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List options; those that few people need have a heading of their own."""
        shown: dict[str, list[tuple[str, str]]] = {"Options": [], "Advanced": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and record[1]:  # some versions of click list arguments, too
                shown["Options" if ADVANCED.isdisjoint(param.opts) else "Advanced"].append(record)
        for heading, records in shown.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        try:
            _check_output(self, ctx)
            return super().invoke(ctx)
        except PyprofError as error:
            say(str(error))
            ctx.exit(1)
        except output_file.ReaderGoneError:
            stdio.silence(sys.stdout)
            ctx.exit(0)
        except MemoryError:
            say(_NO_MEMORY)
            ctx.exit(1)
        except UnicodeEncodeError as error:
            # Python preserves paths that are not UTF-8; Arrow and torch reject them.
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
"""Environment variable: if set, unexpected errors are shown with their traceback."""


def _unexpected(ctx: click.Context, error: Exception) -> NoReturn:
    """End with one line on an internal error of pyprof."""
    if os.environ.get(DEBUG):
        raise error
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    say(f"internal error ({what}); please report it with the output of {DEBUG}=1")
    ctx.exit(1)


def _check_output(command: Command, ctx: click.Context) -> None:
    """Name an output, or refuse it, before any work; every other file name counts as an input."""
    if command.output is not None and ctx.params["target"] is None:
        ctx.params["target"] = output_file.named_after(ctx.params["files"], command.output)
    target = ctx.params.get("target")
    others = [value for name, value in ctx.params.items() if name != "target"]
    each = [one for other in others for one in (other if isinstance(other, tuple) else (other,))]
    named = [str(one) for one in each if isinstance(one, (str, Path))]
    nothing = any(isinstance(p, click.Argument) and not ctx.params[p.name or ""]
                  for p in command.params)  # fmt: skip
    output_guard = overwrite_guard.of_command(ctx)
    output_guard.reads([*named, *([overwrite_guard.STDIN] if nothing else [])])
    if target is not None:
        output_guard.check_writable(str(target))
        if not command.makes_folders:
            output_file.check_location(str(target))
