"""From a script to the table in one command, also with the installed nsys."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from pyprof.capture import machine
from pyprof.commands.capture import command as capture
from pyprof.commands.run import command as run
from tests import damage
from tests.capture.conftest import main_is_put_back
from tests.programs import TOP

pytestmark = pytest.mark.usefixtures(main_is_put_back.__name__)

TRAIN = """
import sys, torch
model = torch.nn.Linear(64, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.ones(16, 64)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(here: Path) -> Path:
    path = here / "train.py"
    path.write_text(TRAIN)
    return path


@pytest.mark.slow
def test_it_ends_with_the_summary(script: Path) -> None:
    result = CliRunner().invoke(run, ["--tool", "torch", str(script), "0"])
    assert result.exit_code == 0, result.output
    assert "2 by Optimizer.step" in result.stdout
    rows = {tuple(line.split()[:3]) for line in result.stdout.splitlines()}
    assert rows >= {
        ("linear", "forward", "2"), ("linear", "backward", "2"), ("SGD.step", "optimizer", "2")
    }  # fmt: skip
    kept = "train.pt.trace.json.gz"
    assert {path.name for path in script.parent.iterdir()} == {"train.py", kept}
    assert f"next: pyprof report {kept}" in result.stderr


def test_a_folder_that_takes_no_capture(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: path != Path() and allowed(path, mode)
    )  # who runs the tests may write everywhere
    result = CliRunner().invoke(run, ["--tool", "torch", str(script), "0"])
    assert result.exit_code == 0, result.output
    assert "2 by Optimizer.step" in result.stdout
    assert "is not kept" in result.stderr
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]


@pytest.mark.long
def test_the_summary_of_processes(script: Path) -> None:
    script.write_text("""
import multiprocessing, os, torch
def work(rank):
    os.environ.update(RANK=rank, WORLD_SIZE="2")
    torch.nn.Linear(64, 32)(torch.ones(16, 64))
for rank in "01":
    process = multiprocessing.get_context("fork").Process(target=work, args=(rank,))
    process.start()
    process.join()
""")
    result = CliRunner().invoke(run, ["--tool", "torch", str(script)])
    assert result.exit_code == 0, result.output
    assert ["linear", "2"] in [line.split()[:2] for line in result.stdout.splitlines()]
    assert {path.name for path in script.parent.glob("*.gz")} == {
        f"train.rank{rank}.pt.trace.json.gz" for rank in range(2)
    }


def test_kept_files_say_where_each_row_is_from(script: Path) -> None:
    name = str(script.parent / "net")
    result = CliRunner().invoke(run, ["--tool", "torch", "-o", name, str(script), "4"])
    assert result.exit_code == 4
    assert "2 by Optimizer.step" in result.stdout  # also of a script that failed
    assert Path(name + ".pt.trace.json.gz").exists()
    assert len(set(told := result.stderr.splitlines())) == len(told)  # nothing is printed twice
    rows = [ast.literal_eval(line) for line in Path(name + ".dict").read_text().splitlines()]
    assert {row["kind"] for row in rows} == {"cpu"}
    assert all(row["op"] for row in rows)
    assert {"linear", "step"} <= {row["op"][0] for row in rows}
    linear = [row for row in rows if row["op"][-1] in {"linear", "addmm", "mm"}]
    assert [row["dir"] for row in linear] == ["fprop", "bprop"] * 2
    for forward in linear[::2]:
        assert forward["layer"] == ["Linear"]
        assert forward["trace"] == [f"{script}:6"]
        assert forward["sizes"][0] == [16, 64]


@pytest.mark.long
@pytest.mark.skipif(machine.find_nsys() is None, reason="no nsys here")
def test_real_nsys(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(script.parent / "net")
    command = [sys.executable, "-m", "pyprof.capture", "--tool", "nsys", "-o", name, str(script)]
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    done = subprocess.run([*command, "3"], capture_output=True, text=True, check=False)
    if "importer" in done.stderr + done.stdout:
        pytest.skip("this nsys does not find its importer")
    assert done.returncode == 3, done.stderr
    query = "SELECT COALESCE(text, value) FROM NVTX_EVENTS LEFT JOIN StringIds ON textId = id"
    texts = damage.query(Path(f"{name}.sqlite"), query)
    assert any("'op': 'linear'" in (text or "") for (text,) in texts)
    if not machine.find_gpus():
        assert "no GPU work was captured: there is no GPU here" in done.stderr


def test_wrong_usage_ends_in_one_line() -> None:
    for arguments in ([], ["--tool", "vtune", "x.py"]):
        assert CliRunner().invoke(capture, arguments).exit_code == 2
    for options, said in (
        (["--all", "--steps", "1,1,1"], "exclude each other"),
        (["--steps", "1,1"], "'1,1': expected three counts"),
    ):
        result = CliRunner().invoke(capture, [*options, __file__])
        assert result.exit_code == 2
        assert said in result.stderr


def test_without_stdout_the_capture_is_kept(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The summary has no place then (`>&-`)."""
    monkeypatch.chdir(script.parent)
    monkeypatch.setattr(sys, "stdout", None)
    assert run.main(["--tool", "torch", str(script), "0"], standalone_mode=False) == 1
    assert capsys.readouterr().err.endswith("pyprof: stdout is closed; name a file with -o\n")
    assert Path("train.pt.trace.json.gz").exists()


@pytest.mark.long
def test_a_script_that_closes_its_output_and_replaces_builtins_gets_its_report(
    script: Path,
) -> None:
    ends = "sys.stdout.close(); sys.stderr.close()\nimport builtins\nbuiltins.open = None\n"
    script.write_text(TRAIN.replace("sys.exit", f"{ends}builtins.sorted = None\nsys.exit"))
    command = [sys.executable, "-m", "pyprof", "run", "--tool", "torch", str(script), "3"]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "2 by Optimizer.step" in done.stdout
    assert "next: pyprof report" in done.stderr
