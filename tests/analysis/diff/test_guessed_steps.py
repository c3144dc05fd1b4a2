"""Guessed steps that leave something out are no basis: it would go unseen."""

from pathlib import Path

from tests.answers.checked import ask
from tests.builders import Range, Work, nsys_db
from tests.commands import run

ROUND_NS = (100_000, 200_000, 300_000)
ROUNDS = 12


def _capture(path: Path, once_ns: int, *, marked: bool = False) -> Path:
    """Write rounds of three kernels, after work that comes once."""
    work = [Work("once", (5_000, 5_000 + once_ns), (0, 10))]
    ranges, at = [], 5_000 + once_ns
    for number in range(ROUNDS):
        called = 1_000 * (number + 1)
        ranges.append(Range(f"step {number}", (called, called + 999)))
        for place, ns in enumerate(ROUND_NS):
            begin = called + 20 * place
            work.append(Work(f"kernel{place}", (at, at + ns), (begin + 1, begin + 10)))
            at += ns
    return nsys_db(path, work, ranges if marked else [Range("all", (0, 10))])


def test_whole_captures_are_compared_if_guessed_steps_hold_little(tmp_path: Path) -> None:
    """What takes 40 % longer outside of them is seen, by the comparison and by limits."""
    a = _capture(tmp_path / "a.sqlite", 10_000_000)
    b = _capture(tmp_path / "b.sqlite", 20_000_000)
    answer = ask("diff", a, b)
    assert answer["per_step"] is None
    assert answer["why_totals"].startswith("the guessed steps hold only 4")
    assert answer["metrics"]["time_ns"]["change"] == 10_000_000
    assert answer["metrics"]["step_ns"]["a"] is None
    done = run("diff", a, b, "--fail-if", "slower>5%", "--fail-if", "op>10%")
    assert done.code == 3
    assert "totals of both captures (the guessed steps hold only" in done.stdout
    assert "op>10%: once" in done.stderr
    assert "slower>5%: time changed by +10.0 ms" in done.stderr


def test_whole_captures_are_compared_if_the_change_is_outside_of_guessed_steps(
    tmp_path: Path,
) -> None:
    """Though the steps hold nearly everything in both."""
    a, b = _capture(tmp_path / "a.sqlite", 100_000), _capture(tmp_path / "b.sqlite", 500_000)
    answer = ask("diff", a, b)
    assert answer["why_totals"] == "what changed lies partly outside of the guessed steps"
    assert answer["metrics"]["time_ns"]["change"] == 400_000


def test_guessed_steps_that_hold_what_matters_are_compared(tmp_path: Path) -> None:
    """Their share of the time is in the answer."""
    a, b = _capture(tmp_path / "a.sqlite", 100_000), _capture(tmp_path / "b.sqlite", 110_000)
    answer = ask("diff", a, b)
    assert answer["why_totals"] == ""
    assert 0.8 < answer["per_step"]["b_share"] < answer["per_step"]["a_share"] < 1


def test_marked_steps_are_compared_and_their_share_is_told(tmp_path: Path) -> None:
    """Whoever marks steps chose what counts."""
    a = _capture(tmp_path / "a.sqlite", 10_000_000, marked=True)
    b = _capture(tmp_path / "b.sqlite", 20_000_000, marked=True)
    text = run("diff", a, b).stdout
    assert "per step: A has 12, B 12; they hold 42 % of A's time, 26 % of B's" in text
    assert ask("diff", a, b)["metrics"]["time_ns"]["change"] == 0


def test_steps_that_hold_everything_need_no_word(tmp_path: Path) -> None:
    a = _capture(tmp_path / "a.sqlite", 0, marked=True)
    assert "hold" not in run("diff", a, a).stdout
