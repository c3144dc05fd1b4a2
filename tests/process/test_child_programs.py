"""Programs started here end if the process that started them is killed."""

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
from pyprof.process.child_programs import bind
reader, writer = os.pipe()
os.set_inheritable(writer, True)
child = "import os, signal; os.write(%d, b'begun'); signal.pause()" % writer
subprocess.Popen(bind([sys.executable, "-c", child]), close_fds=False)
assert os.read(reader, 5) == b"begun"
os.kill(os.getpid(), 9)
"""


def test_a_program_ends_with_its_parent() -> None:
    """It holds the pipe that is read here, which ends with its last holder."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS], stdout=subprocess.PIPE, env=environment(), timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == -9


def test_a_program_whose_parent_is_gone_does_not_begin(tmp_path: Path) -> None:
    """The parent ended before Linux could be asked to watch it."""
    line = child_programs.bind(["touch", str(tmp_path / "begun")])
    line[line.index(str(os.getpid()))] = "1"
    assert subprocess.run(line, check=False).returncode == 143
    assert not (tmp_path / "begun").exists()


@pytest.mark.parametrize(("hangup", "ignored"), [(True, False), (False, True)])
def test_the_child_is_the_program_itself(hangup: bool, ignored: bool) -> None:  # noqa: FBT001
    ask = "grep SigIgn /proc/self/status; exit 7"
    done = subprocess.run(
        child_programs.bind(["sh", "-c", ask], hangup=hangup), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 7
    assert int(done.stdout.split()[1], 16) & 1 == ignored


def test_a_missing_program_is_an_error(tmp_path: Path) -> None:
    line = child_programs.bind([str(tmp_path / "none")])
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert Path(child_programs.__file__).name in line[3]
