"""Modules that columns load when they are used."""

import sys
from pathlib import Path

import pytest

from pyprof.prof.columns.column import lazy_module


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
