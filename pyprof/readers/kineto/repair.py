"""JSON as Kineto writes it, set right."""

from __future__ import annotations

import re

_NOT_A_NUMBER = re.compile(
    r"(?<=[:,\[])\s*-?(?:nan|inf|infinity|\d[\d.]*e\+?\d{3,})(?=\s*[,\]}\n])", re.IGNORECASE
)
_LONE_BACKSLASH = re.compile(r'\\(?!["\\/bfnrtu])')
_NAME_LINE = re.compile(r'^([ \t]*"name": ")(.*)(",[ \t\r]*)$', re.MULTILINE)
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def repaired(piece: bytes) -> bytes:
    """Undo what Kineto's writer is known to get wrong.

    It writes nan and inf where JSON has no such numbers, paths with single backslashes, names
    with quotes that are not escaped, and bytes that are not UTF-8. 1e999 is infinite, too.
    """
    text = piece.decode("utf-8", "replace")
    text = _NOT_A_NUMBER.sub(" null", text)
    text = _LONE_BACKSLASH.sub(r"\\\\", text)
    text = _NAME_LINE.sub(lambda m: m[1] + _BARE_QUOTE.sub(r'\\"', m[2]) + m[3], text)
    return _CONTROL.sub(" ", text).encode()
