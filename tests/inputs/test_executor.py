"""Every local executor returns the same, in order, whatever fails."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs.executor import Executor, open_executor
from pyprof.inputs.processes import _uninterrupted
from pyprof.process import threads
from tests.conftest import long_except
from tests.inputs import work
from tests.programs import environment, python


@pytest.fixture(scope="module", params=[1, 2, 3], ids="workers={}".format)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with open_executor(request.param) as chosen:
        yield chosen


def test_results_come_in_order(executor: Executor) -> None:
    handles = executor.map(work.inverse, range(1, 8), "inverting")
    assert [handle.item for handle in handles] == list(range(1, 8))
    assert list(executor.gather(handles)) == [1 / number for number in range(1, 8)]


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaves", "tree"),
    [
        (1, "0"),
        (2, "(0 1)"),
        (3, "((0 1) 2)"),
        (5, "(((0 1) (2 3)) 4)"),
        (6, "(((0 1) (2 3)) (4 5))"),
        (7, "(((0 1) (2 3)) ((4 5) 6))"),
    ],
)
def test_neighbours_are_merged(executor: Executor, leaves: int, tree: str) -> None:
    assert executor.reduce(work.pair, executor.map(work.as_text, range(leaves), "")) == tree


def test_the_merged_result_is_finished_here(executor: Executor) -> None:
    handles = executor.map(work.as_text, range(3), "")
    assert executor.reduce_and_finish(work.pair, handles, work.with_process) == (
        "((0 1) 2)",
        os.getpid(),
    )


def test_sums_are_equal_to_the_bit(executor: Executor) -> None:
    found = executor.reduce(work.add, executor.map(work.inverse, range(1, 100), ""))
    with open_executor() as here:
        assert found == here.reduce(work.add, here.map(work.inverse, range(1, 100), ""))
    assert found != reduce(work.add, map(work.inverse, range(1, 100)))  # it does matter


def test_unreadable_captures_are_named_and_left_out(
    executor: Executor, capsys: pytest.CaptureFixture[str]
) -> None:
    handles = executor.map(work.even, range(5), "")
    assert list(executor.gather(handles)) == [0, 2, 4]
    assert capsys.readouterr().err.splitlines() == [
        "pyprof: warning: capture 1: is odd; capture again",
        "pyprof: warning: capture 3: is odd; capture again",
        "pyprof: warning: 2 of 5 captures could not be read and are left out",
    ]


@pytest.mark.slow
def test_nothing_read_is_an_error(executor: Executor) -> None:
    with pytest.raises(CaptureError, match=r"capture 1: is odd; capture again \(and 2 more\)"):
        executor.map(work.even, [1, 3, 5], "")


@pytest.mark.parametrize("workers", [1, 2])
def test_strict_stops_at_an_unreadable_capture(workers: int) -> None:
    with open_executor(workers, strict=True) as executor:
        assert len(executor.map(work.even, [0, 2], "")) == 2
        with pytest.raises(CaptureError, match=r"capture 1: is odd; capture again$"):
            executor.map(work.even, [0, 1, 2], "")


def test_other_errors_stop_everything(executor: Executor) -> None:
    with pytest.raises(PyprofError, match="no space left"):
        executor.map(work.unwritable, range(3), "")


def test_workers_share_the_cores() -> None:
    workers = max(2, threads.available())
    with open_executor(workers) as executor:
        shares = executor.map(eval, ["__import__('pyarrow').cpu_count()"] * workers, "")
        assert list(executor.gather(shares)) == [1] * workers


@pytest.mark.slow
def test_workers_without_captures_need_no_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available", lambda: 8)
    with open_executor(8) as executor:
        shares = executor.map(eval, ["__import__('pyarrow').cpu_count()"] * 2, "")
        assert list(executor.gather(shares)) == [4, 4]


@pytest.mark.slow
def test_workers_that_begin_load_what_they_need() -> None:
    code = (
        "import sys; from pyprof.inputs.processes import _load; _load('wave'); print(*sys.modules)"
    )
    loaded = python("-c", code).stdout.split()
    assert {"wave", "pyprof.readers.nsys", "pyprof.parse.assemble"} <= {*loaded}


@pytest.mark.long
def test_more_captures_have_more_workers() -> None:
    before = multiprocessing.active_children()
    with open_executor(3) as executor:
        for captures, begun in ((1, 1), (2, 2), (1, 2)):
            assert len(executor.map(work.as_text, range(captures), "")) == captures
            assert len(multiprocessing.active_children()) - len(before) == begun


@pytest.mark.skipif(sys.platform == "win32", reason="as above")
def test_ctrl_c_waits_until_a_worker_has_begun() -> None:
    """While Python loads its modules, an interrupt would show a traceback."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('loaded')"
    with _uninterrupted():
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, text=True
        )
    assert (done.stdout, done.stderr) == ("loaded\n", "")


@pytest.mark.long
def test_a_capture_that_kills_workers_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with open_executor(3) as executor:
        handles = executor.map(work.ends_always, range(6), "")
        assert list(executor.gather(handles)) == [0, 1, 3, 4, 5]
    told = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"pyprof: warning: 2: its worker ended every time, .* memory", told[0])
    assert told[1:] == ["pyprof: warning: 1 of 6 captures could not be read and are left out"]
    gives_up = pytest.raises(CaptureError, match=r"^2: its worker")
    with open_executor(2, strict=True) as executor, gives_up:
        executor.map(work.ends_always, range(6), "")


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pyprof.inputs.executor import open_executor\n"
        "with open_executor(2) as executor:\n"
        "    executor.map(str, range(9), '')\n"
    )
    done = python(str(script))
    last = done.stderr.splitlines()[-1]
    assert "PyprofError: worker processes end before they begin; a script that uses" in last
    assert done.stderr.count("bootstrapping phase") <= 2


@pytest.mark.skipif(sys.platform == "win32", reason="as above")
@pytest.mark.parametrize("loaded", long_except(["", "tests.inputs.work"], "tests.inputs.work"))
@pytest.mark.parametrize(
    "last", long_except(["SIGINT", "SIGTERM", "SIGKILL"], "SIGTERM", "SIGKILL")
)
def test_no_worker_outlives_the_command(tmp_path: Path, last: str, loaded: str) -> None:
    """It is killed mid-work by a signal to itself alone: busy workers end, too.

    They hold the pipe that is read here, so it ends with the last of them.
    """
    command = [sys.executable, "-c", _WAITS, str(tmp_path / "begun"), loaded]
    os.mkfifo(tmp_path / "begun")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), text=True
    ) as process:
        assert (tmp_path / "begun").read_text() == "begun"
        process.send_signal(getattr(signal, last))
        said, _ = process.communicate(timeout=60)
    if last == "SIGINT":  # of the others Python itself says something about semaphores
        assert said == "interrupted\n"


_WAITS = """
import sys
from pyprof.process import arrow_setup

if __name__ == "__main__":
    arrow_setup.prepare()

from pyprof.inputs.executor import open_executor
from tests.inputs import work

if __name__ == "__main__":
    try:
        with open_executor(2, work=sys.argv[2] or None) as executor:
            executor.map(work.begins, [sys.argv[1], None], "")
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_shown(
    workers: int,
    *,
    quiet: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with open_executor(workers, quiet=quiet) as executor:
        executor.map(work.as_text, range(3), "spelling")
    shown = capsys.readouterr().err
    assert ("spelling" in shown, "100%" in shown) == (not quiet, not quiet)


def test_very_many_that_cannot_be_read_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with open_executor() as executor:
        assert len(executor.map(work.even, range(500), "")) == 250
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 21
    assert said[-1].endswith("250 of 500 captures could not be read and are left out")
