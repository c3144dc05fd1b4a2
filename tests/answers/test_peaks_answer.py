"""The answer of `pyprof peaks`."""

from tests.answers.checked import ask
from tests.commands import run


def test_peaks_are_of_all_cards_or_the_one_asked_for() -> None:
    """All cards, or one; -o x.json is the same."""
    answer = ask("peaks")
    (h100,) = [card for card in answer["devices"] if card["gpu"] == "H100 SXM"]
    assert (h100["sm_count"], h100["compute_capability"]) == (132, "9.0")
    assert 900 < h100["tflops"]["half tensor"] < 1000
    assert ask("peaks", "H100 SXM")["devices"] == [h100]
    done = run("peaks", "no such card", "--json")
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
