"""A script that is cancelled before it begins."""

import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyprof.capture.under_profiler import profiler_process, script_process


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_script_cancelled_before_its_start_does_not_begin(tmp_path: Path) -> None:
    """A signal came before nsys was ready."""
    files = script_process.Files.within(tmp_path)
    (tmp_path / "train.py").write_text("import sys; sys.exit(3)")
    profiler_process.end_script(files, signal.SIGTERM)
    line = ["--files", str(tmp_path), "--no-init", str(tmp_path / "train.py")]
    assert CliRunner().invoke(script_process.run_script, line).exit_code == 0
    assert not files.exit_code.exists()
    files.stop.unlink()
    assert CliRunner().invoke(script_process.run_script, line).exit_code == 3
    assert files.exit_code.read_text() == "3"
