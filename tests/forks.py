"""Python processes with torch imported, forked from one that imported it.

A fork does what `python SCRIPT` or `python -m MODULE` does, with an environment, a folder and
streams of its own, and ends as such a process does; what it saves is the import. Run as a program,
this module is the process that they are forked from.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from runpy import run_module, run_path
from tempfile import mkdtemp
from typing import Any

from tests.known import known
from tests.programs import OLD_DRIVER, TOP, environment

Done = subprocess.CompletedProcess[str]
Wait = Callable[[], Done]
IMPORTED = (
    "torch._dynamo",  # by the first optimizer
    "torch._inductor.compile_fx",
    "torch.profiler",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch.distributed._functional_collectives",
    "pandas",
    "pyarrow.parquet",
)
CAN_FORK = sys.platform == "linux"
"""On other systems libraries do not survive a fork."""


def python(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Done:
    """Run `python ARGUMENTS`: a script, or -m and a module, and what they are given."""
    return start(*arguments, cwd=cwd, env=env)()


def start(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Wait:
    """Start `python ARGUMENTS`, beside others; return what waits for its end."""
    words = [str(argument) for argument in arguments]
    variables = {**(environment() if env is None else env)}
    if not CAN_FORK:
        return start_cold([sys.executable, *words], cwd, variables)
    folder = Path(mkdtemp(prefix="fork-"))
    os.mkfifo(folder / "code")
    place = {"cwd": str(cwd or Path.cwd()), "folder": str(folder)}
    stdin = known(_parent().stdin)
    stdin.write(json.dumps({"arguments": words, "env": variables, **place}) + "\n")
    stdin.flush()

    def wait() -> Done:
        code, out, err = ((folder / name).read_text() for name in ("code", "out", "err"))
        shutil.rmtree(folder)
        return Done(words, int(code), out, err)

    return wait


def start_cold(command: list[str], cwd: Path | None, env: dict[str, str]) -> Wait:
    """Start a process that has to import torch itself."""
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=null, stdout=pipe, stderr=pipe, text=True
    )

    def wait() -> Done:
        out, err = process.communicate()
        return Done(process.args, process.returncode, out, err)

    return wait


@lru_cache(maxsize=1)
def _parent() -> subprocess.Popen[str]:
    """Start the process that all others are forked from."""
    command, pipe = [sys.executable, "-W", OLD_DRIVER, "-m", "tests.forks"], subprocess.PIPE
    parent = subprocess.Popen(
        command, cwd=TOP, env=environment(), stdin=pipe, stdout=pipe, text=True
    )
    assert known(parent.stdout).readline() == "ready\n", "torch cannot be imported"
    return parent


def stop() -> None:
    """End the process that others were forked from, where there is one."""
    if _parent.cache_info().currsize:
        _parent().communicate()
        _parent.cache_clear()


def _serve() -> dict[str, Any] | None:
    """Fork once for each line of stdin; return it to the fork."""
    for name in IMPORTED:
        with suppress(ImportError):  # what is optional
            import_module(name)
    gc.freeze()  # what is looked through is copied
    os.write(1, b"ready\n")
    keepers = []
    for line in sys.stdin:
        keeper = _fork()
        if not keeper:
            return _keep(json.loads(line))
        keepers.append(keeper)
    for keeper in keepers:
        os.waitpid(keeper, 0)
    return None


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy's threads do nothing meanwhile
        return os.fork()


def _keep(request: dict[str, Any]) -> dict[str, Any]:
    """Run the request in a fork of this fork; wait for it, and return how it ended."""
    child = _fork()
    if not child:
        return request
    _, status = os.waitpid(child, 0)
    Path(request["folder"], "code").write_text(str(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _become(arguments: list[str], cwd: str, env: dict[str, str], folder: str) -> object:
    """Become the requested process; its files exist until this process ends."""
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    flags = os.O_WRONLY | os.O_CREAT
    for number, path in enumerate((os.devnull, f"{folder}/out", f"{folder}/err")):
        opened = os.open(path, flags if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - without what was read ahead
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = cwd
        return run_module(arguments[1], run_name="__main__", alter_sys=True)
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    return run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    mine = _serve()
    if mine is not None:
        left = _become(**mine)
