"""The answer of `pyprof ranks`."""

from pathlib import Path

from pyprof.analysis.ranks.output_tables import TABLES
from tests.analysis.captured import capture
from tests.answers.checked import ask


def test_ranks_have_all_tables(tmp_path: Path) -> None:
    """Those of CSV, under their old names at the top level, with the same columns."""
    files = [capture(tmp_path / f"net.rank{n}.sqlite", steps=2) for n in (0, 1)]
    answer = ask("ranks", *files)
    for name, table in TABLES.items():
        assert all([*row] == [*table.columns] for row in answer[name])
    assert [row["rank"] for row in answer["ranks"]] == [0, 1]
    assert answer["left_out"] == []
