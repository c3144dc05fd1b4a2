"""Live blocks as CSV."""

from pathlib import Path

from tests.allocations import built
from tests.commands import run


def test_formulas_are_quoted_in_csv(tmp_path: Path) -> None:
    device = built.Device()
    device.range("=1+1", begins=True)
    device.alloc(100)
    path = built.write(tmp_path / "x.pickle", device)
    target = tmp_path / "x.csv"
    assert run("memory", path, "-o", target).code == 0
    assert ",'=1+1," in target.read_text()
