"""How a column is registered."""

import pyarrow as pa
import pytest

from pyprof.prof.columns import column as columns
from pyprof.prof.table import Table


def test_a_column_takes_its_help_from_the_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "COLUMNS", {})

    @columns.column("mine", "Mine", columns.INT, 6, "ns")
    def _mine(_: Table) -> pa.Array:
        """Something of mine."""
        return pa.array([1])

    registered = columns.COLUMNS["mine"]
    assert (registered.help, registered.unit, registered.exact) == (
        "Something of mine.",
        "ns",
        False,
    )


def test_a_name_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "COLUMNS", {})
    register = columns.column("mine", "Mine", columns.INT, 6)
    register(lambda _: pa.array([1]))
    with pytest.raises(ValueError, match="mine"):
        register(lambda _: pa.array([2]))
