"""Running a user's script or module as `python` would: its arguments, its exit code, its errors."""

from __future__ import annotations

import builtins
import importlib.util
import io
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from pyprof import signals
from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import TracebackType

FAILED = 1

_KEPT: list[object] = []
"""The script's globals. Python destroys them only as it ends; a process group of gloo that is
destroyed before waits for a thread that waits for the interpreter (torch 2.13), for ever."""


@dataclass(frozen=True, slots=True)
class Target:
    """What to run."""

    name: str
    """A path, or with `module` the dotted name of a module."""
    args: tuple[str, ...] = ()
    module: bool = False

    def command(self) -> list[str]:
        """Give what stands behind `python` to run it."""
        return [*(["-m"] if self.module else []), self.name, *self.args]

    def label(self) -> str:
        """Give the short name that files of it get."""
        return self.name.rpartition(".")[2] if self.module else Path(self.name).stem


def check(target: Target) -> None:
    """Raise PyprofError where there is no such script or module."""
    if target.module and _spec(target.name) is None:
        raise PyprofError(f"{target.name}: no such module; name it as for python -m")
    if not target.module and not Path(target.name).exists():
        raise PyprofError(f"{target.name}: no such script (use -m to run a module)")


def source(target: Target) -> str:
    """Give the script's text; empty where it cannot be read as one."""
    path: str | None = target.name
    if target.module:
        path = _origin(target.name)
    try:
        return Path(path or "").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _origin(module: str) -> str | None:
    spec = _spec(module)
    return spec.origin if spec else None


def _spec(module: str) -> ModuleSpec | None:
    """Find a module as `python -m` does: in the current folder first."""
    saved = list(sys.path)
    sys.path[0:0] = [str(Path.cwd())]
    try:
        return importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    finally:
        sys.path[:] = saved


def run(target: Target) -> int:
    """Run it in this process and give its exit code; its errors are shown as Python shows them."""
    saved = sys.argv, list(sys.path)
    sys.argv = [target.name, *target.args]
    try:
        with signals.ending():
            execute(target)
    except SystemExit as left:
        return exit_code(left.code)
    except KeyboardInterrupt as stopped:
        _show(stopped)
        return signals.INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - whatever the script raises is the script's
        _KEPT.append(error)
        _show(error)
        return FAILED
    finally:
        sys.argv, sys.path[:] = saved
    return 0


def execute(target: Target) -> None:
    """Run it as __main__; what it raises goes through. The outermost frame of its stacks."""
    if target.module:
        sys.path[0:0] = [str(Path.cwd())]
        _KEPT.append(runpy.run_module(target.name, run_name="__main__", alter_sys=True))
    elif Path(target.name).is_file():
        sys.path[0:0] = [str(Path(target.name).resolve().parent)]
        main = ModuleType("__main__")
        main.__dict__.update(__file__=target.name, __builtins__=builtins, __spec__=None)
        sys.modules["__main__"] = main
        with io.open_code(str(Path(target.name).absolute())) as file:
            code = compile(file.read(), target.name, "exec", dont_inherit=True)
        exec(code, main.__dict__)  # noqa: S102 - the user's script is what this is for
    else:  # a folder or an archive with a __main__.py
        _KEPT.append(runpy.run_path(target.name, run_name="__main__"))


def exit_code(code: object) -> int:
    """Give the number that Python would exit with, and print a message as Python would."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return FAILED


def _show(error: BaseException) -> None:
    """Print a traceback that begins in the script."""
    shown = error.with_traceback(_within(error.__traceback__))
    sys.excepthook(type(shown), shown, shown.__traceback__)


def _within(trace: TracebackType | None) -> TracebackType | None:
    ours = {__file__, runpy.__file__, "<frozen runpy>", "<frozen importlib._bootstrap>"}
    first = trace
    while first is not None and first.tb_frame.f_code.co_filename in ours:
        first = first.tb_next
    return first or trace
