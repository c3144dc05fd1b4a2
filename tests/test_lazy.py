"""A lazy module loads when something of it is used, and then is that module."""

import sys
from pathlib import Path

import pytest

from pyprof.lazy import lazy_module


def test_it_loads_when_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming it runs nothing; what is set on the module later is seen, too."""
    (tmp_path / "heavy_module.py").write_text("value = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = lazy_module("heavy_module")
    assert "heavy_module" not in sys.modules
    assert module.value == 1
    monkeypatch.setattr("heavy_module.value", 2)
    assert module.value == 2
    monkeypatch.delitem(sys.modules, "heavy_module")


def test_what_the_module_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_such"):
        lazy_module("json").nothing_such  # noqa: B018 - the access is the point
