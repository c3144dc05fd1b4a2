"""Misspelt names, and names of commands and columns in other profilers."""

import pytest

from pyprof import suggestions
from pyprof.__main__ import names
from pyprof.prof import group
from pyprof.prof.columns.standard import COLUMNS
from tests.commands import misused


def test_aliases_refer_to_existing_names() -> None:
    columns = {*COLUMNS, *(column.name for column in group.measures())}
    for known, others in ((names(), suggestions._COMMANDS), (columns, suggestions._COLUMNS)):
        assert {*others} <= {*known}
        for name, words in others.items():
            for word in words:
                assert suggestions.resolve(word, [name]) == name
    assert suggestions.resolve("time", [*group.MEASURES]) == "total"
    assert suggestions.resolve("time", COLUMNS) == "sil"
    assert {*suggestions.CHOSEN_BY} <= {*COLUMNS}


MISSPELT = {
    "a command": (["sumary"], "did you mean 'summary'?"),
    "a column": (["prof", "-c", "kernl", "-"], "did you mean 'kernel'?"),
    "a column in capitals": (["prof", "-c", "Kernel", "-"], "did you mean 'kernel'?"),
    "a column of swapped letters": (["prof", "-c", "vai", "-"], "did you mean 'via'?"),
    "a short column": (["prof", "-c", "ct", "-"], "did you mean 'tc'?"),
    "a column's header": (["prof", "-c", "Sil(ns)", "-"], "did you mean 'sil'?"),
    "a command by another word": (["compare", "a", "b"], "did you mean 'diff'?"),
    "a column by another word": (["prof", "-c", "op,time", "-"], "did you mean 'sil'?"),
    "a script without a command": ([__file__], "is a script; to profile it: pyprof run"),
    "a column as an option": (["prof", "--op", "mm", "-"], "rows are chosen by --where op=VALUE"),
    "a word as an option": (["prof", "--name", "mm", "-"], "by --where kernel=VALUE"),
    "a key": (["prof", "--by", "lne", "-"], "did you mean 'line'?"),
    "a key of a summary": (["summary", "--by", "layr", "-"], "did you mean 'layer'?"),
    "a key of a comparison": (["diff", "a", "b", "--by", "kernl"], "did you mean 'kernel'?"),
    "a table": (["ranks", "a", "--csv=stragler"], "did you mean 'stragglers'?"),
}


@pytest.mark.parametrize(("arguments", "hint"), MISSPELT.values(), ids=MISSPELT.keys())
def test_a_misspelt_name_is_suggested(arguments: list[str], hint: str) -> None:
    assert hint in misused(*arguments)
