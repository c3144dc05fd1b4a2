"""The recipes of CONTRIBUTING.md work as written, in a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from tests.analysis.captured import capture
from tests.programs import TOP, generate

pytestmark = pytest.mark.slow  # each copies the package

PAGE = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES: list[tuple[str, str]] = re.findall(
    r"^### (An? [^\n]+)\n.*?^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(TOP / "pyprof", tmp_path / "pyprof")
    return tmp_path


def _recipe(name: str) -> str:
    return next(text for title, text in RECIPES if title == name)


def _run(folder: Path, *arguments: str) -> str:
    """Run Python on the copied package; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_kind_of_addition_has_a_recipe() -> None:
    assert [name for name, _ in RECIPES] == [
        *("An op", "A column", "A report", "An export format", "An advice rule"),
        *("A fact of the summary", "A change to try", "A section of the page", "A capture format"),
    ]


def test_an_op_is_one_file(copy: Path) -> None:
    (copy / "pyprof/ops/recipe.py").write_text(_recipe("An op"), encoding="utf-8")
    code = (
        "from pyprof import ops; from pyprof.ops.recipe import _X; from pyprof.marker import Call\n"
        "found = ops.cost(Call('Tensor', 'rotate_half', (_X, _X))); print(found.flops, found.bytes)"
    )
    assert _run(copy, "-c", code) == "18 36\n"


def test_a_column_is_one_entry(copy: Path) -> None:
    columns = copy / "pyprof/prof/columns/standard.py"
    before, end, after = columns.read_text("utf-8").partition("\n)  # fmt: skip\n")
    entry = indent(_recipe("A column").rstrip(), "    ")
    columns.write_text(f"{before}\n{entry},{end}{after}", encoding="utf-8")
    truth = generate(copy / "net.sqlite", "--kernels", "1")
    assert "  ms  " in _run(copy, "-m", "pyprof.prof", "--help")
    lines = _run(copy, "-m", "pyprof.prof", "--csv", "-c", "ms", "net.sqlite").splitlines()
    total_ms = sum(float(line.strip('"')) for line in lines[1:])
    assert lines[0] == '"Time(ms)"'
    assert total_ms == pytest.approx(truth["gpu_ns"] / 1e6)


def test_a_report_is_one_file(copy: Path) -> None:
    (copy / "pyprof/commands/totals.py").write_text(_recipe("A report"), encoding="utf-8")
    truth = generate(copy / "net.sqlite", "--kernels", "1")
    assert "  totals  " in _run(copy, "-m", "pyprof", "--help")
    found = json.loads(_run(copy, "-m", "pyprof", "totals", "net.sqlite"))
    assert found == {"kernels": truth["activities"], "ns": truth["gpu_ns"]}


def test_an_export_format_is_one_file(copy: Path) -> None:
    (copy / "pyprof/export/as_tsv.py").write_text(_recipe("An export format"), encoding="utf-8")
    truth = generate(copy / "net.sqlite", "--kernels", "1")
    assert " .tsv  " in _run(copy, "-m", "pyprof", "export", "--help")
    _run(copy, "-m", "pyprof", "export", "net.sqlite", "-o", "net.tsv")
    lines = (copy / "net.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == truth["activities"]
    assert sum(int(line.split("\t")[2]) for line in lines) == truth["gpu_ns"]


def test_an_advice_rule_is_one_file(copy: Path) -> None:
    rules = copy / "pyprof/analysis/advice"
    (rules / "recipe.py").write_text(_recipe("An advice rule"), encoding="utf-8")
    capture(copy / "net.sqlite")
    summary = json.loads(_run(copy, "-m", "pyprof", "summary", "--json", "net.sqlite"))
    advice = next(each for each in summary["advice"] if each["title"] == "data is copied")
    assert advice["action"] == "keep it on the GPU"
    assert [each["count"] for each in advice["evidence"]] == [1]


def test_a_fact_of_the_summary_is_one_file(copy: Path) -> None:
    facts = copy / "pyprof/analysis/summary/facts"
    (facts / "recipe.py").write_text(_recipe("A fact of the summary"), encoding="utf-8")
    capture(copy / "net.sqlite")
    meaning = "Longest time of a kernel, copy or fill on the GPU."
    assert f"Longest   300 ns: {meaning}\n" in _run(copy, "-m", "pyprof", "summary", "net.sqlite")
    summary = json.loads(_run(copy, "-m", "pyprof", "summary", "--json", "net.sqlite"))
    told = {"name": "recipe", "label": "Longest", "value": 300, "unit": "ns", "meaning": meaning}
    assert told in summary["facts"]
    _run(copy, "-m", "pyprof", "report", "net.sqlite", "-o", "net.html")
    assert f"300 ns: {meaning}" in (copy / "net.html").read_text(encoding="utf-8")


def test_a_change_to_try_is_one_file(copy: Path) -> None:
    pytest.importorskip("torch")
    changes = copy / "pyprof/trial/changes"
    (changes / "recipe.py").write_text(_recipe("A change to try"), encoding="utf-8")
    assert "Let a CPU take denormal" in _run(copy, "-m", "pyprof", "try", "--list")
    (copy / "a.py").write_text("import torch\nprint(torch.tensor(1e-40) * 1 == 0)\n")
    code = (
        "from pathlib import Path; from pyprof.trial.change import parse\n"
        "from pyprof.trial.run_files import RunRequest\n"
        "RunRequest(name='a.py', args=(), module=False, changes=(parse('flush-denormal'),),\n"
        "           steps=0, seed=True, mode='time', result='r.json').write(Path('q.json'))"
    )
    _run(copy, "-c", code)
    assert _run(copy, "-m", "pyprof.trial.script.child", "q.json") == "tensor(True)\n"


def test_a_section_of_the_page_is_one_file(copy: Path) -> None:
    parts = copy / "pyprof/render/page/parts/totals"
    (parts / "in_words.py").write_text(_recipe("A section of the page"), encoding="utf-8")
    capture(copy / "net.sqlite")
    _run(copy, "-m", "pyprof", "report", "net.sqlite", "-o", "net.html")
    page = (copy / "net.html").read_text(encoding="utf-8")
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections[sections.index("in_words") - 1] == "summary"
    assert '<a href="#in_words">In words</a>' in page
    assert "<p>relu took 200 ns.</p>" in page


def test_a_capture_format_is_one_file(copy: Path) -> None:
    (copy / "pyprof/readers/stopwatch.py").write_text(_recipe("A capture format"), encoding="utf-8")
    (copy / "net.txt").write_text("stopwatch 1\n5 9 second\n1 4 void first<int>(int)\n")
    lines = _run(copy, "-m", "pyprof.parse", "net.txt").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["kShortName"], row["kDuration"]) for row in rows] == [("first", 3), ("second", 4)]
    _run(copy, "-m", "pyprof.parse", "net.txt", "-o", "set/")
    assert (copy / "set" / "rank=0" / "part-0.parquet").is_file()
