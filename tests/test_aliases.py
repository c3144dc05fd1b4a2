"""Names of commands and columns in other profilers."""

from pyprof import aliases
from pyprof.__main__ import names
from pyprof.prof import group
from pyprof.prof.columns.standard import COLUMNS


def test_aliases_refer_to_existing_names() -> None:
    columns = {*COLUMNS, *(column.name for column in group.measures())}
    for known, others in ((names(), aliases._COMMANDS), (columns, aliases._COLUMNS)):
        assert {*others} <= {*known}
        for name, words in others.items():
            for word in words:
                assert aliases.resolve(word, [name]) == name
    assert aliases.resolve("time", [*group.MEASURES]) == "total"
    assert aliases.resolve("time", COLUMNS) == "sil"
    assert {*aliases.CHOSEN_BY} <= {*COLUMNS}
