"""Ways in which a process ends without a word: `os._exit`, and becoming another program."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def before_leaving(
    left: Callable[[int], int], replaced: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Call `left` with the exit code before `os._exit`, for the code to end with; once.

    `replaced` is called before `os.exec*` runs another program in this process. What a forked
    child does is its own.
    """
    pid, theirs = os.getpid(), (os._exit, os.execv, os.execve)
    leave, execute, execute_in = theirs
    asked: list[None] = []

    def first() -> bool:
        if asked or os.getpid() != pid:
            return False
        asked.append(None)
        return True

    def leaving(status: int) -> NoReturn:
        if first():
            status = left(status)
            sys.stderr.flush()
            sys.stdout.flush()
        leave(status)

    def replacing(program: Any) -> None:  # noqa: ANN401 - a path, or a descriptor
        if (isinstance(program, int) or os.access(program, os.X_OK)) and first():
            replaced()

    def run(path: Any, argv: Any) -> NoReturn:  # noqa: ANN401 - as the original
        replacing(path)
        execute(path, argv)

    def run_in(path: Any, argv: Any, env: Any) -> NoReturn:  # noqa: ANN401 - as the original
        replacing(path)
        execute_in(path, argv, env)

    os._exit, os.execv, os.execve = leaving, run, run_in
    try:
        yield
    finally:
        os._exit, os.execv, os.execve = theirs
