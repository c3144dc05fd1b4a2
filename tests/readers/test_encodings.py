"""Encodings of text files, recognised by their first bytes."""

import codecs

import pytest

from pyprof.readers.encodings import utf8, utf8_blocks

TEXT = '{"a": "ä"}'


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    ],
    ids=["utf-8", "utf-8 with a mark", "utf-16-le", "utf-16-be"],
)
def test_text_becomes_utf8_whatever_the_chunk_size(data: bytes) -> None:
    assert utf8(data).decode() == TEXT
    for size in (1, 3, 1000):
        blocks = (data[at : at + size] for at in range(0, len(data), size))
        assert b"".join(utf8_blocks(blocks)).decode() == TEXT
