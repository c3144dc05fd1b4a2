"""Option types: the shell completes files, and a word is not called a range."""

import pytest
from click.shell_completion import ShellComplete

from pyprof.__main__ import main
from tests.commands import misused


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("report ne", {"file"}),
        ("diff a.sqlite b", {"file"}),
        ("run tr", {"file"}),
        ("report -o ne", {"file"}),
        ("export --st", {"plain"}),
        ("rep", {"plain"}),
    ],
)
def test_the_shell_completes_files(words: str, kinds: set[str]) -> None:
    *before, last = words.split()
    complete = ShellComplete(main, {}, "pyprof", "_PYPROF_COMPLETE")
    assert {item.type for item in complete.get_completions(before, last)} == kinds


@pytest.mark.parametrize("option", ["prof -w", "prof --explain", "summary --top", "try --rounds"])
def test_a_word_is_no_whole_number(option: str) -> None:
    assert "'many' is not a valid whole number." in misused(*option.split(), "many", "net.dict")
