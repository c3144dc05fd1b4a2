"""Rewrite the parts of the documents that follow from the code: tables of columns, sample output.

python docs/readme.py           rewrite
python docs/readme.py --check   only say whether it is up to date; exit code 1 where not
python docs/readme.py --measure rewrite the tutorial, whose figures are this machine's
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pyprof.answers import json_schema
from pyprof.frame import meanings
from pyprof.prof.columns.standard import COLUMNS

TOP = Path(__file__).resolve().parents[1]
README = TOP / "README.md"
FRAME = TOP / "docs" / "frame.md"
SCHEMA = TOP / "pyprof" / "answers" / json_schema.FILE
TUTORIAL = TOP / "docs" / "tutorial.md"
COMMAND = "$ pyprof "

_COLUMNS = re.compile(r"(?<=<!-- columns -->\n).*?(?=<!-- end -->)", re.DOTALL)
_SAMPLE = re.compile(r"(?<=<!-- run -->\n```console\n)(?P<line>\$ [^\n]*\n).*?(?=```)", re.DOTALL)
_MEASURED = re.compile(_SAMPLE.pattern.replace("run", "measured"), re.DOTALL)
_DEMO = ["--kernels", "30"]  # one step


def columns() -> str:
    """Give the table of all columns, in Markdown."""
    rows = [f"| `{column.name}` | {column.help} |\n" for column in COLUMNS.values()]
    return "".join(["| column | meaning |\n", "|---|---|\n", *rows])


def frame() -> str:
    """Give the table of the columns of `pyprof.load`, in Markdown."""
    rows = [f"| `{name}` | {dtype} | {unit} | {text} |\n" for name, dtype, unit, text in meanings()]
    return "".join(["| column | dtype | unit | meaning |\n", "|---|---|---|---|\n", *rows])


def sample(line: str, folder: Path) -> str:
    """Run a line of the README in a folder that holds the demo; give what it prints to stdout."""
    command = [sys.executable, "-m", "pyprof", *shlex.split(line.removeprefix(COMMAND))]
    search = os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(  # noqa: S603 - a line of our own README
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search, "COLUMNS": "80", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "".join(f"{text.rstrip()}\n" for text in done.stdout.splitlines())


def make_demo(folder: Path) -> None:
    """Make what `make demo` makes, in `folder`/demo."""
    generator = [sys.executable, str(TOP / "benchmarks" / "generate.py"), "demo/net.sqlite", *_DEMO]
    subprocess.run(generator, cwd=folder, check=True, capture_output=True)  # noqa: S603 - ours
    sample("$ pyprof parse demo/net.sqlite -o demo/net.dict", folder)


def rewritten(text: str) -> str:
    """Give the README's text as the code has it now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_demo(folder)
        text = _SAMPLE.sub(lambda m: m["line"] + sample(m["line"], folder), text)
    return _COLUMNS.sub(lambda _: columns(), text)


def measured(text: str) -> str:
    """Give the tutorial's text with what its commands print now, in their order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(TOP / "examples", folder / "examples")
        return _MEASURED.sub(lambda m: m["line"] + sample(m["line"], folder), text)


def main() -> int:
    """Rewrite or check the documents."""
    if "--measure" in sys.argv[1:]:
        TUTORIAL.write_text(measured(TUTORIAL.read_text("utf-8")), encoding="utf-8")
        return 0
    before = {page: page.read_text(encoding="utf-8") for page in (README, FRAME, SCHEMA)}
    after = {
        README: rewritten(before[README]),
        FRAME: _COLUMNS.sub(lambda _: frame(), before[FRAME]),
        SCHEMA: json_schema.spelt(),
    }
    old = [page for page in before if before[page] != after[page]]
    for page in old:
        if "--check" in sys.argv[1:]:
            print(f"{page.name} is out of date; run `make docs`", file=sys.stderr)
        else:
            page.write_text(after[page], encoding="utf-8")
    return int("--check" in sys.argv[1:] and bool(old))


if __name__ == "__main__":
    sys.exit(main())
