"""Data in a page's scripts cannot end them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pyprof.render.page import script_json

TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.lists(TEXTS))
def test_json_in_a_script_is_the_same_json(texts: list[str]) -> None:
    """Without any `<`, so that nothing ends the element."""
    written = script_json([*texts, "</script><!--"])
    assert "<" not in written
    assert json.loads(written) == [*texts, "</script><!--"]
