"""The documentation as a site: its pages, their parts, and that it builds."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest

from pyprof.__main__ import names
from tests import commands
from tests.programs import TOP

DOCS = TOP / "docs"


@pytest.fixture(autouse=True)
def _docs_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))


def _module(name: str) -> Any:  # noqa: ANN401 - a module of docs/
    return pytest.importorskip(name)


@pytest.mark.slow
def test_every_command_has_a_man_page(tmp_path: Path) -> None:
    written = _module("command_pages").write(tmp_path)
    commands_of = ["pyprof", *(f"pyprof-{name}" for name in names())]
    assert {path.name for path in written} == {f"{name}.1" for name in commands_of}
    for path in written:
        text = path.read_text("utf-8")
        headings = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
        assert headings[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
        requests = set(re.findall(r"^([.'].*?)(?: |$)", text, re.MULTILINE))
        assert requests <= {".TH", ".SH", ".PP", ".TP", ".nf", ".fi"}
        assert r"\fB\-h, \-\-help\fR" in text
        assert "\b" not in text


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_man_pages_are_valid_roff(tmp_path: Path) -> None:
    written = _module("command_pages").write(tmp_path)
    command = ["groff", "-man", "-Tascii", "-P-cbou", "-ww", *map(str, written)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert re.search(r"^ +pyprof prof -w 150 net\.dict$", done.stdout, re.MULTILINE)


def test_the_page_of_commands_has_their_help() -> None:
    page = _module("command_pages").markdown()
    assert re.findall(r"^## `pyprof (.*)`$", page, re.MULTILINE) == names()
    for name in names():
        shown = commands.run(name, "--help").stdout
        options = re.findall(r"^  .*?(--[a-z-]+)", shown, re.MULTILINE)
        section = page.partition(f"## `pyprof {name}`")[2].partition("\n## ")[0]
        assert all(option in section for option in options)


INSTALL = (DOCS / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="wheels of other systems differ in size")
def test_size_of_an_installation_is_that_of_its_largest_packages() -> None:
    """Within a third, as versions differ."""
    (said,) = re.findall(r"pyarrow, pandas and NumPy are (\d+)", INSTALL)
    names = ("pyarrow", "pandas", "numpy")
    files = [Path(str(file.locate())) for name in names for file in metadata.files(name) or ()]
    size = sum(file.stat().st_size for file in files if file.is_file())
    assert size / 1e6 == pytest.approx(int(said), rel=1 / 3)


def test_extras_that_are_named_exist() -> None:
    text = (TOP / "pyproject.toml").read_text("utf-8")
    section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    extras = set(re.findall(r"^(\w+) = ", section, re.MULTILINE))
    assert set(re.findall(r"torch-pyprof\[(\w+)\]", INSTALL)) <= extras
    table = INSTALL.partition("| extra |")[2].partition("\n\n")[0]
    assert {"mcp", *re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)} >= extras


def test_the_gallery_has_a_picture_of_each_report() -> None:
    gallery = _module("gallery")
    written = re.findall(r"-o (\S+)\.html", "\n".join(gallery.commands()))
    shown = re.findall(r"\(images/(\w+)\.png\)", gallery.PAGE.read_text("utf-8"))
    assert shown == written
    for name in written:
        picture = (DOCS / "images" / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 100_000


def test_links_to_reports_are_on_the_site_only() -> None:
    gallery = _module("gallery")
    page = "<!-- reports -->\n```console\n$ pyprof report a -o b.html\n```\n"
    assert gallery.with_links(page) == f"{page}\n[open b.html](gallery/b.html)\n"


def test_links_lead_to_pages_of_the_site() -> None:
    pytest.importorskip("mkdocs")
    pages = _module("site_pages")

    def shown(text: str, page: str) -> str:
        file = SimpleNamespace(src_uri=page)
        given: str = pages.on_page_markdown(text, page=SimpleNamespace(file=file))
        return given

    assert shown("[a](docs/ranks.md#x) [b](docs/README.md)", "index.md") == (
        "[a](ranks.md#x) [b](questions.md)"
    )
    assert shown("[a](../README.md#y) [b](../examples/lenet.py)", "questions.md") == (
        "[a](index.md#y) [b](examples/lenet.md)"
    )
    assert shown("[a](https://b/c.md) [d](#e) ![f](images/g.png)", "gallery.md") == (
        "[a](https://b/c.md) [d](#e) ![f](images/g.png)"
    )


def test_every_page_is_in_the_navigation() -> None:
    pytest.importorskip("mkdocs")
    config = SimpleNamespace(nav=[{"Start": ["ranks.md"]}, {"Examples": []}, {"More": []}])
    (start, examples, more) = _module("site_pages").on_config(config).nav
    assert start == {"Start": ["ranks.md"]}
    assert "examples/lenet.md" in examples["Examples"]
    assert "capture.md" in more["More"]
    assert "ranks.md" not in more["More"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("mkdocs", "material"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=TOP, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_relative_links_lead_to_files(site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    links = {
        (path.parent / unquote(link).partition("#")[0], link)
        for path in pages
        if path.parent.name != "gallery"
        for link in re.findall(r'(?:href|src)="?([^"\s>#]+)', path.read_text("utf-8"))
        if not re.match(r"[a-z]+:", link)
    }
    assert len(links) > 50
    assert sorted(link for target, link in links if not target.exists()) == []


@pytest.mark.slow
def test_old_addresses_lead_to_headings(site: Path) -> None:
    for name, address in _module("site_pages").MOVED.items():
        page, _, anchor = address.partition("#")
        assert f"url={address}" in (site / f"{name}.html").read_text("utf-8")
        assert not anchor or f'id="{anchor}"' in (site / page).read_text("utf-8")


@pytest.mark.slow
def test_pages_of_the_site_load_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?(?:https?:)?//")
    pages = [path for path in site.rglob("*.html") if path.parent.name != "gallery"]
    assert len(pages) > 40
    assert [path.name for path in pages if loads.search(path.read_text("utf-8"))] == []


def test_packages_depend_on_the_distribution_by_its_name_on_the_index() -> None:
    """`pyprof` is another package there."""
    pages = [path.read_text("utf-8") for path in (*DOCS.glob("*.md"), TOP / "README.md")]
    text = "\n".join(pages)
    dependencies = re.findall(r'^dependencies = \["([^"]+)"', text, re.MULTILINE)
    installed = re.findall(r"pip install (pyprof)\b", text)
    assert dependencies
    assert {*dependencies, *installed} == {"torch-pyprof"}
