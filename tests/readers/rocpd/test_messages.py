"""Texts in JSON are cut out as bytes if that is safe, and decoded otherwise: with one result."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.readers.rocpd.messages import messages


def _messages(documents: list[str | None]) -> list[str | None]:
    listed: list[str | None] = messages(
        pa.chunked_array([pa.array(documents, pa.string())])
    ).to_pylist()
    return listed


@given(
    st.lists(st.text(st.characters(codec="utf-8"))),
    st.sampled_from([(",", ":"), (", ", ": ")]),
    st.sampled_from([None, 4]),
)
def test_any_text_comes_out_of_its_json(
    texts: list[str], separators: tuple[str, str], indent: int | None
) -> None:
    documents: list[str | None] = [
        json.dumps({"message": text}, separators=separators, indent=indent, ensure_ascii=False)
        for text in texts
    ]
    assert _messages(documents) == texts


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{}", None),
        ("", None),
        (None, None),
        ('{"message":7}', None),
        ('{"message":"a","other":"b"}', "a"),
        ('{"message":"cut', None),
        ('{"message":"}', None),
        ('["message"]', None),
        ("}{", None),
        ('{"message":"a"},{"message":"b"}', None),
    ],
)
def test_what_is_no_such_object_has_no_text(document: str | None, message: str | None) -> None:
    """Also beside sound ones, whatever comes first."""
    sound = '{"message":"aten::mm"}'
    assert _messages([document]) == [message]
    assert _messages([sound, document]) == ["aten::mm", message]
    assert _messages([document, sound]) == [message, "aten::mm"]
