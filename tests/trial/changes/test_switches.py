"""Settings of torch, of GPUs and of the CPU's threads."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from pyprof.trial.change import changes
from tests.trial.built import run_child, training


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("change", ["tf32", "cudnn-benchmark", "pin-memory"])
def test_without_a_gpu_they_are_refused(tmp_path: Path, change: str) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (why,) = run_child(training(tmp_path / "a.py"), change).refused.values()
    assert why.startswith("there is no GPU")


class RefusedRun:
    """A run on a GPU, whose refusals are kept."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def refuse(self, why: str) -> None:
        """Keep the reason, where the real one ends the process."""
        self.refused.append(why)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[RefusedRun]:
    """Yield a run on an Ampere GPU, and undo afterwards what a change does to torch."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda _: None)
    # torch.testing, which other tests import, freezes the flags of a process.
    flags = torch.backends.flags_frozen.__globals__
    monkeypatch.setitem(flags, "__allow_nonbracketed_mutation_flag", value=True)
    products, cudnn = type(torch.backends.cuda.matmul), type(torch.backends.cudnn)
    monkeypatch.setattr(products, "__setattr__", lambda *_: None)
    monkeypatch.setattr(cudnn, "benchmark", vars(cudnn)["benchmark"])
    with torch.backends.cudnn.flags(torch.backends.cudnn.enabled):
        yield RefusedRun()


def test_a_script_that_sets_tf32_itself_is_refused(run: RefusedRun) -> None:
    changes()["tf32"].apply(run)
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    assert run.refused == []
    torch.set_float32_matmul_precision("high")
    torch.backends.cuda.matmul.allow_tf32 = True
    assert run.refused == ["the script sets the precision of float32 products itself"] * 2


def test_a_script_that_sets_cudnn_benchmark_itself_is_refused(run: RefusedRun) -> None:
    changes()["cudnn-benchmark"].apply(run)
    assert torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    assert run.refused == ["the script sets it itself"]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "device"), [(1, "CPU, 1 thread"), (2, "CPU, 2 threads")])
def test_threads_are_set_for_the_script(tmp_path: Path, count: int, device: str) -> None:
    done = run_child(training(tmp_path / "a.py"), f"threads={count}")
    assert (done.code, done.device) == (0, device)


@pytest.mark.slow
def test_threads_that_the_script_sets_or_has_take_precedence(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", setup="torch.set_num_threads(3)")
    found = run_child(script, "threads=2").no_effect
    assert found == {"threads=2": "the script sets 3 threads itself"}
    assert run_child(script, "threads=1").refused == {"threads=1": "torch uses 1 threads already"}
