"""`pyprof COMMAND`: the commands of all packages in one group."""

from __future__ import annotations

if __name__ == "__main__":  # first of all: the rest takes its time to load
    from pyprof import signals

    signals.quietly_until_begun()

import pkgutil
from importlib import import_module
from importlib.abc import InspectLoader

import click

from pyprof import __version__, cli, report

COMMANDS = {
    # name: where its click command is; imported when it is used or listed
    "run": "pyprof.capture.run_command:run",
    "capture": "pyprof.capture.command:capture",
    "parse": "pyprof.parse.command:parse",
    "prof": "pyprof.prof.command:prof",
    "doctor": "pyprof.capture.doctor_command:doctor",
}


def commands() -> dict[str, str]:
    """Give every command and where it is: those above, and each module of `pyprof.report`.

    A report is found by being there: its module has a click command called `command`. What else
    stands in that package serves the reports; the sources are looked at, for loading takes long.
    """
    reports = {
        module.name.replace("_", "-"): f"pyprof.report.{module.name}:command"
        for module in pkgutil.iter_modules(report.__path__)
        if not module.name.startswith("_") and "\ndef command(" in _source(module)
    }
    return {**COMMANDS, **reports}


def _source(module: pkgutil.ModuleInfo) -> str:
    """Give the source of a module without importing it; "" for one that has none."""
    spec = module.module_finder.find_spec(module.name, None)
    loader = spec.loader if spec is not None else None
    return (loader.get_source(module.name) or "") if isinstance(loader, InspectLoader) else ""


def run(name: str, called: str) -> None:
    """Run a command as the program that the user `called`."""
    command = main.get_command(click.Context(main), name)
    if command is not None:
        command.main(prog_name=called)


class _Commands(cli.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(commands())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the first sentence of each command, which click would cut."""
        listed = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(limit=200)) for name, each in listed if each]
            )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if (place := commands().get(cmd_name)) is None:
            return None
        module, _, name = place.partition(":")
        command = getattr(import_module(module), name)
        return command if isinstance(command, click.Command) else None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="pyprof")
def main() -> None:
    """Tell which line of a model is slow on the GPU, and why.

    \b
    From a training script to the table in one go:
      pyprof run train.py
    \b
    Or step by step, with a capture of nsys, nvprof or torch.profiler:
      pyprof capture -o net train.py
      pyprof parse net.sqlite -o net.dict     every kernel tied to its op, layer and line
      pyprof prof -w 150 net.dict             FLOPs, bytes and Tensor Core use of each
    \b
    Or from the captures of many ranks, side by side:
      pyprof ranks ranks/
    """


if __name__ == "__main__":
    main()
