"""docs/instrument.md works as written: a package adds a formula by its entry point."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import Range, Work, nsys_db
from tests.programs import TOP

PAGE = (TOP / "docs" / "instrument.md").read_text(encoding="utf-8")
CALL = (
    "{'mod': 'mylib', 'op': 'rotate', 'args': ["
    "{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float16'}, "
    "{'name': '', 'type': 'tensor', 'shape': (2, 3), 'dtype': 'float16'}]}"
)


def _block(section: str, language: str = "python") -> str:
    found = re.search(
        rf"^### {section}\n.*?^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE
    )
    assert found is not None
    return found[1]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "mylib_costs.py").write_text(_block("The formula"), encoding="utf-8")
    info = tmp_path / "mylib_costs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mylib-costs\nVersion: 1.0\n")
    entry = _block("The entry point", "toml").partition('"pyprof.ops"]\n')[2].replace('"', "")
    (info / "entry_points.txt").write_text(f"[pyprof.ops]\n{entry}")
    return tmp_path


def _python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join((str(folder), str(TOP)))
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def _capture(folder: Path) -> Path:
    work = [Work("rotate_kernel", (1000, 1100), (110, 120))]
    return nsys_db(folder / "net.sqlite", work, [Range(CALL, (100, 200))])


def test_the_worked_example_of_the_page_passes(package: Path) -> None:
    check = PAGE.rpartition("```python\n")[2].partition("```")[0]
    done = _python(package, "-c", check)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_kernels_of_the_op_have_its_cost(package: Path) -> None:
    net = _capture(package)
    columns = ("-m", "pyprof.prof", "--csv", "-q", "-c", "op,flops,bytes", str(net))
    done = _python(package, *columns)
    assert done.stdout.splitlines()[1] == '"rotate","126","36"', done.stderr


@pytest.mark.slow
def test_a_package_that_cannot_be_loaded_is_named(package: Path) -> None:
    (package / "mylib_costs.py").write_text("import gone_away", encoding="utf-8")
    net = _capture(package)
    done = _python(package, "-m", "pyprof.prof", "--csv", "-c", "op,flops", str(net))
    (warning,) = [line for line in done.stderr.splitlines() if "mylib" in line]
    assert done.returncode == 0
    assert "the formulas of mylib_costs cannot be loaded" in warning
    assert "gone_away" in warning
