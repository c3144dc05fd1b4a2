"""`pyprof COMMAND`: the modules of `pyprof.commands` in one group.

`python -m pyprof.COMMAND` is the same, also where no package has the name of the command.
"""

from __future__ import annotations

if __name__ == "__main__":  # first: the imports below take time
    from pyprof.process import signals

    signals.quietly_until_begun()

import pkgutil
import re
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path

import click

from pyprof import commands
from pyprof.cli.command import Group
from pyprof.process import program_end
from pyprof.version import __version__

_HEAD = 4096
"""The first bytes of a file, enough to recognise a memory snapshot."""
_PATH = re.compile(r"[./*\\]")
"""Commands have none of these characters; suffixes, folders, globs and URLs do."""
_FIRST_STEPS = ("run", "capture", "parse", "prof", "doctor")
"""Listed first, in this order; the other commands follow by name."""


def names() -> list[str]:
    """Return the names of all commands: each module of `pyprof.commands` is one."""
    modules = (module.name for module in pkgutil.iter_modules(commands.__path__))
    commands_found = {name.replace("_", "-") for name in modules if not name.startswith("_")}
    first = [name for name in _FIRST_STEPS if name in commands_found]
    return first + sorted(commands_found - {*first})


def run(name: str, called: str) -> None:
    """Run a command under the program name `called`."""
    command = main.get_command(click.Context(main), name)
    if command is not None:
        program_end.run(lambda: command.main(prog_name=called))


def module_spec(fullname: str) -> ModuleSpec | None:
    """Return a spec for `pyprof.COMMAND`; None if there is no such command."""
    name = fullname.partition(".")[2].replace("_", "-")
    if name not in names():
        return None
    from importlib.abc import InspectLoader  # noqa: PLC0415 - takes long for a help text

    class CommandModule(InspectLoader):
        def get_source(self, fullname: str) -> str:
            """Return source that runs the command under the name that the user typed.

            When imported, it is replaced by the function of that name, if any: `pyprof.summary`.
            """
            return (
                "if __name__ == '__main__':\n"
                "    from pyprof.__main__ import run\n"
                f"    run({name!r}, 'python -m {fullname}')\n"
                "else:\n"
                "    import sys, pyprof\n"
                f"    public = getattr(pyprof, {name!r}, None)\n"
                "    sys.modules[__name__] = public or sys.modules[__name__]\n"
            )

    return ModuleSpec(fullname, CommandModule(), origin=__file__)


class _Commands(Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return names()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the first sentence of each command, which click would truncate."""
        listed = [(name, self.get_command(ctx, name)) for name in names()]
        shown = [(name, each) for name, each in listed if each and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=200)) for name, each in shown])

    def command_for_file(self, path: str) -> str | None:
        """Return `summary`, or `memory` for a torch memory snapshot; None for a word.

        What looks like a path is one even if no such file exists: `summary` then reports that.
        Raises UsageError for a Python script.
        """
        from pyprof.inputs.files import is_special  # noqa: PLC0415 - only for a file
        from pyprof.readers.refusals import is_memory_snapshot  # noqa: PLC0415 - as above

        if path.endswith(".py"):
            raise click.UsageError(f"{path} is a script; to profile it: pyprof run {path}")
        if not Path(path).exists():
            return "summary" if _PATH.search(path) else None
        if Path(path).is_dir() or is_special(path):
            return "summary"
        with Path(path).open("rb") as file:
            return "memory" if is_memory_snapshot(file.read(_HEAD)) else "summary"

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in names():
            return None
        command = import_module(f"{commands.__name__}.{cmd_name.replace('-', '_')}").command
        return command if isinstance(command, click.Command) else None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="pyprof")
def main() -> None:
    """Show which line of a model is slow on the GPU, and why.

    \b
    From a training script to the summary in one step:
      pyprof run train.py
    \b
    Or from a capture that you have, of nsys, nvprof or torch.profiler:
      pyprof net.sqlite                       where the time goes, and what to do about it
      pyprof summary --by line net.sqlite     your slowest lines
      pyprof report net.sqlite                all of it as one HTML page
    \b
    Or step by step:
      pyprof capture -o net train.py
      pyprof parse net.sqlite -o net.dict     every kernel tied to its op, layer and line
      pyprof prof -w 150 net.dict             FLOPs, bytes and Tensor Core use of each
    \b
    Or compare the ranks of a distributed job:
      pyprof ranks ranks/
    """


if __name__ == "__main__":
    program_end.run(main)
