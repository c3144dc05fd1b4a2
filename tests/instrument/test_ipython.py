"""Names of notebook cells."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from pyprof.instrument import ipython


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:

    def put(shell: object) -> None:
        module = ModuleType("IPython")
        vars(module)["get_ipython"] = lambda: shell
        monkeypatch.setitem(sys.modules, "IPython", module)

    return put


def test_without_ipython_files_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is imported to check."""
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert ipython.file_name("/home/me/train.py") == "/home/me/train.py"
    assert list(ipython.runners()) == []
    assert "IPython" not in sys.modules


def test_ipython_imported_but_not_running(shell: Callable[[object], None]) -> None:
    shell(None)
    assert ipython.file_name("a.py") == "a.py"
    assert list(ipython.runners()) == []


def test_a_cell_is_known_by_its_number(shell: Callable[[object], None]) -> None:
    """A module imported by a cell keeps its file's name."""
    labels = {"/tmp/ipykernel_7/12.py": ("Cell", "In[3]")}  # noqa: S108 - as ipykernel names them
    shell(SimpleNamespace(compile=SimpleNamespace(format_code_name=labels.get)))
    assert ipython.file_name("/tmp/ipykernel_7/12.py") == "cell [3]"  # noqa: S108
    assert ipython.file_name("/home/me/model.py") == "/home/me/model.py"


def test_an_old_shell_does_no_harm(shell: Callable[[object], None]) -> None:
    """IPython before 8 does not say which cell it is."""
    shell(SimpleNamespace(compile=SimpleNamespace()))
    assert ipython.file_name("<ipython-input-3-abc>") == "<ipython-input-3-abc>"


def test_a_real_shell_names_its_cells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a kernel: the innermost frame has the cell's number and line."""
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython takes its place
    shell = interactive.InteractiveShell.instance()
    try:
        name = shell.compile.cache("a = 1", 7)
        assert ipython.file_name(name) == "cell [7]"
        assert list(ipython.runners()) == [interactive.InteractiveShell.run_code.__code__]
    finally:
        interactive.InteractiveShell.clear_instance()
