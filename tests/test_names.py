"""Vague names are seen wherever a function binds them, and nowhere else."""

import pytest

from tests.names import vague


@pytest.mark.parametrize(
    "source",
    [
        "def f(found): ...",
        "def f():\n    told = 1",
        "def f():\n    return [whole for whole in ()]",
        "def f():\n    with open('x') as found: ...",
        "def f():\n    for found, _ in (): ...",
        "def f():\n    if (found := 1): ...",
        "f = lambda told: told",
        "def merge(a, b): ...",
        "class A:\n    def of(self): ...",
        "async def of_all(): ...",
    ],
)
def test_a_vague_name_is_seen(source: str) -> None:
    """Parameters, loops, comprehensions, walrus and with bind a name, too."""
    assert len(vague(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "def f(*, whole): ...",  # a caller's word, as of an option
        "class A:\n    whole: bool",  # a field
        "def f(match):\n    return match.found(told=1)",
        "def merge_steps(a, b): ...",
    ],
)
def test_other_uses_are_let_be(source: str) -> None:
    """Keyword-only parameters, fields, attributes and keywords are not what a function names."""
    assert vague(source) == []


def test_the_line_is_given() -> None:
    """The line that binds the name is given, each once, in order."""
    assert vague("def of():\n    found = 1\n    told = found\n    found = 2") == [
        (1, "of"),
        (2, "found"),
        (3, "told"),
        (4, "found"),
    ]
