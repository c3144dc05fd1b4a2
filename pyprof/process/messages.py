"""Messages on stderr, in which inputs are named as the user did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.errors import NOTE
from pyprof.process import overwrite_guard, stdio

if TYPE_CHECKING:
    from collections.abc import Sequence


def say(text: str) -> None:
    """Print a message as `stdio.say` does, with inputs named as the user did."""
    stdio.say(overwrite_guard.current().restore_user_paths(text))


def warn(texts: Sequence[str]) -> None:
    """Print warnings; a text that begins with `NOTE` is printed as it is."""
    for text in texts:
        say(text if text.startswith(NOTE) else f"warning: {text}")
