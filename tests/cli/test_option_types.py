"""Option types: the shell completes files."""

import pytest
from click.shell_completion import ShellComplete

from pyprof.__main__ import main


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
