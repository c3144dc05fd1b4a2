"""Live blocks as CSV."""

from pathlib import Path

from tests.allocations import built
from tests.commands import run


def test_formulas_are_quoted_in_csv(tmp_path: Path) -> None:
    """Unless --raw asks for texts as they are."""
    device = built.Device()
    device.range("=1+1", begins=True)
    device.alloc(100)
    path = built.write(tmp_path / "x.pickle", device)
    target = tmp_path / "x.csv"
    for raw, cell in (((), ",'=1+1,"), (("--raw",), ",=1+1,")):
        assert run("memory", path, "-o", target, *raw).code == 0
        assert cell in target.read_text()
