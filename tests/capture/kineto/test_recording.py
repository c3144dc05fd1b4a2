"""What starts and ends a recording, and its messages."""

import gzip
import json
import re

import pytest

torch = pytest.importorskip("torch")

import pyprof
from pyprof.capture.kineto import recorder
from pyprof.capture.kineto.recorder import ALL_THREADS
from pyprof.capture.kineto.recording import count_steps
from pyprof.capture.request import StepsToRecord
from pyprof.parse import parse_file
from tests.capture.conftest import Capture
from tests.capture.kineto.captured import TRAIN, WINDOWS, ran, rows, texts
from tests.known import known

THREADS = """
import threading, torch
start = threading.Event()
def early():
    start.wait()
    torch.ones(3).tanh()
threads = [threading.Thread(target=early), threading.Thread(target=lambda: torch.ones(3).sin())]
threads[0].start()
torch.ones(3).exp()
start.set()
threads[1].start()
for thread in threads:
    thread.join()
"""

NVTX = """
import torch
from torch.cuda import nvtx
lacking = not hasattr(torch._C, "_nvtx")
assert nvtx.range_push("forward") == 0 or not lacking  # NVTX itself knows no depth without a tool
with nvtx.range("in {}", 3):
    torch.ones(3).tanh()
nvtx.mark("here")
nvtx.range_end(nvtx.range_start("free"))
assert nvtx.range_pop() == 0 or not lacking
nvtx.range_pop()
"""


@pytest.mark.slow
def test_several_ranges_are_windows_of_one_file(capture: Capture) -> None:
    outcome = capture(WINDOWS)
    assert ran(outcome) == {"tanh", "sin"}
    said = r"recorded \d+(\.\d+)? [mun]?s in 2 windows: the range that the script started"
    assert any(re.fullmatch(said, note) for note in outcome.notes), outcome.notes


def test_steps_of_inference(capture: Capture) -> None:
    text = """
import pyprof, torch
for step in range(5):
    torch.addmm(torch.ones(2), torch.ones(step + 1, 3), torch.ones(3, 2))
    pyprof.step()
"""
    assert rows(texts(capture(text, steps=StepsToRecord(2, 0, 1))), "aten::addmm") == [3]


def test_ops_of_all_threads_are_recorded(capture: Capture) -> None:
    outcome = capture(THREADS)
    if not ALL_THREADS:
        assert any("records only the main thread" in note for note in outcome.notes)
        return
    table = parse_file(known(outcome.path)).table().to_pylist()
    lines = {row["op"][0]: row["trace"][-1].rpartition(":")[2] for row in table if row["op"]}
    assert {name: lines.get(name) for name in ("tanh", "sin", "exp")} == {
        "tanh": "6", "sin": "7", "exp": "9"
    }  # fmt: skip
    assert len({row["tid"] for row in table}) == 3


def test_a_torch_that_records_one_thread(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def older(**_: object) -> None:
        raise TypeError("unexpected keyword")

    monkeypatch.setattr(recorder, "_ExperimentalConfig", older)
    monkeypatch.setattr(recorder, "ALL_THREADS", False)
    assert any("only the main thread" in note for note in capture(THREADS).notes)
    assert not any("only the main thread" in note for note in capture(TRAIN).notes)


def test_nvtx_ranges_of_the_script(capture: Capture) -> None:
    before = torch.cuda.nvtx._nvtx
    outcome = capture(NVTX)
    assert outcome.code == 0
    with gzip.open(known(outcome.path)) as file:
        events = json.load(file)["traceEvents"]
    named = {event["name"]: event for event in events if event.get("cat") == "user_annotation"}
    assert named.keys() >= {"forward", "in 3"}
    assert named["forward"]["ts"] <= named["in 3"]["ts"]
    lacking = not hasattr(torch._C, "_nvtx")
    assert any("has no NVTX" in note for note in outcome.notes) is lacking
    assert torch.cuda.nvtx._nvtx is before


@pytest.mark.parametrize("marked", [False, True])
def test_optimizer_steps_count_until_the_first_pyprof_step(*, marked: bool) -> None:
    ended: list[str] = []
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    with count_steps(lambda: ended.append("step")):
        for step in range(3):
            optimizer.step()  # such as of a GAN's two optimizers
            if marked:
                pyprof.step()
                optimizer.step()
            assert len(ended) == step + 1
    optimizer.step()
    pyprof.step()
    assert len(ended) == 3
