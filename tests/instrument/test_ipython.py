"""Names of notebook cells."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from pyprof.instrument import ipython

CELL = "/tmp/ipykernel_7/12.py"  # noqa: S108 - as ipykernel names them
LABELS = SimpleNamespace(format_code_name={CELL: ("Cell", "In[3]")}.get)


@pytest.mark.parametrize(
    ("shell", "file", "shown"),
    [
        (SimpleNamespace(compile=LABELS), CELL, "cell [3]"),
        (SimpleNamespace(compile=LABELS), "/home/me/model.py", "/home/me/model.py"),
        (SimpleNamespace(compile=SimpleNamespace()), CELL, CELL),
        (None, "a.py", "a.py"),
    ],
    ids=["a cell", "a module that a cell imports", "IPython before 8", "not running"],
)
def test_a_cell_is_known_by_its_number(
    shell: object, file: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("IPython")
    vars(module)["get_ipython"] = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert ipython.file_name(file) == shown
    assert shell or list(ipython.runners()) == []


def test_without_ipython_files_keep_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert ipython.file_name("/home/me/train.py") == "/home/me/train.py"
    assert list(ipython.runners()) == []
    assert "IPython" not in sys.modules
