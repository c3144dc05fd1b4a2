"""Data in a page's scripts cannot end them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pyprof.render.page import render, script_json

TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.lists(TEXTS))
def test_json_in_a_script_is_the_same_json(texts: list[str]) -> None:
    """Without any `<`, so that nothing ends the element."""
    written = script_json([*texts, "</script><!--"])
    assert "<" not in written
    assert json.loads(written) == [*texts, "</script><!--"]


def test_one_row_that_is_left_out_has_no_plural() -> None:
    """In texts of templates as everywhere else."""
    template = "{{ 1 | counted('shorter row') }}, {{ 2000 | counted('shorter row') }}"
    assert render("one", {"one": template}) == "1 shorter row, 2,000 shorter rows"
