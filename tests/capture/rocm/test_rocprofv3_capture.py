"""Captures by rocprofv3: its command line, seen by a stand-in, and its databases."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import CliRunner, Result

from pyprof import readers
from pyprof.capture import machine
from pyprof.commands.capture import command as capture
from pyprof.process import overwrite_guard
from tests.builders import Work, rocpd_db
from tests.capture.stand_in import RANGE, StandIn, seen
from tests.readers.test_nsys import rows

Run: TypeAlias = "Callable[..., Result]"

STAND_IN = """#!{python}
import json, os, shutil, subprocess, sys
args = sys.argv[1:]
if args == ["--help"]:
    print(os.environ.get("KNOWS", "--selected-regions"))
    raise SystemExit
with open(os.environ["SEEN"], "w") as file:
    json.dump(args, file)
folder = args[args.index("--output-directory") + 1]
place = os.path.join(folder, "some-host")
os.makedirs(place)
code = subprocess.run(args[args.index("--") + 1 :], check=False).returncode
for number, file in enumerate(sorted(os.listdir(os.environ["RESULTS"]))):
    shutil.copy(os.path.join(os.environ["RESULTS"], file), f"{{place}}/{{100 + number}}_results.db")
raise SystemExit(code and 1)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    tool = StandIn(tmp_path, "rocprofv3", STAND_IN, monkeypatch)
    results = tmp_path / "results"
    monkeypatch.setenv("RESULTS", str(results))
    results.mkdir()

    def capture_it(
        *args: str, text: str = "pass", work: tuple[Work, ...] = (Work(),), code: int | None = None
    ) -> Result:
        for pid in {each.pid for each in work}:
            own = [each for each in work if each.pid == pid]
            rocpd_db(results / f"{pid}.db", own, place=pid)
        return tool.capture(*args, text=text, code=code)

    return capture_it


@pytest.mark.slow
def test_it_traces_kernels_copies_calls_and_markers(run: Run, tmp_path: Path) -> None:
    result = run("--tool", "rocprofv3", code=0)
    arguments = seen(tmp_path)
    assert arguments[:7] == [
        *("--kernel-trace", "--memory-copy-trace", "--hip-runtime-trace", "--marker-trace"),
        *("--rccl-trace", "--output-format", "rocpd"),
    ]
    assert "--selected-regions" not in arguments
    assert arguments[-4:] == [str(tmp_path / "train.py"), "--lr", "-o", "--"]
    capture = readers.read(tmp_path / "net.db")
    assert (capture.tool, capture.activities.num_rows) == ("rocpd", 1)
    assert overwrite_guard.recorded(tmp_path / "net.db")
    assert "net.db" in result.output
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".pyprof-")]


@pytest.mark.long
def test_the_scripts_range_is_one_of_roctx(run: Run, tmp_path: Path) -> None:
    assert run("--tool", "rocprofv3", text=RANGE).exit_code == 0
    assert "--selected-regions" in seen(tmp_path)
    assert "--roctx" in seen(tmp_path)
    assert run("--tool", "rocprofv3", "--all", text=RANGE).exit_code == 0
    assert "--selected-regions" not in seen(tmp_path)


@pytest.mark.long
def test_steps_are_counted_in_the_script(run: Run, tmp_path: Path) -> None:
    assert run("--tool", "rocprofv3", "--steps", "1,1,2").exit_code == 0
    assert "--selected-regions" in seen(tmp_path)
    assert any(argument.startswith("--steps=1,1,2") for argument in seen(tmp_path))


def test_a_rocprofv3_without_regions_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWS", "--kernel-trace")
    result = run("--tool", "rocprofv3", text=RANGE, code=1)
    assert "too old to record a range" in result.output


@pytest.mark.few(1)
@pytest.mark.parametrize("code", [0, 1, 7])
def test_the_exit_code_is_the_scripts(code: int, run: Run) -> None:
    run("--tool", "rocprofv3", text=f"raise SystemExit({code})", code=code)


def test_databases_of_several_processes_become_one(run: Run, tmp_path: Path) -> None:
    work = tuple(
        Work(f"kernel of {pid}", at=(1000, 1100 + pid), pid=pid, tid=pid) for pid in (41, 42, 43)
    )
    result = run("--tool", "rocprofv3", work=work, code=0)
    assert "recorded 3 processes" in result.output
    capture = readers.read(tmp_path / "net.db")
    assert rows(capture.activities, "pid", "end", "name") == [
        (pid, 1100 + pid, f"kernel of {pid}") for pid in (41, 42, 43)
    ]


def test_a_run_without_gpu_work_says_what_to_do(run: Run, tmp_path: Path) -> None:
    (tmp_path / "results").rmdir()
    (tmp_path / "results").mkdir()
    result = run("--tool", "rocprofv3", work=(), code=1)
    assert "rocprofv3 wrote no database" in result.output
    assert "--tool torch" in result.output
    assert not (tmp_path / "net.db").exists()


def test_auto_chooses_rocprofv3_only_with_an_amd_gpu(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "find_gpus", tuple)
    monkeypatch.setattr(machine, "has_amd_gpu", lambda: True)
    assert run("--tool", "auto").exit_code == 0
    assert (tmp_path / "net.db").exists()


def test_without_rocprofv3_the_message_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "find_rocprofv3", lambda: None)
    script = tmp_path / "train.py"
    script.write_text("pass")
    result = CliRunner().invoke(capture, ["--tool", "rocprofv3", str(script)])
    assert result.exit_code == 1
    assert "rocprofiler-sdk" in result.output
