"""Messages of `pyprof capture` about the files it wrote."""

import sys
from functools import partial
from pathlib import Path

import pytest

from pyprof.capture import machine
from pyprof.capture.nsight import nsys_capture
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


def test_without_torch_no_profiler_starts_a_script_that_would_be_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process would end in a traceback of ours, under nsys, for which there is a stand-in."""
    (script := tmp_path / "train.py").write_text("")
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(machine, "find_nsys", lambda: "nsys")
    monkeypatch.setattr(nsys_capture, "run", lambda *_: Outcome(code=0, path=None))
    captured = partial(perform, (str(script),), "nsys", str(tmp_path / "net"))
    assert captured(no_init=True).code == 0
    for no_init, memory in ((False, False), (True, True)):
        with pytest.raises(PyprofError, match=r"need torch: install it .* or use --no-init alone$"):
            captured(no_init=no_init, memory=memory)


def test_without_torch_the_user_is_sent_to_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tool may have been asked for, so the message names none."""
    (script := tmp_path / "train.py").write_text("")
    monkeypatch.setitem(sys.modules, "pyprof.capture.kineto.recording", None)
    with pytest.raises(PyprofError, match=r"^torch\.profiler needs torch .* pyprof doctor shows"):
        perform((str(script),), "torch", str(tmp_path / "net"))
