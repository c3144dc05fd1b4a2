"""Limits of `pyprof diff --fail-if`: their syntax, and what exceeds them."""

from types import SimpleNamespace

import pytest

from pyprof.analysis.diff.gate import Limit, OpSlowdown, Slowdown, parse
from pyprof.answers.diff_answer import Measure
from tests.known import known


def _compared(a: float | None, b: float | None, *, comparable: bool = True) -> SimpleNamespace:
    measure = Measure(a, b)
    if a is not None and b is not None and comparable:
        measure = Measure(a, b, b - a, (b - a) / a if a else None)
    return SimpleNamespace(metrics={"time_ns": measure})


@pytest.mark.parametrize(
    ("text", "value", "relative"),
    [("time>+3%", 0.03, True), ("step > 2ms", 2e6, False), ("busy<-1.5us", -1500, False),
     ("kernels>0", 0, False), ("kernels>3", 3, False), ("time>0", 0, False)],
)  # fmt: skip
def test_a_limit_is_read_with_its_unit(text: str, value: float, *, relative: bool) -> None:
    limit = parse(text)
    assert isinstance(limit, Limit)
    assert limit.value == pytest.approx(value)
    assert (limit.relative, limit.above) == (relative, ">" in text)


def test_noise_and_single_ops_have_limits_of_their_own() -> None:
    assert isinstance(parse("slower>5%"), Slowdown)
    assert isinstance(parse("op>10%"), OpSlowdown)
    significant = parse("significant")
    assert isinstance(significant, Slowdown)
    assert significant.strict


@pytest.mark.parametrize(
    "text",
    ["time", "time>", "time=3", "time>>3%", "time>3", "time>3 parsecs", "speed>3%", "step<-2",
     "kernels>3ms", "slower>5", "slower<5%", "op>-1%", "significantly"],
)  # fmt: skip
def test_an_invalid_limit_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|is a time"):
        parse(text)


@pytest.mark.parametrize(
    ("a", "b", "text", "problem"),
    [(100.0, 102.0, "time>+3%", None), (100.0, 50.0, "time>+3%", None),
     (100.0, 104.0, "time>+3%", "time changed by +4 ns (+4.0 %)"),
     # more than nothing is beyond every percentage; no more is not, as without communication
     (0.0, 0.0, "time>+3%", None), (0.0, 5.0, "time>+3%", "time changed by +5 ns (from 0)"),
     (0.0, 5.0, "time<+3%", None)],
)  # fmt: skip
def test_a_change_beyond_the_limit_breaks_it(
    a: float, b: float, text: str, problem: str | None
) -> None:
    violation = parse(text).violation(_compared(a, b))  # type: ignore[arg-type]
    assert (violation and violation.sentence) == (problem and f"{text}: {problem}")


@pytest.mark.parametrize(
    ("compared", "problem"),
    [
        (_compared(100.0, None), "unknown in one"),
        (_compared(100.0, None, comparable=False), "unknown in one"),
        (_compared(100.0, 200.0, comparable=False), "different shares"),
    ],
)
def test_a_limit_that_cannot_be_checked_is_broken(compared: SimpleNamespace, problem: str) -> None:
    violation = known(parse("time>+3%").violation(compared))  # type: ignore[arg-type]
    assert problem in violation.sentence
    assert not violation.certain
