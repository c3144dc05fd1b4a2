"""Workers are forked from a command that has one thread, and spawned otherwise."""

import re
from pathlib import Path

import click
import pytest

from pyprof.__main__ import main, names
from tests.analysis.captured import capture
from tests.conftest import long_except
from tests.programs import python

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")

_COMMAND = """
import sys
from threading import Event, Thread
from pyprof.process import arrow_setup

if __name__ == "__main__":
    arrow_setup.prepare()

from pyprof.inputs.executor import open_executor
from tests.inputs import work

def mapped(function, items, loaded="tests.inputs.work"):
    with open_executor(2, work=loaded) as executor:
        return [*executor.gather(executor.map(function, items, ""))]

def with_thread():
    Thread(target=Event().wait, daemon=True).start()
"""
"""A process as a command's: nothing that it loads has left a thread."""

_HOW = "__import__('multiprocessing').current_process().__class__.__name__"


def _said(code: str, *arguments: str) -> list[str]:
    done = python("-c", f"{_COMMAND}\nif __name__ == '__main__':\n    {code}", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("print(*mapped(eval, [sys.argv[1]] * 3))", "ForkProcess"),
        ("print(*mapped(eval, [sys.argv[1]] * 3, loaded=None))", "SpawnProcess"),
        ("with_thread(); print(*mapped(eval, [sys.argv[1]] * 3))", "SpawnProcess"),
    ],
    ids=["command", "library", "threads"],
)
def test_only_a_command_with_one_thread_is_copied(code: str, how: str) -> None:
    """A fork would find other threads' work half done."""
    assert _said(code, _HOW) == [how] * 3


def test_copies_begin_with_what_is_loaded() -> None:
    loaded = "'wave' in __import__('sys').modules"
    assert _said("print(*mapped(eval, [sys.argv[1]] * 3, loaded='wave'))", loaded) == ["True"] * 3


@pytest.mark.slow
def test_threads_started_by_loading_prevent_copies(tmp_path: Path) -> None:
    (tmp_path / "threading_work.py").write_text(
        "from threading import Event, Thread\nThread(target=Event().wait, daemon=True).start()\n"
    )
    code = "sys.path.append(sys.argv[2]); print(*mapped(eval, [sys.argv[1]], 'threading_work'))"
    assert _said(code, _HOW, str(tmp_path)) == ["SpawnProcess"]


@pytest.mark.long
@pytest.mark.parametrize("loaded", ["'tests.inputs.work'", "None"], ids=["copied", "spawned"])
@pytest.mark.parametrize("function", ["ends_once", "interrupted_once"])
def test_a_lost_worker_costs_a_retry(tmp_path: Path, function: str, loaded: str) -> None:
    """A terminal sends Ctrl-C to workers, too; only the command prints anything."""
    code = f"print(*mapped(work.{function}, [*map(work.Path, sys.argv[1:])], {loaded}))"
    assert _said(code, *(str(tmp_path / name) for name in "abc")) == [*"abc"]


@pytest.mark.slow
def test_a_capture_that_kills_copies_is_left_out() -> None:
    done = python(
        "-c", f"{_COMMAND}\nif __name__ == '__main__': print(mapped(work.ends_always, range(4)))"
    )
    assert done.stdout == "[0, 1, 3]\n"
    warned = done.stderr.splitlines()
    assert re.fullmatch(r"pyprof: warning: 2: its worker ended every time, .* memory", warned[0])


_FORKS_ONLY = """
import multiprocessing

def forks_only(method, plain=multiprocessing.get_context):
    assert method == "fork", "some module has started a thread"
    return plain(method)

if __name__ == "__main__":
    multiprocessing.get_context = forks_only
    from pyprof.__main__ import main
    main()
"""

_WITH_WORKERS = {
    "diff": ["diff", "{0}", "{0}"],
    "export": ["export", "{0}", "-o", "{1}/all.csv"],
    "lines": ["lines", "{0}"],
    "parse": ["parse", "{0}", "-o", "{1}/dataset/"],
    "prof": ["prof", "{0}"],
    "ranks": ["ranks", "{0}"],
    "whatif": ["whatif", "{0}"],
    "whatif --batch": ["whatif", "{0}", "--batch", "2x"],
    "report": ["report", "{0}", "-o", "{1}/page.html"],
    "roofline": ["roofline", "{0}", "-o", "{1}/roofline.html"],
    "summary": ["summary", "{0}"],
}


def test_every_command_with_workers_is_tried_below() -> None:
    commands = {name: main.get_command(click.Context(main), name) for name in names()}
    assert {words[0] for words in _WITH_WORKERS.values()} == {
        name
        for name, command in commands.items()
        if command is not None and any("--workers" in param.opts for param in command.params)
    }


@pytest.mark.long
@pytest.mark.parametrize("name", long_except(_WITH_WORKERS, "diff", "parse"))
def test_commands_have_one_thread_until_workers_begin(name: str, tmp_path: Path) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    for rank in range(2):
        capture(captures / f"net-rank{rank}.sqlite")
    words = [word.format(captures, tmp_path) for word in _WITH_WORKERS[name]]
    done = python("-c", _FORKS_ONLY, *words, "--workers", "2")
    assert done.returncode == 0, done.stderr
