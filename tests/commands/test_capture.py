"""Messages of `pyprof capture` about the files it wrote."""

from pathlib import Path

import pytest

from pyprof.capture.request import Outcome
from pyprof.commands.capture import perform, print_outcome
from pyprof.errors import PyprofError


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [(0, "0 B"), (5_900, "5.9 kB"), (400_000, "400 kB"), (123_456_789, "123 MB")],
)
def test_a_capture_is_named_with_its_size_and_the_next_command(
    size_bytes: int, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my net.sqlite"
    with path.open("wb") as file:
        file.truncate(size_bytes)
    print_outcome(Outcome(code=0, path=path))
    first, following = capsys.readouterr().err.splitlines()
    assert first == f"pyprof: {path} ({shown})"
    assert following == f"pyprof: next: pyprof summary '{path}'"


def test_a_folder_is_not_a_name_for_captures(tmp_path: Path) -> None:
    """They would be hidden files in it."""
    script = tmp_path / "train.py"
    script.write_text("")
    with pytest.raises(PyprofError, match=r"names a folder; add a name: -o captures/train$"):
        perform((str(script),), output="captures/")
