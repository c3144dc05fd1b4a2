"""Peaks of cards as a table, with their sources, and as CSV."""

import pytest

from pyprof.answers.peaks_answer import card_rows, find
from pyprof.render.text.peaks_text import each, overview


def test_the_overview_has_each_card_and_is_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = [*overview(card_rows())]
    assert max(map(len, lines)) <= 80
    assert all(any(line.startswith(row.gpu) for line in lines) for row in card_rows())


def test_cards_whose_sources_disagree_are_marked_and_explained() -> None:
    doubtful = [row for row in card_rows() if row.doubts]
    text = " ".join(" ".join(overview(doubtful)).split())
    assert all(f"{row.gpu}*" in text and row.doubts[0] in text for row in doubtful)


def test_a_single_card_shows_all_of_its_rates() -> None:
    (row,) = find("H100 SXM", ())
    text = "\n".join(each([row]))
    assert all(key in text for key in row.tflops)
