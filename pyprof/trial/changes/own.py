"""The user's own experiments: variables, arguments, a file that patches what it likes."""

from __future__ import annotations

import runpy
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyprof.trial.change import Launch, RefusedError, WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

if TYPE_CHECKING:
    from torch.nn import Module

_BEFORE_LOOP = "before_loop"


def _assignment(text: str) -> None:
    if not text.partition("=")[0] or "=" not in text:
        raise ValueError("write env=NAME=VALUE")


def _file(text: str) -> None:
    if not Path(text).is_file():
        raise ValueError(f"no file {text}")


@change("env", takes="NAME=VALUE", check=_assignment, code="{value} python ...", stage="launch")
def env(launch: Launch, value: str) -> None:
    """Set an environment variable of the script."""
    name, _, text = value.partition("=")
    launch.environment[name] = text


@change("args", takes="'ARGS'", check=shlex.split, code="python ... {value}", stage="launch")
def args(launch: Launch, value: str) -> None:
    """Append arguments to those of the script."""
    launch.args += shlex.split(value)


@change("patch", takes="FILE.py", check=_file, code="# what {value} does", stage="start")
def patch(run: Run) -> WhyNoEffect | None:
    """Run FILE.py before the script; its before_loop(main) is called when the loop has begun."""
    try:
        names = runpy.run_path(run.value, run_name="pyprof_patch")
    except Exception as error:
        raise RefusedError(f"{run.value}: {type(error).__name__}: {error}") from error
    before_loop: Any = names.get(_BEFORE_LOOP)
    if before_loop is None:
        return None
    called: list[None] = []

    def begin(_: Module) -> None:
        if not called:
            called.append(None)
            before_loop(sys.modules["__main__"])

    run.after_import("torch", lambda: run.calls.on_loop(begin))
    return lambda: None if called else f"{_BEFORE_LOOP} was never called: no module was"
