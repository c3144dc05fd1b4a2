"""A module for each command that has no package of its own name: `python -m pyprof.summary`."""

from __future__ import annotations

from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec

from pyprof import __main__ as group


class _Command(InspectLoader):
    """The module of a command; it does nothing unless it is run."""

    def get_source(self, fullname: str) -> str:
        """Give what runs the command under the name that the user typed."""
        return (
            "if __name__ == '__main__':\n"
            "    from pyprof.__main__ import run\n"
            f"    run({_name(fullname)!r}, 'python -m {fullname}')\n"
        )


def spec(fullname: str) -> ModuleSpec | None:
    """Describe the module of a command; None where there is no such command."""
    if _name(fullname) not in group.names():
        return None
    return ModuleSpec(fullname, _Command(), origin=group.__file__)


def _name(fullname: str) -> str:
    return fullname.partition(".")[2].replace("_", "-")
