"""Texts in terminal cells: wide characters take two, and truncation is visible."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyprof.render.text.layout.text_width import cells, cut_end, cut_middle, cut_start, pad


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("gemm", 4), ("\u6838\u5fc3", 4), ("\uff21", 2), ("e\u0301", 1), ("\uac00", 2),
     ("\xe9", 1), ("\U0001f600", 2)],
)  # fmt: skip
def test_wide_characters_take_two_cells(text: str, count: int) -> None:
    """East Asian wide and full-width ones, and emoji; combining accents take none."""
    assert cells(text) == count


@given(st.text(), st.integers(0, 40), st.booleans())
def test_a_text_is_padded(text: str, more: int, left: bool) -> None:  # noqa: FBT001
    room = cells(text) + more
    assert cells(pad(text, room, left=left)) == room
    assert pad(text, room, left=left).replace(" ", "") == text.replace(" ", "")


@given(st.text(), st.integers(2, 40))
def test_a_text_is_truncated_at_one_end(text: str, room: int) -> None:
    """The other end stays, as far as there is room."""
    if cells(text) > room:
        start, end = cut_start(text, room, ".."), cut_end(text, room, "..")
        assert max(cells(start), cells(end)) <= room
        assert text.endswith(start.removeprefix(".."))
        assert text.startswith(end.removesuffix(".."))


def test_a_truncated_text_shows_it_by_three_dots() -> None:
    assert cut_start("model/net.py:123", 10) == "....py:123"
    assert cut_end("abcdefgh", 6) == "abc..."
    assert cut_start("abcdef", 6) == cut_end("abcdef", 6) == "abcdef"


@example("0.0\u0e5c0", 5)
@given(st.text(), st.integers(2, 40))
def test_a_text_is_truncated_in_its_middle(text: str, room: int) -> None:
    """Both ends stay; a text that fits stays whole."""
    cut = cut_middle(text, room, "..")
    if cells(text) <= room:
        assert cut == text
        return
    assert cells(cut) <= room
    marks = (at for at in range(len(cut)) if cut.startswith("..", at))  # ends may have dots, too
    assert any(text.startswith(cut[:at]) and text.endswith(cut[at + 2 :]) for at in marks)


def test_a_kernel_s_tile_and_layout_stay() -> None:
    """The end of a name distinguishes kernels of one family."""
    assert cut_middle("ampere_fp16_s16816gemm_fp16_256x128_ldg8_f2f_tn", 24, "..") == (
        "ampere_fp16..ldg8_f2f_tn"
    )


def test_combining_characters_stay_with_their_letter() -> None:
    """Accents and parts of a Korean syllable would go onto the ellipsis."""
    assert cells("\u1112\u1161\u11ab") == 2
    assert cut_start("abcde\u0301", 3, "..") == "..e\u0301"
    assert cut_start("abcd\u0301e", 3, "..") == "..e"
    assert cut_middle("abcdefg\u0301h", 4, "..") == "a..h"
