"""C++ names by the runtime's own demangler."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pyprof.gpu import cxx_runtime
from pyprof.gpu.cxx_runtime import demangled

if TYPE_CHECKING:
    from collections.abc import Iterator

SYMBOLS = {  # as the Itanium C++ ABI spells them
    "_Z4gemmPf": "gemm(float*)",
    "_Z1fv": "f()",
    "_ZN5outer5innerIiEEvT_": "void outer::inner<int>(int)",
    "_ZN12_GLOBAL__N_11kEv": "(anonymous namespace)::k()",
}


@pytest.mark.skipif(sys.platform == "win32", reason="no such runtime there")
@pytest.mark.parametrize(("symbol", "expected"), SYMBOLS.items(), ids=SYMBOLS)
def test_symbols_are_demangled(symbol: str, expected: str) -> None:
    """Names, templates, namespaces."""
    assert demangled(symbol) == expected


@pytest.mark.parametrize("name", ["_Znot a symbol", "_Z", "_ZN", "_Z\0", "", "_Z\ud800"])
def test_what_is_no_symbol_has_no_name(name: str) -> None:
    """Nor has what cannot be encoded."""
    assert demangled(name) is None


@pytest.fixture
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look for libraries that nobody has."""
    monkeypatch.setattr(cxx_runtime, "LIBRARIES", ("libno-such-runtime.so.0",))
    cxx_runtime._runtime.cache_clear()
    yield
    cxx_runtime._runtime.cache_clear()


@pytest.mark.usefixtures("no_runtime")
def test_without_a_runtime_no_name_is_known() -> None:
    """As on Windows."""
    assert demangled("_Z4gemmPf") is None


def test_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for the runtime asks no other program."""
    cxx_runtime._runtime.cache_clear()
    monkeypatch.setattr("subprocess.Popen", None)
    demangled("_Z4gemmPf")
