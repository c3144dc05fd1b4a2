"""The encoding of a text file, by its first bytes.

Tools write UTF-8. Editors on Windows put a byte order mark before it, and PowerShell's `>` converts
the output of any command to UTF-16.
"""

from __future__ import annotations

import codecs
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def utf8(data: bytes) -> bytes:
    """Convert the beginning of a file to UTF-8 without a mark; UTF-8 itself may be invalid."""
    if data.startswith(_UTF16):
        return data.decode("utf-16", "ignore").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def utf8_blocks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Convert a file's blocks to UTF-8 without a mark; blocks of other encodings are unchanged."""
    head = b""
    for block in blocks:  # the first may be shorter than a mark
        head += block
        if len(head) >= len(codecs.BOM_UTF8):
            break
    if not head.startswith(_UTF16):
        yield head.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in chain([head], blocks):
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()
