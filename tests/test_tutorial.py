"""The tutorial, run from nothing, is true."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

import pyprof
from tests import forks
from tests.programs import TOP

PAGE = (TOP / "docs" / "tutorial.md").read_text("utf-8")
LINES = re.findall(r"^<!-- measured.* -->\n```console\n\$ (.*)\n", PAGE, re.MULTILINE)
CODE = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_code_that_is_shown_is_that_of_the_scripts() -> None:
    for code, name in zip(CODE, ("slow", "fast"), strict=True):
        script = (TOP / "examples" / f"{name}.py").read_text("utf-8")
        lines = [line.strip() for line in code.splitlines()]
        assert "\n".join(lines) in "\n".join(line.strip() for line in script.splitlines())


def test_the_lines_that_are_named_are_those_of_the_loop() -> None:
    lines = (TOP / "examples" / "slow.py").read_text("utf-8").splitlines()
    words = [line.split()[0] for line in lines[29:31]]
    assert words == ["scores", "heads.append(scores.softmax(-1)"]


def test_predicted_and_real_gains_are_those_of_the_samples() -> None:
    gains = [float(ms) for ms in re.findall(r"^up to (\S+) ms ", PAGE, re.MULTILINE)]
    (change,) = re.findall(r"^median step .* -(\S+) ms ", PAGE, re.MULTILINE)
    promised = re.findall(r"promised at most (\S+) ms a step.*\nstep lost (\S+) ms", PAGE)
    assert promised == [(f"{sum(gains):.1f}", change)]


@pytest.mark.long
def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    shutil.copytree(TOP / "examples", tmp_path / "examples")
    said = {}
    for line in LINES:
        done = forks.python("-m", *shlex.split(line), cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        said[line] = done.stdout
    assert len(said) == 7
    outputs = list(said.values())
    assert outputs[0].splitlines()[0] == outputs[3].splitlines()[0] == "loss 1.9753"
    assert "5 by pyprof.step" in outputs[0]
    slow, fast = (pyprof.load(tmp_path / f"{name}.pt.trace.json.gz") for name in ("slow", "fast"))
    time = slow.groupby("line")["sil"].sum().sort_values(ascending=False)
    assert {"30", "31"} <= {line[-2:] for line in time.index[:3]}  # by a busy machine's times
    ops = slow[slow["dir"] != "optim"]["dtypes"].dropna()
    dtypes = {dtype for row in ops for dtype in row if "float" in dtype}
    assert dtypes == {"float64"}
    assert len(fast) < 0.4 * len(slow)
    assert fast["bytes"].sum() < 0.2 * slow["bytes"].sum()
    assert fast["flops"].sum() == pytest.approx(slow["flops"].sum(), rel=0.01)
    assert (tmp_path / "fast.html").is_file()
