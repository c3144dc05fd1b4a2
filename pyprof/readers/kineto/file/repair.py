"""Repairs the JSON that Kineto writes."""

from __future__ import annotations

import re

_NOT_A_NUMBER = re.compile(
    r"(?<=[:,\[])\s*-?(?:nan|inf|infinity|\d[\d.]*e\+?\d{3,})(?=\s*[,\]}\n])", re.IGNORECASE
)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves of a character
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r'|["\\/bfnrt]|u[0-9a-fA-F]{4}|(?P<none>))'
)
_NAME_LINE = re.compile(r'^([ \t]*"name": ")(.*)(",[ \t\r]*)$', re.MULTILINE)
_BARE_QUOTE = re.compile(r'(?<!\\)"')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def repaired(piece: bytes) -> bytes:
    """Undo the known errors of Kineto's writer.

    It writes nan and inf, which JSON lacks, paths with single backslashes, names with unescaped
    quotes, invalid UTF-8, and half a surrogate pair where it truncated a name. 1e999 is infinite,
    too.
    """
    text = piece.decode("utf-8", "replace")
    text = _NOT_A_NUMBER.sub(" null", text)
    text = _ESCAPE.sub(_valid_escape, text)
    text = _NAME_LINE.sub(lambda m: m[1] + _BARE_QUOTE.sub(r'\\"', m[2]) + m[3], text)
    return _CONTROL.sub(" ", text).encode()


def _valid_escape(match: re.Match[str]) -> str:
    if match["half"]:
        return r"\ufffd"
    return match[0] if match["none"] is None else r"\\"
