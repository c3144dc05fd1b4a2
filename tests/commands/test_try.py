"""`pyprof try`: a script with and without changes, alternating."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyprof.trial import processes
from pyprof.trial.run_files import RunRequest, RunResult
from tests import forks
from tests.answers.checked import checked
from tests.commands import run
from tests.programs import environment
from tests.trial.built import lines_of, printed, run_child, training


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_script_that_fails_by_itself_ends_with_its_last_line(tmp_path: Path) -> None:
    script = _script(tmp_path / "a.py", "raise ValueError('no data')\n")
    done = run("try", "--change", "env=A=1", "-o", tmp_path / "out", script)
    assert (done.code, done.stdout) == (1, "")
    assert "fails without a change: ValueError: no data" in done.stderr


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    script = _script(tmp_path / "a.py", "")
    done = run("try", "--change", "env=A=1", "-o", tmp_path / "out", script)
    assert done.code == 1
    assert "holds other files; choose another folder with -o" in done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_an_option_behind_the_script_is_said_to_be_the_scripts(tmp_path: Path) -> None:
    script = _script(tmp_path / "a.py", "raise ValueError('no data')")
    args = ("try", "--change", "env=A=1", "-o", tmp_path / "out", script)
    said = "--change=bf16 is an argument of the script"
    assert said in run(*args, "--change=bf16", "--epochs", "1").stderr
    assert "argument of the script" not in run(*args, "--epochs", "1", "try").stderr


def test_wrong_usage_is_reported(tmp_path: Path) -> None:
    assert run("try").code == 2
    wrong = run("try", "--change", "bf61", _script(tmp_path / "a.py", ""))
    assert wrong.code == 2
    assert "Invalid value for '--change': no change 'bf61'; did you mean 'bf16'?" in wrong.stderr
    assert not (tmp_path / "a.try").exists()
    ranks = run("try", "torchrun", "--nproc-per-node", "2", tmp_path / "a.py")
    assert ranks.code == 2
    assert "torchrun --nproc-per-node N -m pyprof try SCRIPT" in " ".join(ranks.stderr.split())
    missing = run("try", "--change", "env=A=1", tmp_path / "missing.py")
    assert missing.code == 1
    assert "no such script" in missing.stderr


def test_all_changes_are_listed() -> None:
    listed = run("try", "--list").stdout
    assert all(name in listed for name in ("workers=N", "channels-last", "env=NAME=VALUE"))


@pytest.fixture
def torch_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have scripts run in forks of a process that has imported torch, which takes 3 s."""

    def perform(
        request: RunRequest, paths: processes.RunPaths, env: Mapping[str, str], _: float | None
    ) -> RunResult:
        request.write(paths.request)
        done = forks.python(
            "-m", "pyprof.trial.script.child", paths.request, env={**environment(), **env}
        )
        paths.log.write_text(done.stdout + done.stderr)
        return processes._read_result(paths, done.returncode, None)

    monkeypatch.setattr(processes, "perform", perform)


@pytest.mark.long
@pytest.mark.usefixtures("torch_is_imported")
def test_each_change_has_a_verdict_and_the_others_go_on(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    scale = _script(
        tmp_path / "scale.py",
        "import torch.nn.functional as F\nplain = F.cross_entropy\n"
        "F.cross_entropy = lambda *a: 1.01 * plain(*a)\n",
    )
    script = training(tmp_path / "a.py", steps=12, setup="import sys\nassert not sys.argv[1:]")
    done = run(
        "try", "--json", "--rounds", "1", "-o", tmp_path / "out", "--change", "args=--x",
        "--change", "channels-last", "--change", f"patch={scale}", script,
    )  # fmt: skip
    assert done.code == 0, done.stderr
    answer = checked(done.stdout)
    assert json.loads((tmp_path / "out" / "try.json").read_text()) == answer
    fails, refused, scaled = answer["changes"]
    assert (fails["verdict"], fails["why"]) == ("failed", "AssertionError")
    assert (refused["verdict"], refused["time_ratio"]) == ("refused", None)
    assert scaled["loss"]["within_noise"] is False
    assert scaled["loss"]["largest_relative_difference"] >= 0.0099
    assert Path(scaled["capture"]).exists()
    assert len(lines_of(tmp_path / "out" / "runs.jsonl")) >= 8


@pytest.mark.slow
def test_without_a_change_losses_are_those_of_the_bare_script(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = training(tmp_path / "a.py")
    script.write_text(script.read_text().replace("print(loss.item())", "print(repr(loss.item()))"))
    assert run_child(script).losses[-1] == float(printed(script))


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_ends_the_script_and_reports_what_is_there(tmp_path: Path) -> None:
    script = _script(
        tmp_path / "a.py", "import os, time\nif os.environ.get('A'):\n    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "pyprof", "try", "--change", "env=A=1", "-o", tmp_path / "out",
         script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    runs = tmp_path / "out" / "runs"
    while not (runs / "run-002.request.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "interrupted: some runs are missing" in stdout
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not any(os.fsencode(runs) in each for each in commands)


@pytest.mark.long
@pytest.mark.usefixtures("torch_is_imported")
def test_changes_that_helped_are_combined(tmp_path: Path) -> None:
    """Each step has two waits, each of which one change removes."""
    pytest.importorskip("torch")
    setup = (
        "import os, time\n"
        "def wait(*_):\n    for name in ('A', 'B'):\n"
        "        time.sleep(0 if os.environ.get(name) else 0.02)\n"
        "import torch.optim.optimizer as o\no.register_optimizer_step_pre_hook(wait)\n"
    )
    script = training(tmp_path / "a.py", steps=15, setup=setup)
    done = run(
        "try", "--json", "--rounds", "1", "--together", "-o", tmp_path / "out",
        "--change", "env=A=1", "--change", "env=B=1", script,
    )  # fmt: skip
    assert done.code == 0, done.stderr
    changes = checked(done.stdout)["changes"]
    assert [each["change"] for each in changes] == ["env=A=1", "env=B=1", "env=A=1 + env=B=1"]
    assert changes[2]["verdict"] == "faster"
    assert changes[2]["time_ratio"]["mid"] < 0.5
