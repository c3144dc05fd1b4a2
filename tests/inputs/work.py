"""Work for executors in tests: plain functions that worker processes import."""

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from threading import Event

from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs import dataset
from pyprof.inputs.dataset import WrittenRanks
from pyprof.inputs.ranks import RankedCapture


def inverse(number: int) -> float:
    return 1 / number


def even(number: int) -> int:
    if number % 2:
        raise CaptureError(f"capture {number}: is odd; capture again")
    return number


def unwritable(number: int) -> int:
    """Fail for a reason that is not a capture's."""
    raise PyprofError(f"{number}: no space left; choose another place with -o")


def as_text(number: int) -> str:
    return str(number)


def pair(left: str, right: str) -> str:
    return f"({left} {right})"


def with_process(text: str) -> tuple[str, int]:
    return text, os.getpid()


def add(left: float, right: float) -> float:
    return left + right


def process(number: int) -> tuple[int, int]:
    return number, os.getpid()


def ends_once(mark: Path) -> str:
    """End this process, as the system does when memory runs out, if no process did so before."""
    if not mark.exists():
        mark.touch()
        os._exit(9)
    return mark.name


def interrupted_once(mark: Path) -> str:
    """Press Ctrl-C for this process, if no process did so before."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGINT)
    return mark.name


def ends_always(number: int) -> int:
    """End this process whenever asked for capture 2."""
    if number == 2:
        os._exit(9)
    return number


def begins(pipe: str | None) -> None:
    """Report the start through a pipe, if there is one, and never end."""
    if pipe is not None:
        Path(pipe).write_text("begun")
    Event().wait()


def writes_and_tells(member: RankedCapture, folder: str, port: int) -> WrittenRanks:
    """Write a capture's ranks, send this process's id to a listener and wait for what it does.

    Without a listener, go on.
    """
    outcome = dataset.write(member, folder)
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{os.getpid()}\n".encode())
        connection.recv(1)
    return outcome
