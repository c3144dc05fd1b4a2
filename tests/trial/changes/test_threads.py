"""Threads of torch on a CPU."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


def test_threads_are_set_for_the_script(tmp_path: Path) -> None:
    done = run_child(training(tmp_path / "a.py"), "threads=2")
    assert (done.code, done.device) == (0, "CPU, 2 threads")


def test_threads_that_the_script_sets_take_precedence(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", setup="torch.set_num_threads(3)")
    assert run_child(script, "threads=2").no_effect == {
        "threads=2": "the script sets 3 threads itself"
    }


def test_the_number_in_use_is_refused(tmp_path: Path) -> None:
    done = run_child(training(tmp_path / "a.py"), "threads=1")
    assert done.refused == {"threads=1": "torch uses 1 threads already"}
