"""Row-wise concatenation of texts, compared with Python."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyprof import string_concat
from pyprof.string_concat import StringPart

_TEXTS = st.lists(st.text(max_size=3), min_size=1, max_size=4)


@given(st.lists(_TEXTS, min_size=1, max_size=4), st.data(), st.integers(0, 5))
def test_each_row_has_its_pieces_in_order(
    texts: list[list[str]], data: st.DataObject, rows: int
) -> None:
    indices = [
        data.draw(st.lists(st.integers(-1, len(each) - 1), min_size=rows, max_size=rows))
        for each in texts
    ]
    parts = zip(map(pa.array, texts), [np.array(index, np.int32) for index in indices], strict=True)
    joined = string_concat.join_element_wise([StringPart(*part) for part in parts])
    joined.validate(full=True)
    assert joined.to_pylist() == [
        "".join([*each, ""][place] for each, place in zip(texts, row, strict=True))
        for row in zip(*indices, strict=True)
    ]


def test_null_is_an_empty_text() -> None:
    numbers = pa.array([1, None, 30, 4])[1:].cast(pa.string())
    before, after = (string_concat.constant(text, 3) for text in "<>")
    joined = string_concat.join_element_wise([before, string_concat.per_row(numbers), after])
    assert joined.to_pylist() == ["<>", "<30>", "<4>"]


def test_take_concatenates_chosen_rows() -> None:
    piece = StringPart(pa.array(["a", "b"]), np.array([1, -1, 0], np.int32))
    assert string_concat.take(piece, np.array([2, 1, 1, 0])).to_pylist() == ["a", "", "", "b"]


def test_slices_concatenate_consecutive_texts() -> None:
    texts = pa.array(["x", "a", "bc", "", "d"])[1:]
    assert string_concat.slices(texts, np.array([0, 2, 2, 4])).to_pylist() == ["abc", "", "d"]
