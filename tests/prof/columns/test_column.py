"""Registering a column."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof.prof.columns import column as columns
from pyprof.prof.columns.column import lazy_module
from pyprof.prof.table import Table


def test_a_column_takes_its_help_from_the_docstring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "COLUMNS", {})

    @columns.column("mine", "Mine", columns.INT, 6, "ns")
    def _mine(_: Table) -> pa.Array:
        """Something of mine."""
        return pa.array([1])

    registered = columns.COLUMNS["mine"]
    assert (registered.help, registered.unit) == ("Something of mine.", "ns")
    assert not registered.exact


def test_a_name_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "COLUMNS", {})
    register = columns.column("mine", "Mine", columns.INT, 6)
    register(lambda _: pa.array([1]))
    with pytest.raises(ValueError, match="mine"):
        register(lambda _: pa.array([2]))


def test_a_lazy_attribute_loads_on_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naming it imports nothing; later changes to the module are seen, too."""
    (tmp_path / "heavy_module.py").write_text("value = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = lazy_module("heavy_module")
    assert "heavy_module" not in sys.modules
    assert module.value == 1
    monkeypatch.setattr("heavy_module.value", 2)
    assert module.value == 2
    monkeypatch.delitem(sys.modules, "heavy_module")


def test_a_lazy_attribute_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_such"):
        lazy_module("json").nothing_such  # noqa: B018 - the access is the point
