"""What rows are matched by."""

from pathlib import Path

import pytest

from pyprof.analysis.diff.keys import KEYS
from pyprof.inputs import source
from tests.analysis.captured import capture


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str | None]]:
    """Return each key of each row of a small capture."""
    path: Path = capture(tmp_path_factory.mktemp("keys") / "net.sqlite", steps=2)
    table = source.load(str(path)).table
    return {name: key(table).to_pylist() for name, key in KEYS.items()}


def test_each_row_has_every_key(texts: dict[str, list[str | None]]) -> None:
    assert len({len(column) for column in texts.values()}) == 1
    assert all(texts["op"])


def test_an_op_has_its_shape_and_type(texts: dict[str, list[str | None]]) -> None:
    row = texts["op"].index("relu")
    assert (texts["shape"][row], texts["dtype"][row]) == ("16x8", "float32")


def test_a_step_goes_by_its_loop(texts: dict[str, list[str | None]]) -> None:
    """The number of a step would match no other."""
    layers = {name for path in texts["layer"] if path for name in path.split(":")}
    assert "step" in layers
    assert not any(name.startswith("step ") for name in layers)
