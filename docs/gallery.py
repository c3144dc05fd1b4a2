"""The reports that the site has: what the commands of docs/summary.md write."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
PAGE = TOP / "docs" / "summary.md"

_BLOCK = re.compile(r"<!-- reports -->\n```console\n(.*?)```\n", re.DOTALL)
_WRITTEN = re.compile(r"-o (\S+\.html)")


def commands() -> list[str]:
    """Return the lines of the page that a shell runs, in their order."""
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


def reports(folder: Path) -> list[Path]:
    """Run the commands in a folder; return the pages that they write."""
    for line in commands():
        run(line, folder)
    return [folder / name for name in _WRITTEN.findall("\n".join(commands()))]


def run(line: str, folder: Path) -> str:
    """Run one line, of a script of this repository or of pyprof; return what it prints.

    Raises RuntimeError if it fails.
    """
    program, *arguments = shlex.split(line)
    if program == "python":
        words = [str(TOP / arguments[0]), *arguments[1:]]
    else:
        words = ["-m", program, *arguments]
    search = os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(  # noqa: S603 - a line of our own pages
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search, "COLUMNS": "80", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{line}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def with_links(page: str) -> str:
    """Put below each block a link to every report that it writes, where the site has it."""

    def linked(match: re.Match[str]) -> str:
        names = _WRITTEN.findall(match[1])
        links = ", ".join(f"[open {name}](gallery/{name})" for name in names)
        return f"{match[0]}\n{links}\n"

    return _BLOCK.sub(linked, page)
