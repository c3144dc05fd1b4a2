"""Processes that a script starts are captured, each in a file of its own."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pyprof.capture import child_captures
from pyprof.capture.request import Request
from pyprof.capture.script import Target
from pyprof.inputs.executor import InProcess
from pyprof.inputs.ranks import ranked_captures
from pyprof.parse import parse_file
from tests.capture.conftest import Capture

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def ops(path: Path) -> set[str]:
    return {row["op"][0] for row in parse_file(path).table().to_pylist() if row["op"]}


SPAWN = """
import torch
import torch.multiprocessing as mp
def work(rank, shape):
    torch.addmm(torch.ones(2), torch.ones(rank + 1, 3), torch.ones(3, 2))
if __name__ == "__main__":
    mp.spawn(work, args=((3, 2),), nprocs=1)
"""


@pytest.mark.long
def test_a_spawned_process_writes_its_own_file(capture: Capture, tmp_path: Path) -> None:
    outcome = capture(SPAWN)
    assert outcome.code == 0
    assert outcome.path is None
    assert outcome.others == (tmp_path / "net.rank0.pt.trace.json.gz",)
    assert outcome.exit_code() == 0
    assert any("1 process that the script started has its own" in note for note in outcome.notes)
    found = parse_file(outcome.others[0]).table().to_pylist()
    (row,) = (row for row in found if row["op"] and "addmm" in row["op"])
    assert row["rank"] == 0
    assert row["sizes"][1] == [1, 3]
    assert row["trace"][-1].endswith("train.py:5")


FORK = """
import multiprocessing, os, sys, torch
context = multiprocessing.get_context("fork")
class Own(context.Process):
    def run(self):
        torch.ones(3).sin()
def work(how):
    torch.ones(3).tanh()
    if how == "leave":
        os._exit(3)
    if how == "raise":
        sys.exit(4)
def idle():
    pass
torch.ones(3).exp()
processes = [context.Process(target=work, args=(how,)) for how in ("leave", "raise")]
processes += [Own(), context.Process(target=idle)]
for process in processes:
    process.start()
for process in processes[:2]:
    process.join()
sys.exit([process.exitcode for process in processes[:2]] != [3, 4])
"""


@pytest.mark.slow
def test_a_forked_process_writes_its_own_file(capture: Capture, tmp_path: Path) -> None:
    outcome = capture(FORK)
    assert outcome.code == 0
    assert outcome.path == tmp_path / "net.pt.trace.json.gz"
    assert "exp" in ops(outcome.path)
    assert [ops(path) & {"tanh", "sin", "exp"} for path in outcome.others] == [
        {"tanh"}, {"tanh"}, {"sin"}
    ]  # fmt: skip


def test_files_of_two_processes_of_one_rank_are_both_kept(capture: Capture, tmp_path: Path) -> None:
    """Such as two phases of a script."""
    text = """
import multiprocessing, os, torch
os.environ.update(WORLD_SIZE="2")
def work(rank):
    os.environ["RANK"] = rank
    torch.ones(3).tanh()
for rank in ("0", "1", "0"):
    process = multiprocessing.get_context("fork").Process(target=work, args=(rank,))
    process.start()
    process.join()
"""
    try:
        found = [path.name for path in capture(text).others]
    finally:
        del os.environ["WORLD_SIZE"]
    assert found == [
        f"net.{name}.pt.trace.json.gz" for name in ("rank0", "rank1", "rank0.process2")
    ]
    claims = ranked_captures([str(tmp_path / name) for name in found[:2]], InProcess())
    assert [member.ranks[0][1] for member in claims] == [0, 1]


def test_a_killed_process_leaves_nothing(capture: Capture) -> None:
    outcome = capture("""
import multiprocessing, time, torch
context = multiprocessing.get_context("fork")
ready = context.Event()
def work():
    torch.ones(3).tanh()
    ready.set()
    time.sleep(99)
process = context.Process(target=work)
process.start()
ready.wait()
process.terminate()
process.join()
torch.ones(3).exp()
""")
    assert outcome.path is not None
    assert any("1 process that the script started left no capture" in n for n in outcome.notes)


def test_a_report_that_cannot_be_read_is_no_capture() -> None:
    """As under a umask that takes the owner's rights."""
    captures = child_captures.ChildCaptures(Request(Target("a.py"), "net"), ".json")
    captures._count = 1
    (Path(captures._folder.name) / "0").mkdir()
    written, (note,) = captures.gather()
    assert not written
    assert note.startswith("1 process that the script started left no capture")


@pytest.mark.parametrize(
    "module", ["torch.utils.data._utils.worker", "multiprocessing.managers", "torch.utils.data.x"]
)
def test_helper_processes_are_not_captured(module: str) -> None:
    def target() -> None:
        pass

    target.__module__ = module
    assert child_captures._serves(multiprocessing.Process(target=target))
    target.__module__ = "multiprocessing.pool"
    assert not child_captures._serves(multiprocessing.Process(target=target))


def test_every_patch_is_undone() -> None:
    before = multiprocessing.process.BaseProcess.start
    with child_captures.replaced_run(lambda _: None):
        assert multiprocessing.process.BaseProcess.start is not before
    assert multiprocessing.process.BaseProcess.start is before
