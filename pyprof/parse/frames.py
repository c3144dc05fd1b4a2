"""Source lines: which frames of a Python stack are the user's.

A frame is a framework's where the file is in that framework's installed folder, wherever
packages are installed; the project's own checkout of the same name is not. (torch.profiler writes
paths relative to where packages are installed.) PyTorch also ships functions that are algorithms
of their own, which a user calls by name and wants to see.
"""

from __future__ import annotations

import re

_INSTALLED = r"[/\\](?:site-packages|dist-packages)[/\\]"
_FRAMEWORK = re.compile(
    rf"(?:{_INSTALLED}|^)(?:torch|apex|pyprof|functorch|nvtx)[/\\]|<frozen [\w.]+>|<eval_with_key>"
    r"|[/\\]torchinductor_\w+[/\\]"  # code that Inductor wrote
)
_ALGORITHM = re.compile(
    rf"(?:{_INSTALLED}|^)torch[/\\](?:nn[/\\]utils[/\\]|nn[/\\]init\.py|distributions[/\\])"
)
_LIBRARY = re.compile(rf"{_INSTALLED}|[/\\]lib[/\\]python\d\.\d+[/\\]|<[\w .]+>")


def is_framework(frame: str) -> bool:
    """Tell whether a `file:line` frame only carries a call through to where the work is."""
    return _FRAMEWORK.search(frame) is not None and _ALGORITHM.search(frame) is None


def user_trace(frames: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the framework's frames."""
    return tuple(frame for frame in frames if not is_framework(frame))


def user_line(frames: tuple[str, ...]) -> str | None:
    """Give the innermost frame that is in no installed library; None where there is none."""
    return next((frame for frame in reversed(frames) if _LIBRARY.search(frame) is None), None)


_PLACE = re.compile(r"(.+):([1-9]\d{0,6})", re.DOTALL | re.ASCII)


def file_and_line(frame: str) -> tuple[str, int] | None:
    """Take `file:line` apart; None for what names no line that a file can have."""
    found = _PLACE.fullmatch(frame)
    return (found[1], int(found[2])) if found else None
