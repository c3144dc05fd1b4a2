"""What stands in a page's scripts cannot end them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.render.page import script_json
from pyprof.render.page.sections import without_folders

TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.lists(TEXTS))
def test_json_in_a_script_is_the_same_json(texts: list[str]) -> None:
    """No `<` is left, so that nothing ends the element; the data are what they were."""
    written = script_json([*texts, "</script><!--"])
    assert "<" not in written
    assert json.loads(written) == [*texts, "</script><!--"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("load '/home/alice/data/x.so' failed", "load 'x.so' failed"),
        ("C:\\Users\\alice\\run.py:3 waits", "run.py:3 waits"),
        ("from /mnt/a/b.py and /c/d.py", "from b.py and d.py"),
        ("in alice/runs/x.py", "in x.py"),
        ("12 FLOP/s of 3 TFLOP/s", "12 FLOP/s of 3 TFLOP/s"),
        ("compute/memory", "compute/memory"),
    ],
)
def test_folders_are_left_out(sentence: str, expected: str) -> None:
    """A path keeps its file's name; a slash between words is no path."""
    assert without_folders(sentence) == expected
