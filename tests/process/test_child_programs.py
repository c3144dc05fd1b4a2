"""Programs that were started here, when the process that started them is killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyprof.process import child_programs
from tests.programs import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone knows how")

STARTS = """
import os, subprocess, sys
from pyprof.process.child_programs import bound
reader, writer = os.pipe()
os.set_inheritable(writer, True)
child = "import os, signal; os.write(%d, b'begun'); signal.pause()" % writer
subprocess.Popen(bound([sys.executable, "-c", child]), close_fds=False)
assert os.read(reader, 5) == b"begun"
os.kill(os.getpid(), 9)
"""


def test_a_program_ends_with_who_started_it() -> None:
    """It has the pipe that is read here, which ends when the last process that has it does."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS], stdout=subprocess.PIPE, env=environment(), timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == -9


def test_one_that_comes_too_late_does_not_begin(tmp_path: Path) -> None:
    """Who started it was gone before Linux could be asked."""
    line = child_programs.bound(["touch", str(tmp_path / "begun")])
    line[line.index(str(os.getpid()))] = "1"
    assert subprocess.run(line, check=False).returncode == 143
    assert not (tmp_path / "begun").exists()


@pytest.mark.parametrize(("hangup", "ignored"), [(True, False), (False, True)])
def test_it_is_the_program_itself(hangup: bool, ignored: bool) -> None:  # noqa: FBT001
    """With its exit code, its signals as they were, and nothing between."""
    ask = "grep SigIgn /proc/self/status; exit 7"
    done = subprocess.run(
        child_programs.bound(["sh", "-c", ask], hangup=hangup), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 7
    assert int(done.stdout.split()[1], 16) & 1 == ignored


def test_a_program_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    line = child_programs.bound([str(tmp_path / "none")])
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert Path(child_programs.__file__).name in line[3]
