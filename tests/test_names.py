"""Vague names, stilted docstrings and second titles are found, and nothing else."""

from pathlib import Path

import pytest

from tests.names import main, sentinels, stilted, titles, vague


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
        "def beside(path): ...",
        "def _spelt(value): ...",
    ],
)
def test_a_vague_name_is_found(source: str) -> None:
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
def test_other_uses_are_allowed(source: str) -> None:
    assert vague(source) == []


def test_each_line_is_listed_once_and_in_order() -> None:
    source = "def of():\n    found = 1\n    told = found\n    found = 2"
    assert vague(source) == [(1, "of"), (2, "found"), (3, "told"), (4, "found")]


def test_a_second_sentinel_is_found() -> None:
    assert sentinels("NONE = -1\nuse(ProfilerAction.NONE, ABSENT)") == [(1, "NONE")]


@pytest.mark.parametrize("where", ["{}", "def f():\n    {}", "class A:\n    {}"])
def test_a_stilted_docstring_is_found(where: str) -> None:
    assert [text for _, text in stilted(where.format('"""Give it."""'))] == ["Give"]
    assert stilted(where.format('"""Given that it is there."""')) == []


@pytest.mark.parametrize(
    "title", ["# The other half.\n#\n# Its reasons.", "# --- reading ---", '"""The other half."""']
)
def test_a_second_title_is_found(title: str) -> None:
    source = f'"""The one half."""\n\n\ndef f(): ...\n\n\n{title}\n\n\ndef g(): ...\n'
    assert titles(source) == [(7, title.strip('"').partition("\n")[0])]


@pytest.mark.parametrize(
    "comment", ["# why\nX = 1", 'X = 1\n"""What it is."""', "# fmt: off\n\nX = 1"]
)
def test_a_comment_on_a_line_is_not_a_title(comment: str) -> None:
    assert titles(f'"""The module."""\n\n{comment}\n') == []


def test_docstrings_are_checked_everywhere_and_names_in_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    for folder in (ours, others):
        folder.mkdir()
    (others / "a.py").write_text("told = 1\ndef of():\n    told = 1\n")
    assert main(ours, others) == 0
    (others / "b.py").write_text('def f():\n    """Give it."""\n')
    assert main(ours, others) == 1
    assert capsys.readouterr().out.startswith(f"{others / 'b.py'}:2: a docstring begins with Give")
