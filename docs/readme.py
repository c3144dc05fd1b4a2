"""Rewrite the parts of the documents that follow from the code: columns, schema, sample output.

python docs/readme.py           rewrite
python docs/readme.py --check   only say whether it is up to date; exit code 1 where not
python docs/readme.py --measure rewrite the tutorial, whose figures are this machine's
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

import gallery

from pyprof.answers import json_schema
from pyprof.frame import meanings

TOP = Path(__file__).resolve().parents[1]
README = TOP / "README.md"
PAGES = sorted((TOP / "docs").glob("*.md"))
FRAME = TOP / "docs" / "frame.md"
SCHEMA = TOP / "pyprof" / "answers" / json_schema.FILE
TUTORIAL = TOP / "docs" / "tutorial.md"
CAPTURES = TOP.parent / "shared" / "captures"
"""Real ones, which not every machine has."""

_COLUMNS = re.compile(r"(?<=<!-- columns -->\n).*?(?=<!-- end -->)", re.DOTALL)
_SAMPLE = re.compile(r"(?<=<!-- run -->\n```console\n)(?P<line>\$ [^\n]*\n).*?(?=```)", re.DOTALL)
_REAL = re.compile(
    r"(?<=<!-- real )(?P<file>\S+) -->\n```console\n(?P<line>\$ [^\n]*\n).*?(?=```)", re.DOTALL
)
_EXCERPT = re.compile(
    r"<!-- excerpt(?: of (?P<file>\S+))? -->\n```console\n(?P<line>\$ [^\n]*\n)(?P<text>.*?)```",
    re.DOTALL,
)
_MEASURED = re.compile(
    r"(?<=<!-- measured)(?P<limit>, \d+ lines)?(?P<head> -->\n```console\n)"
    r"(?P<line>\$ [^\n]*\n).*?(?=```)",
    re.DOTALL,
)
_DEMO = (
    "python benchmarks/generate.py demo/net.sqlite --kernels 30",  # a step
    "python benchmarks/generate.py demo/deeper.sqlite --kernels 60 --blocks 4",  # two steps
    "python benchmarks/generate_ranks.py demo/ranks --ranks 4 --kernels 200 --straggler 1",
    "pyprof parse demo/net.sqlite -o demo/net.dict",
)
"""What `make demo` makes, a deeper network, and four ranks."""


def frame() -> str:
    """Return the table of the columns of `pyprof.load`, in Markdown."""
    return "| column | dtype, unit | meaning |\n|---|---|---|\n" + "".join(
        f"| `{name}` | {dtype}{unit and f', {unit}'} | {text} |\n"
        for name, dtype, unit, text in meanings()
    )


def sample(line: str, folder: Path) -> str:
    """Run a line of a page in a folder that holds the demo; return what it prints to stdout."""
    output = gallery.run(line.removeprefix("$ "), folder)
    return "".join(f"{text.rstrip()}\n" for text in output.splitlines())


def sample_of(file: str, line: str, folder: Path) -> str | None:
    """Run a line whose last word is to be one of the real captures; None if it is not here."""
    if not (CAPTURES / file).is_file():
        return None
    link = folder / line.rsplit(maxsplit=1)[-1]
    link.symlink_to(CAPTURES / file)
    output = sample(line, folder)
    link.unlink()
    return output


def of_real_capture(match: re.Match[str], folder: Path) -> str:
    """Return a sample as it is now, or as it was if its capture is not on this machine."""
    output = sample_of(match["file"], match["line"], folder)
    return (
        match[0] if output is None else f"{match['file']} -->\n```console\n{match['line']}{output}"
    )


def stale_excerpts(page: Path, folder: Path) -> list[str]:
    """Return the parts of excerpts, between lines `...`, that their commands no longer print."""
    stale = []
    for match in _EXCERPT.finditer(page.read_text(encoding="utf-8")):
        line, file = match["line"], match["file"]
        output = sample_of(file, line, folder) if file else sample(line, folder)
        parts = re.split(r"^\.\.\.\n", match["text"], flags=re.MULTILINE)
        stale += [line + part for part in parts if output is not None and part not in output]
    return stale


def rewritten(page: Path, folder: Path) -> str:
    """Return a page's text with what its commands print now; those of docs/ run beside the demo."""
    place = folder if page == README else folder / "demo"
    text = _REAL.sub(lambda m: of_real_capture(m, place), page.read_text("utf-8"))
    return _SAMPLE.sub(lambda m: m["line"] + sample(m["line"], place), text)


def measured(text: str) -> str:
    """Return the tutorial's text with what its commands print now, in their order."""

    def written(match: re.Match[str]) -> str:
        lines = sample(match["line"], folder).splitlines(keepends=True)
        limit = match["limit"]
        if limit:
            lines = [*lines[: int(limit.split()[1])], "...\n"]
        return "".join((limit or "", match["head"], match["line"], *lines))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(TOP / "examples", folder / "examples")
        return _MEASURED.sub(written, text)


def main() -> int:
    """Rewrite or check the documents."""
    if "--measure" in sys.argv[1:]:
        TUTORIAL.write_text(measured(TUTORIAL.read_text("utf-8")), encoding="utf-8")
        return 0
    before = {page: page.read_text(encoding="utf-8") for page in (README, SCHEMA, *PAGES)}
    with tempfile.TemporaryDirectory() as name:
        for line in _DEMO:
            gallery.run(line, Path(name))
        after = {page: rewritten(page, Path(name)) for page in (README, *PAGES)}
        demo = Path(name) / "demo"
        stale = stale_excerpts(README, Path(name))
        stale += [part for page in PAGES for part in stale_excerpts(page, demo)]
    after[FRAME] = _COLUMNS.sub(lambda _: frame(), after[FRAME])
    after[SCHEMA] = json_schema.format_schema()
    old = [page for page in before if before[page] != after[page]]
    for page in old:
        if "--check" in sys.argv[1:]:
            print(f"{page.name} is out of date; run `make docs`", file=sys.stderr)
        else:
            page.write_text(after[page], encoding="utf-8")
    for part in stale:
        print(f"an excerpt that is no longer printed; mend it by hand:\n{part}", file=sys.stderr)
    return int(bool(stale) or ("--check" in sys.argv[1:] and bool(old)))


if __name__ == "__main__":
    sys.exit(main())
