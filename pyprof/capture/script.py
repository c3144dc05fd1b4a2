"""Running a user's script or module as `python` would: its arguments, exit code and errors."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import pkgutil
import re
import runpy
import shutil
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyprof.capture import exit_hooks
from pyprof.errors import PyprofError
from pyprof.process import signals, stdio

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType

FAILED = 1
"""Exit code after an error in the script, the same as Python's."""

_KEPT: list[BaseException] = []
"""Errors, whose tracebacks keep the script's objects alive until Python ends. A gloo process group
destroyed earlier deadlocks with a thread that waits for the interpreter (torch 2.13)."""

_run_as_main: Any = runpy._run_module_as_main  # type: ignore[attr-defined]  # noqa: SLF001 - what `python -m` calls


@dataclass(frozen=True, slots=True)
class Target:
    """A script or module with its arguments."""

    name: str
    """A path, or with `module` the dotted name of a module."""
    args: tuple[str, ...] = ()
    module: bool = False

    def command(self) -> list[str]:
        """Return the arguments of `python` that run it."""
        return [*(["-m"] if self.module else []), self.name, *self.args]

    def label(self) -> str:
        """Return the short name used in its files' names."""
        return self.name.rpartition(".")[2] if self.module else Path(self.name).stem


def check(target: Target) -> None:
    """Raise PyprofError if there is no such script or module, or a recording of that name."""
    if target.module and _spec(target.name) is None:
        raise PyprofError(f"{target.name}: no such module; name it as for python -m")
    if not target.module and not Path(target.name).exists():
        if shutil.which(target.name):  # as in `pyprof run python train.py`
            raise PyprofError(
                f"{target.name}: a program, not a script; leave it out, or begin with it: "
                f"{target.name} ... -m pyprof run SCRIPT"
            )
        raise PyprofError(f"{target.name}: no such script (use -m to run a module)")
    if not target.module and _is_recording(Path(target.name)):
        raise PyprofError(
            f"{target.name}: is a recording, not a script; to see where its time went: "
            f"pyprof {target.name}"
        )


_LIKE_RECORDING = re.compile(rb"\s*[{\[]|[^\n]*\0|\x1f\x8b")
"""How captures and their records begin, and hardly a script: braces, a database, gzip."""


def _is_recording(path: Path) -> bool:
    if path.suffix == ".py" or not path.is_file():
        return False
    from pyprof import readers  # noqa: PLC0415 - it takes time to load

    with suppress(PyprofError):
        if _LIKE_RECORDING.match(readers.read_head(path)):
            # It loads Arrow, which no script should find loaded.
            from pyprof.parse import record_file  # noqa: PLC0415

            return record_file.is_records(str(path)) or readers.is_capture(path)
    return False


def source(target: Target) -> str:
    """Return the script's text; "" if unreadable."""
    path: str | None = target.name
    if target.module:
        spec = _spec(target.name)
        path = spec.origin if spec else None
    try:
        return Path(path or "").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


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
    """Run it in this process to its end, and return its exit code.

    Errors are shown as Python shows them. Its changes to the path, the current folder, the standard
    streams, the built-in functions, the recursion limit and the warning filters are undone.
    """
    saved, streams = (sys.argv, list(sys.path)), (sys.stdin, sys.stdout, sys.stderr)
    built_in, depth = dict(vars(builtins)), sys.getrecursionlimit()
    folder = os.getcwd()  # noqa: PTH109 - as text
    if _started_pyprof() and not _path_is_safe():
        del sys.path[0]  # the folder of `pyprof`
    sys.argv = [target.name, *target.args]
    try:
        with signals.ending(), warnings.catch_warnings(), exit_hooks.Ending() as ending:
            code = _run_main(target)
            ending.finish(_show)
            return code
    except signals.Ended as ended:  # Python would end at once
        return exit_code(ended.code)
    finally:
        vars(builtins).update(built_in)
        sys.setrecursionlimit(depth)
        sys.argv, sys.path[:] = saved
        with suppress(Exception):  # a file, or an object of the script's
            sys.stdout.flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.stdout, sys.stderr = (stdio.reopened(stream) for stream in (sys.stdout, sys.stderr))
        go_back(folder)


def go_back(folder: str) -> None:
    """Return to the user's folder, if it still exists: file names are relative to it."""
    with suppress(OSError):
        os.chdir(folder)


def _run_main(target: Target) -> int:
    try:
        execute(target)
    except signals.Ended:
        raise
    except SystemExit as left:
        return exit_code(left.code)
    except BaseException as error:  # noqa: BLE001 - whatever the script raises is the script's
        _KEPT.append(error)
    else:
        return 0
    # Here, as in Python, no exception is being handled.
    kept = _KEPT[-1]
    return _show(kept, signals.INTERRUPTED if isinstance(kept, KeyboardInterrupt) else FAILED)


def _started_pyprof() -> bool:
    """Whether Python was started to run `pyprof` or one of its modules, not a program with it."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return bool(spec.name.partition(".")[0] == __name__.partition(".")[0])
    return Path(sys.argv[0]).stem == "pyprof"


def _path_is_safe() -> bool:
    """Whether Python was told (-P) to add no folder to the path."""
    return bool(getattr(sys.flags, "safe_path", False))  # from Python 3.11 on


def execute(target: Target) -> None:
    """Run it as __main__; exceptions propagate. Stacks begin inside this frame."""
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    # as Python makes it absolute, keeping any `..`
    path = os.path.join(os.getcwd(), target.name.removeprefix(f".{os.sep}"))  # noqa: PTH109, PTH118
    if target.module:
        if not _path_is_safe():
            sys.path.insert(0, str(Path.cwd()))
        _run_as_main(target.name, alter_argv=True)
    elif pkgutil.get_importer(path) is not None:  # a folder or an archive with a __main__.py
        sys.path.insert(0, path)
        _run_as_main("__main__", alter_argv=False)
    else:
        if not _path_is_safe():
            sys.path.insert(0, str(Path(path).resolve().parent))
        loader = SourceFileLoader("__main__", path)
        main.__dict__.update(
            __file__=path, __builtins__=builtins, __loader__=loader, __cached__=None
        )
        with io.open_code(path) as file:
            code: CodeType | None = pkgutil.read_code(file)  # that of a .pyc
            if code is None:
                file.seek(0)
                code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, main.__dict__)  # noqa: S102 - the user's script is what this is for


def exit_code(code: object) -> int:
    """Return the exit code that Python would use, and print a message as Python would."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return FAILED


def _show(error: BaseException, code: int = FAILED) -> int:
    """Show an error by the script's hook, as Python does; return the exit code, which that may set.

    Tracebacks have the script's frames only.
    """
    _leave_out_our_frames(error)
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except signals.Ended:
        raise
    except SystemExit as left:
        return exit_code(left.code)
    except BaseException as failed:  # noqa: BLE001 - of the script's hook
        _leave_out_our_frames(failed)
        for title, each in ("Error in sys.excepthook", failed), ("\nOriginal exception was", error):
            sys.stderr.write(f"{title}:\n")
            sys.__excepthook__(type(each), each, each.__traceback__)
    return code


def _leave_out_our_frames(error: BaseException) -> None:
    shown: BaseException | None = error
    while shown is not None:
        # Drop the frames that run the script, and those of wrapped ops and modules.
        trace = shown.__traceback__
        theirs = []
        while trace is not None:
            if not _is_ours(trace.tb_frame.f_code):
                theirs.append(trace)
            trace = trace.tb_next
        inner = None
        for outer in reversed(theirs):
            outer.tb_next, inner = inner, outer
        shown.__traceback__ = inner
        shown = shown.__cause__ or shown.__context__


def _is_ours(code: CodeType) -> bool:
    if code.co_filename in _RUNNERS:
        return True
    if "torch" not in sys.modules:
        return False
    from pyprof.instrument.ops.caller import is_inserted  # noqa: PLC0415 - it imports torch

    return is_inserted(code)


_RUNNERS = {
    __file__,
    exit_hooks.__file__,
    runpy.__file__,
    "<frozen runpy>",
    "<frozen importlib._bootstrap>",
}
