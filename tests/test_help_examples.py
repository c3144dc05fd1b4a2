"""The examples in every command's help, and commands of some documents, run as written."""

import json
import os
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from shutil import copy, copytree

import click
import pytest

from pyprof.__main__ import main, names
from tests import forks
from tests.allocations import built
from tests.analysis.captured import capture
from tests.capture_files.ncu import METRICS, Profiled, ncu_csv
from tests.commands import run
from tests.known import known
from tests.programs import TOP

TRAIN = """
import sys, torch
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    optimizer.zero_grad()
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
"""
RUNS_SCRIPTS = ("run", "capture", "try")
SERVES = ("mcp",)
"""Waits for a client; tests/commands/test_mcp.py is one."""
NEEDS = {"png": "matplotlib", "svg": "matplotlib", "--measure": "torch"}


def examples(name: str) -> list[str]:
    command = known(main.get_command(click.Context(main), name) if name else main)
    lines = (line.strip() for line in (command.help or "").splitlines())
    return [line for line in lines if line.startswith(("pyprof ", "torchrun "))]


INPUTS = {
    *("net.sqlite", "before.sqlite", "after.sqlite"),
    *("deeper.sqlite", "eager.sqlite", "graph.sqlite"),
    *("net.dict", "net.pt.trace.json", "ncu.csv", "ranks", "ranks/", "run/", "train.py"),
    *("snapshot.pickle", "before.pickle", "after.pickle", "net.memory.pickle"),
}
"""What the folder holds, of what commands of documents read."""


def documented() -> list[str]:
    """Return the commands that stand in pages of docs/ with what they read, each once.

    Those of the tutorial are tried where it is, those for nsys and Dask with the code for them.
    """
    pages = sorted((TOP / "docs").glob("*.md"))
    texts = [page.read_text(encoding="utf-8") for page in pages if page.stem != "tutorial"]
    commands = [
        line for text in texts
        for line in re.findall(r"(?:`|^\$ )(pyprof \w+ [^`\n]*)(?:`|$)", text, re.MULTILINE)
    ]  # fmt: skip
    return [line for line in dict.fromkeys(commands) if _complete(line)]


def _complete(line: str) -> bool:
    words = {*shlex.split(line)[2:]}
    lacks = words & {"scheduler.json", "nsys", ">"}
    return bool(words & (INPUTS | {"--measure", "--help"})) and not lacks


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "project").mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "experiment.py").write_text("import torch\ntorch.set_num_threads(1)\n")
    net = capture(folder / "net.sqlite", steps=4)
    for name in ("snapshot", "before", "after", "net.memory"):
        built.write(folder / f"{name}.pickle", built.training(start_us=0))
    ncu_csv(folder / "ncu.csv", [Profiled(metrics=METRICS)])
    for name in ("ranks", "run"):
        (folder / name).mkdir()
    names = [f"{name}{rank}" for name in ("net.rank", "ranks/rank", "run/rank") for rank in (0, 1)]
    for name in ("before", "after", "deeper", "eager", "graph", *names):
        copy(net, folder / f"{name}.sqlite")
    assert run("parse", net, "-o", folder / "net.dict").code == 0
    for suffix in ("", ".gz"):
        assert run("export", net, "-o", folder / f"net.pt.trace.json{suffix}").code == 0
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def _opens_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _: True)


@pytest.fixture(autouse=True)
def _small_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyprof.gpu.peaks.microbenchmark.CPU_SIDE", 32)
    monkeypatch.setattr("pyprof.gpu.peaks.microbenchmark.CPU_COPY_BYTES", 1 << 12)


IN_DOCS = documented()
CALLED = [name for name in names() if name not in (*RUNS_SCRIPTS, *SERVES)]
IN_HELP = [line for name in CALLED for line in examples(name)]
FIRST = {next(iter(examples(name)), "") for name in CALLED}
READING = [*IN_HELP, *(line for line in IN_DOCS if line not in IN_HELP and "train.py" not in line)]


def _slow(line: str) -> bool:
    """Mark slow examples, and those that other tests run: all examples but one a command."""
    return "--workers" in line or "--measure" in line or line not in FIRST


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=[pytest.mark.long] if _slow(line) else []) for line in READING],
)
def test_an_example_runs(folder: Path, line: str) -> None:
    for word, package in NEEDS.items():
        if word in line:
            pytest.importorskip(package)
    _, *arguments = [os.path.expanduser(word) for word in shlex.split(line)]  # noqa: PTH111 - as a shell
    before = {*folder.iterdir()}
    done = run(*arguments)
    assert done.code == 0, done.stderr
    written = folder / arguments[arguments.index("-o") + 1] if "-o" in arguments else None
    assert written.stat().st_size if written else (done.stdout or {*folder.iterdir()} - before)


SHOWN = [*IN_DOCS, *(line for name in ("", *RUNS_SCRIPTS) for line in examples(name))]
COMPILES = re.compile(r"pyprof try (?!.*patch=)")
"""Tries that compile take a minute each; tests of trials have shorter ones."""
RUNNING = list(dict.fromkeys(ln for ln in SHOWN if "train.py" in ln and not COMPILES.match(ln)))


@pytest.mark.skipif(find_spec("torch") is None, reason="no torch here")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=pytest.mark.long if line != RUNNING[0] else pytest.mark.slow)
        for line in RUNNING
    ],
)
def test_an_example_with_a_script_runs(folder: Path, line: str) -> None:
    program, *arguments = shlex.split(line)
    module = {"pyprof": "pyprof", "torchrun": "torch.distributed.run"}[program]
    for name in ("net.pt.trace.json.gz", "net.memory.pickle"):  # what `capture -o net` writes
        (folder / name).unlink(missing_ok=True)
    if arguments[0] == "try":  # one round, which is enough to see it run
        arguments[1:1] = ["--rounds", "1"]
    before = {*folder.iterdir()}
    done = forks.python("-m", module, *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    if arguments[0] == "run":
        assert "Linear" in done.stdout or "linear" in done.stdout
    elif arguments[0] == "try":
        answer = json.loads((folder / "train.try" / "try.json").read_text("utf-8"))
        assert answer["baseline"]["run_count"] >= 1
        assert all(each["change"] in done.stdout for each in answer["changes"])
    else:
        made = [path for path in folder.iterdir() if path not in before]
        ranks = 2 if program == "torchrun" else 1
        assert len({path.name.partition(".")[0] for path in made}) == 1
        assert len([path for path in made if path.suffix in (".gz", ".sqlite")]) == ranks


@pytest.mark.parametrize("name", ["", *names()])
def test_every_help_has_an_example(name: str) -> None:
    assert any(f"pyprof {name}".strip() in line for line in examples(name))
