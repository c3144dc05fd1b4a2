"""The cells of a terminal that a text takes, and texts cut to a number of them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

MARK = ".."
"""Shown where a text of a row was shortened; elsewhere three dots are."""


def cells(text: str) -> int:
    """Count the cells that a text takes: East Asian wide characters take two, accents none."""
    return len(text) if text.isascii() else sum(map(_cells, text))


_FOLLOWS = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff]").match
"""Korean letters that are part of the syllable before them."""


@lru_cache(maxsize=1 << 12)
def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me") or _FOLLOWS(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, room: int, *, left: bool) -> str:
    """Pad a text with blanks to `room` cells, on the right if it is aligned left."""
    blanks = " " * (room - cells(text))
    return text + blanks if left else blanks + text


def cut_middle(text: str, room: int, mark: str = "...") -> str:
    """Leave out the middle of a text that takes more than `room` cells, and mark that it was."""
    if cells(text) <= room:
        return text
    kept = max(room - len(mark), 0)
    tail = _longest_end(text, kept // 2)
    return f"{_longest_beginning(text, kept - cells(tail))}{mark}{tail}"


def cut_end(text: str, room: int, mark: str = "...") -> str:
    """Leave out the end of a text that takes more than `room` cells, and mark that it was."""
    if cells(text) <= room:
        return text
    return f"{_longest_beginning(text, max(room - len(mark), 0))}{mark}"


def cut_start(text: str, room: int, mark: str = "...") -> str:
    """Leave out the beginning of a text that takes more than `room` cells, and mark that it was."""
    if cells(text) <= room:
        return text
    return f"{mark}{_longest_end(text, max(room - len(mark), 0))}"


def _longest_end(text: str, room: int) -> str:
    """The longest end that fits, without accents that lost their letter."""
    end = _longest_beginning(text[::-1], room)[::-1]
    return next((end[index:] for index, each in enumerate(end) if _cells(each)), "")


def _longest_beginning(text: str, room: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _cells(character)
        if used > room:
            return text[:index]
    return text
