"""Hooks of MkDocs: pages whose text lies outside of docs/ or is generated, and links between all.

The same texts are read in the repository. There a link names a file; here it leads to its page.
"""

from __future__ import annotations

import posixpath
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "docs"))

import command_pages  # noqa: E402 - beside this file
import gallery  # noqa: E402 - as above

_ELSEWHERE = {
    "README.md": "index.md",
    "docs/README.md": "questions.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""The file in the repository, and its page."""
_COPIED = ("pyprof/answers/schema.json",)
"""Files that pages link, which the site has under the same path."""
MOVED = {
    "captures": "ranks.html#a-set-of-captures",
    "counters": "capture.html#counters",
    "cuda-graphs": "capture.html#cuda-graphs",
    "efficiency": "numbers.html#efficiency",
    "gallery": "summary.html#the-report-page",
    "install": "questions.html#install",
    "it-changed-my-program": "instrument.html#it-changed-my-program",
    "many-ranks": "ranks.html",
    "mcp": "json.html#mcp-server",
    "notebook": "instrument.html#a-block-in-a-notebook-or-a-script",
    "old-scripts": "coming-from.html#nvidias-pyprof-apexpyprof",
    "own-ops": "instrument.html#costs-of-your-own-ops",
    "page": "summary.html#the-report-page",
    "performance": "formats.html#how-fast",
    "reporting-problems": "troubleshooting.html#reporting-a-problem",
    "trainers": "instrument.html#steps-and-trainers",
}
"""Where a page that no longer exists has its text now."""
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def examples() -> list[Path]:
    """Return the example scripts, each of which is a page."""
    return sorted((TOP / "examples").glob("*.py"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put pages that the navigation does not name into its last sections."""
    nav: Any = config.nav
    sections = {name: pages for entry in nav for name, pages in entry.items()}
    sections["Examples"] += [f"examples/{path.stem}.md" for path in examples()]
    named = {page for pages in sections.values() for page in pages}
    pages = {path.name for path in (TOP / "docs").glob("*.md")} - {"README.md"}
    sections["More"] += sorted(pages - named)
    config.nav = [{name: pages} for name, pages in sections.items() if pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that MkDocs does not find in docs/."""
    readme = files.get_file_from_path("README.md")
    if readme is not None:
        files.remove(readme)
    for name, page in _ELSEWHERE.items():
        text = (TOP / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    for name in _COPIED:
        files.append(File.generated(config, name, content=(TOP / name).read_bytes()))
    for path in examples():
        page = f"examples/{path.stem}.md"
        files.append(File.generated(config, page, content=_example(path)))
    for name, address in MOVED.items():
        moved = (
            f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">moved</a>'
        )
        files.append(File.generated(config, f"{name}.html", content=moved))
    files.append(File.generated(config, "commands.md", content=command_pages.markdown()))
    with tempfile.TemporaryDirectory() as folder:
        for report in gallery.reports(Path(folder)):
            made = File.generated(config, f"gallery/{report.name}", content=report.read_bytes())
            files.append(made)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:  # noqa: ANN401 - MkDocs' own
    """Let links lead to the pages of the files that they name."""
    elsewhere = {shown: name for name, shown in _ELSEWHERE.items()}
    here = elsewhere.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def linked(match: re.Match[str]) -> str:
        named = posixpath.normpath(posixpath.join(posixpath.dirname(here), match[1]))
        target = _page_of(named)
        return posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")

    text = _LINK.sub(linked, markdown)
    return gallery.with_links(text) if page.file.src_uri == "summary.md" else text


def _page_of(file: str) -> str:
    """Return the page that shows a file of the repository."""
    if file in _ELSEWHERE:
        return _ELSEWHERE[file]
    if file.rstrip("/") == "docs":
        return _ELSEWHERE["docs/README.md"]
    if file.startswith("examples/"):
        return f"{file.removesuffix('.py')}.md"
    return file.removeprefix("docs/")


def _example(path: Path) -> str:
    """Show a script, under the first line of its docstring."""
    code = path.read_text(encoding="utf-8")
    title = code.split('"""')[1].splitlines()[0].rstrip(".")
    return f"# {title}\n\n`examples/{path.name}`\n\n```python\n{code}```\n"
