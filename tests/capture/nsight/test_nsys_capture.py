"""Captures by nsys: its command line, seen by a stand-in, and the messages about the result."""

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyprof.capture import machine
from pyprof.capture.nsight import nsys_capture
from pyprof.capture.under_profiler import profiler_process
from pyprof.commands.capture import command as capture
from pyprof.parse import parse_file
from tests import damage
from tests.builders import Node, Work, nsys_db
from tests.capture.nsight.conftest import Run
from tests.capture.stand_in import RANGE, seen


@pytest.mark.slow
def test_flags(run: Run, tmp_path: Path) -> None:
    run("--tool", "nsys", text=RANGE, code=0)
    assert seen(tmp_path)[:9] == [
        "profile",
        "--trace=cuda,nvtx,cublas,cudnn",
        *("--sample=none", "--cpuctxsw=none", "--force-overwrite=true", "--export=sqlite"),
        f"--output={tmp_path / 'net'}",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=repeat",
    ]
    assert any(arg.startswith("--provisional=") for arg in seen(tmp_path))
    assert seen(tmp_path)[-4:] == [str(tmp_path / "train.py"), "--lr", "-o", "--"]


@pytest.mark.slow
def test_nsys_is_first_choice_with_a_gpu(run: Run, tmp_path: Path) -> None:
    result = run()
    assert f"{tmp_path / 'net.sqlite'}" in result.stderr
    assert seen(tmp_path)


OFFERED = """Possible values are:
	0: NVIDIA H100 PCI[0000:19:00.0]
	1: NVIDIA H100 PCI[0000:3b:00.0]
	all: Select all supported GPUs
	none: Disable GPU Metrics [Default]
"""
SAMPLES = {"KNOWS": "--gpu-metrics-devices=", "METRICS": OFFERED}
RANK = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("options", "text", "environment", "prefix", "asked"),
    [
        ("", "pass", {}, "--cuda-graph-trace", ["=node"]),
        ("--graph-nodes", "pass", {}, "--cuda-graph-trace", ["=node"]),
        ("--no-graph-nodes", "pass", {}, "--cuda-graph-trace", []),
        ("", "pass", {"KNOWS": "--trace="}, "--cuda-graph-trace", []),
        ("", "pass", {}, "--cuda-memory", []),
        ("", "pass", {}, "--memory", []),
        ("--memory", "pass", {}, "--cuda-memory", ["-usage=true"]),
        ("--memory", "pass", {}, "--memory", ["=FOLDER/net.memory.pickle"]),
        ("--all", RANGE, {}, "--capture-range", []),
        ("", "print('no range')", {}, "--capture-range", []),
        ("", "# torch.cuda.profiler.start()", {}, "--capture-range", []),
        ("--steps 1,1,1", "pass", {}, "--capture-range-end", ["=stop"]),
        ("--steps 1,1,1", "pass", {}, "--steps", ["=1,1,1,1"]),
        ("--steps 1,1,1,2", "pass", {}, "--capture-range-end", ["=repeat"]),
        ("--steps 1,1,1,2", "pass", {}, "--steps", ["=1,1,1,2"]),
        ("", "pass", SAMPLES, "--gpu-metrics", []),
        ("--metrics", "pass", SAMPLES, "--gpu-metrics", ["-devices=all"]),
        ("--metrics", "pass", SAMPLES | {"KNOWS": "--gpu-metrics-device="}, "--gpu-metrics",
         ["-device=all"]),
        ("--metrics", "pass", SAMPLES | {"METRICS": OFFERED + "\tcuda-visible: Select those\n"},
         "--gpu-metrics", ["-devices=cuda-visible"]),
        ("--metrics", "pass", SAMPLES | RANK, "--gpu-metrics", ["-devices=1"]),
    ],
)  # fmt: skip
def test_nsys_is_asked_for_what_the_user_asks_and_it_can(
    options: str, text: str, environment: dict[str, str], prefix: str, asked: list[str],
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    run("--tool", "nsys", *options.split(), text=text, code=0)
    arguments = [arg.replace(str(tmp_path), "FOLDER") for arg in seen(tmp_path)]
    assert [arg.removeprefix(prefix) for arg in arguments if arg.startswith(prefix)] == asked


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([Node(1, 15), Node(11, 60, of=1)], None),
        ([Node(11, 60, of=1)], "2 kernels ran in CUDA graphs that were captured before"),
        ([], "2 kernels ran in CUDA graphs that were captured before"),
    ],
)
def test_graphs_that_were_captured_before(
    run: Run, tmp_path: Path, nodes: list[Node], said: str | None
) -> None:
    work = [Work(at=(n, n + 50), call=(900, 910), corr=1, node=11) for n in (1000, 1100)]
    run("--tool", "nsys", writes="")  # makes the folder of what the stand-in is to write
    nsys_db(tmp_path / "windows" / ".sqlite", work, nodes=nodes)
    result = run("--tool", "nsys", writes="windows")
    assert ("captured before recording began" in result.stderr) == (said is not None)
    assert (said or "") in result.stderr


@pytest.mark.slow
def test_exit_code_and_file(run: Run) -> None:
    """The script's code is returned even if nsys returns 0; the file is kept."""
    result = run("--tool", "nsys", text="import sys; sys.exit(5)", code=5)
    assert "net.sqlite" in result.stderr


@pytest.mark.slow
def test_any_file_name_works(run: Run, tmp_path: Path) -> None:
    """GPU work is found even if the name has characters special in a URI."""
    result = run("--tool", "nsys", "--all", "-o", str(tmp_path / "100% #1?"))
    assert "100% #1?.sqlite" in result.stderr
    assert "no GPU work" not in result.stderr


@pytest.mark.slow
def test_kernels_that_nsys_did_not_record(run: Run, tmp_path: Path) -> None:
    """Launches without any kernel: the script used the GPU, but nsys could not trace it."""
    run("--tool", "nsys", writes="")
    work = [Work(kind="call", call=(100 * n, 100 * n + 10)) for n in range(5)]
    nsys_db(tmp_path / "windows" / ".sqlite", work)
    result = run("--tool", "nsys", writes="windows", code=1)
    assert "kernels were launched (5), but nsys recorded none" in result.stderr
    assert "nothing ran on the GPU" not in result.stderr


@pytest.mark.slow
def test_no_gpu_work(run: Run) -> None:
    result = run("--tool", "nsys", "--all", writes="sqlite", code=1)
    assert "no GPU work was captured: nothing ran on the GPU" in result.stderr
    assert "--tool torch" in result.stderr
    assert "next:" not in result.stderr


def test_no_gpu(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "find_gpus", lambda: ())
    result = run("--tool", "nsys", text=RANGE, writes="sqlite")
    assert "--trace=nvtx" in seen(tmp_path)
    assert not any("capture-range" in arg for arg in seen(tmp_path))
    before, after = (line for line in result.stderr.splitlines() if "no GPU here" in line)
    assert "records ranges only" in before
    assert f"python -m pyprof.capture --tool torch {tmp_path / 'train.py'} --lr -o --" in after
    assert "next:" not in result.stderr
    assert result.exit_code == 1


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("writes", "said", "earlier"),
    [
        ("", "nsys wrote no report", False),
        ("", "nsys wrote no report", True),  # an old file is not taken for a new one
        (".qdstrm", "its importer was not found", False),
        (".nsys-rep", "could not be exported; try: ", False),
    ],
)
def test_no_database(run: Run, tmp_path: Path, writes: str, said: str, *, earlier: bool) -> None:
    if earlier:
        damage.sql(tmp_path / "net.sqlite", "CREATE TABLE StringIds (id, value)")
    result = run("--tool", "nsys", writes=writes, code=1)
    assert said in result.stderr


def test_a_report_without_a_database_is_exported(run: Run, tmp_path: Path) -> None:
    run("--tool", "nsys", writes=".nsys-rep exported", code=0)
    assert {path.name for path in tmp_path.glob("net*")} == {"net.nsys-rep", "net.sqlite"}


def test_no_nsys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass")
    monkeypatch.setattr(machine, "find_nsys", lambda: None)
    result = CliRunner().invoke(capture, ["--tool", "nsys", str(tmp_path / "train.py")])
    assert result.exit_code == 1
    assert "nsys is neither on PATH" in result.stderr.splitlines()[-1]


def _windows(folder: Path, count: int) -> None:
    """Write what the stand-in gives: windows of one kernel each."""
    for number in range(1, count + 1):
        work = [Work(at=(number * 1000, number * 1000 + 10), call=(number * 900, number * 900 + 5))]
        nsys_db(folder / "windows" / f".{number}.sqlite", work)


@pytest.mark.parametrize("count", [1, 3])
def test_windows_become_one_file(run: Run, tmp_path: Path, count: int) -> None:
    _windows(tmp_path, count)
    written = [f".{number}.nsys-rep" for number in range(1, count + 1)]
    result = run("--tool", "nsys", writes=" ".join(["windows", *written]), code=0)
    assert ("recorded 3 windows" in result.stderr) == (count == 3)
    found = parse_file(tmp_path / "net.sqlite")
    assert found.numpy("window", 0).tolist() == [*range(count)]
    names = {path.name for path in tmp_path.glob("net.*")}
    reports = {"net.nsys-rep"} if count == 1 else {f"net{name}" for name in written}
    assert names == {"net.sqlite", *reports}


@pytest.mark.long
@pytest.mark.parametrize(("writes", "first"), [("windows gave-way", 2), ("windows", 1)])
def test_the_scripts_range_replaces_what_was_recorded_before(
    run: Run, tmp_path: Path, writes: str, first: int
) -> None:
    _windows(tmp_path, 2)
    run("--tool", "nsys", text=RANGE, writes=writes, code=0)
    found = parse_file(tmp_path / "net.sqlite").numpy("start")
    assert len(found) == 3 - first
    assert found[0] == first * 1000
    assert [path.name for path in tmp_path.glob("net*")] == ["net.sqlite"]


def test_windows_that_cannot_be_joined(run: Run, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "windows" / f".{number}.sqlite").write_text("no database")
    result = run("--tool", "nsys", writes="windows", code=1)
    assert "its windows are in" in result.stderr
    assert sorted(path.name for path in tmp_path.glob("net*")) == ["net.1.sqlite", "net.2.sqlite"]


ENDED = "import os, signal, sys; os.kill(int(sys.argv[-1]), signal.{}); signal.pause()"


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_the_script_and_keeps_what_was_recorded(
    run: Run, tmp_path: Path, name: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent to the command alone, as by a job manager: the script gets it, nsys does not."""
    monkeypatch.setattr(profiler_process, "_is_in_foreground", lambda: False)
    text = ENDED.replace("int(sys.argv[-1])", str(os.getpid())).format(name)
    run("--tool", "nsys", text=text, code=code)
    assert (tmp_path / "net.sqlite").exists()


def test_other_files_have_no_graphs(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    for file in (tmp_path / "text", tmp_path / "absent"):
        assert (nsys_capture.launches(file), nsys_capture.count_unseen_kernels(file)) == (0, 0)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("knows", "offered", "words"),
    [
        ("--trace=", "", "this nsys cannot sample them"),
        ("--gpu-metrics-device=", "Insufficient privilege, see ...ERR_NVGPUCTRPERM", "only root"),
        ("--gpu-metrics-device=", "None of the installed GPUs are supported", "Turing and later"),
    ],
)
def test_where_metrics_cannot_be_sampled_the_rest_is_captured(
    knows: str, offered: str, words: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nsys would exit at once, so they are not requested, and a line says why."""
    monkeypatch.setenv("KNOWS", knows)
    monkeypatch.setenv("METRICS", offered)
    result = run("--tool", "nsys", "--metrics", code=0)
    assert words in result.stderr
    assert not [arg for arg in seen(tmp_path) if arg.startswith("--gpu-metrics")]
