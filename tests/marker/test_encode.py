"""Texts as names of annotations in torch.profiler's trace."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pyprof import marker


@given(st.text())
def test_round_trip(text: str) -> None:
    """What is written is printable ASCII that needs no escape in JSON."""
    name = marker.encode_annotation(text)
    assert marker.decode_annotation(name) == text
    assert name.isascii()
    assert json.dumps(name) == f'"{name}"'


def test_usual_texts_stay_readable() -> None:
    for text in ("layer:encoder.0", marker.encode_op(marker.Call("torch", "relu", (1, "a")))):
        assert marker.encode_annotation(text) == text


def test_foreign_names() -> None:
    """A name that PyProf did not write is not an escape sequence."""
    assert marker.decode_annotation("50%20") == "50%20"
