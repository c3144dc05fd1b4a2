"""Source is shown from the user's folder, and from no other place."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from pyprof import export
from pyprof.__main__ import main, names
from pyprof.inputs.user_source import Sources, read
from pyprof.marker import encode_trace
from tests.analysis.captured import WITH_MEMORY, op
from tests.builders import Range, Work, nsys_db
from tests.commands import refused, run
from tests.known import known

PRIVATE = "NOBODYS_BUSINESS"
PRIVATE_LINE = f"{PRIVATE} = 1\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with what is private, beside the project that is the current folder."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (tmp_path / "home" / "settings.py").write_text(PRIVATE_LINE)
    monkeypatch.chdir(project)
    return tmp_path / "home"


def naming(*files: object) -> Path:
    """Return a capture, in the current folder, whose ops were called at line 1 of files."""
    times = range(1000, 1000 + 100 * len(files), 100)
    return nsys_db(
        Path("net.sqlite"),
        [Work("k", (at, at + 50), (at - 900, at - 890)) for at in times],
        [
            Range(text, (at - 910, at - 880))
            for at, file in zip(times, files, strict=True)
            for text in (encode_trace([f"{file}:1"]), op("exp", 16, 8))
        ],
        WITH_MEMORY,
    )


def _link(place: Path, secret: Path) -> str:
    place.symlink_to(secret)
    return "link.py"


def _link_to_key(place: Path, secret: Path) -> str:
    return _link(place, secret.rename(secret.with_name("key")))


def _linked_folder(place: Path, secret: Path) -> str:
    place.with_name("there").symlink_to(secret.parent)
    return "there/settings.py"


OUTSIDE: dict[str, Callable[[Path, Path], object]] = {
    "its own path": lambda _, secret: secret,
    "a relative path": lambda *_: "../settings.py",
    "a way round": lambda place, _: f"{place.parent}/../settings.py",
    "a link": _link,
    "a linked folder": _linked_folder,
    "the end of a link's path": lambda place, secret: f"/x/y/{_link(place, secret)}",
    "a link to what is not a source": _link_to_key,
    "another host": lambda _, secret: f"/{secret}",
    "a UNC path": lambda *_: r"\\host\share\settings.py",
    "a device path": lambda *_: r"\\?\C:\settings.py",
    "a process": lambda _, secret: f"/proc/self/root{secret}",
}  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.parametrize("way", OUTSIDE)
@pytest.mark.parametrize(
    "given",
    [pytest.param([], id="", marks=pytest.mark.slow), pytest.param(["--source", "."], id="source")],
)
def test_no_path_leads_out_of_the_folder(way: str, given: list[str], home: Path) -> None:
    net = naming(OUTSIDE[way](home / "project" / "link.py", home / "settings.py"))
    assert PRIVATE not in run("lines", *given, net).stdout
    assert run("export", *given, net, "-o", "net.prof").code == 0
    assert PRIVATE.encode() not in Path("net.prof").read_bytes()


@pytest.mark.slow
def test_source_of_the_current_folder_is_shown_on_stdout_only(home: Path) -> None:
    """Files, which may be sent to others, need `--source`."""
    net = naming("train.py", home / "project" / "other.py", "/somewhere/else/deep/model.py")
    for name in ("train", "other", "deep/model"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(f"{name}.py").write_text(f"{name.upper()} = 1\n")
    shown = run("lines", net).stdout
    assert [name in shown for name in ("TRAIN = 1", "OTHER = 1", "MODEL = 1")] == [True] * 3
    for given in ([], ["--source", "."]):
        assert run("lines", *given, net, "-o", "lines.txt").code == 0
        assert ("TRAIN = 1" in Path("lines.txt").read_text()) == bool(given)
        assert ("files include source only if" in Path("lines.txt").read_text()) != bool(given)


def _targets() -> list[tuple[str, str]]:
    """Return each command that takes captures and writes a file, with each form of it."""
    suffixes = {"export": [s for form in export.FORMATS for s in form.suffixes],
                "roofline": [".html", ".svg"], "diff": [".txt", ".md", ".csv", ".html", ".json"],
                "ranks": [".txt", ".csv", ".json"], "summary": [".txt", ".json"],
                "lines": [".txt", ".json"], "prof": [".txt", ".csv", ".json"],
                "parse": [".dict", ".parquet"], "report": [".html"]}  # fmt: skip
    written = [
        name
        for name in names()
        if name not in {"capture", "run", "try", "peaks", "doctor", "mcp", "completion"}
    ]
    return [(name, suffix) for name in written for suffix in suffixes.get(name, [".txt"])]


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        pytest.param(
            name, suffix, marks=() if suffix in (".html", ".prof", ".txt") else pytest.mark.long
        )
        for name, suffix in _targets()
    ],
)
def test_no_file_holds_source_without_the_option(name: str, suffix: str, home: Path) -> None:
    if suffix in {".html", ".svg"} and name in {"report", "roofline", "diff"}:
        pytest.importorskip("matplotlib")
    Path("train.py").write_text(PRIVATE_LINE)
    net = naming("train.py", home / "settings.py", home / "project" / "train.py")
    command = known(main.get_command(click.Context(main), name))
    files = [net for param in command.params if isinstance(param, click.Argument)]
    done = run(name, *files, "-o", f"out{suffix}")
    assert done.code == 0, done.stderr
    assert PRIVATE.encode() not in Path(f"out{suffix}").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
def test_only_regular_files_are_opened(home: Path) -> None:
    """Reading a FIFO could wait forever."""
    os.mkfifo("pipe.py")
    Path("folder.py").mkdir()
    Path("device.py").symlink_to("/dev/zero")
    net = naming(
        "pipe.py", "folder.py", "device.py", "/dev/zero.py", "a\x00b.py", "n" * 5000 + ".py"
    )
    assert run("lines", net).code == 0
    assert run("export", "--source", home / "project", net, "-o", "net.prof").code == 0
    assert read(Path("pipe.py")) is None
    assert read(Path("device.py")) is None


def test_a_huge_file_is_not_a_source(home: Path) -> None:
    """Its lines would fill the memory."""
    del home
    with Path("huge.py").open("wb") as file:
        file.truncate(1 << 40)
    assert read(Path("huge.py")) is None


def test_lines_are_counted_as_python_counts_them(home: Path) -> None:
    del home
    Path("a.py").write_bytes(b"# coding: latin-1\r\n\x0cx = '\xe9'\n\ty\n")
    assert read(Path("a.py")) == ["# coding: latin-1", "\x0cx = '\u00e9'", "        y"]
    Path("a.py").write_bytes(b"")
    assert read(Path("a.py")) == []


def test_a_path_below_the_folder_is_that_file(home: Path) -> None:
    for folder in ("", "a", "b"):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "model.py").touch()
    linked = home / "linked"
    linked.symlink_to(home / "project")
    for source in (Path(), home / "project", linked):
        found = Sources(source)
        for path in ("model.py", home / "project" / "model.py"):
            assert found.find(str(path)) == home / "project" / "model.py"
        assert found.find("/elsewhere/b/model.py") == home / "project" / "b" / "model.py"
        assert found.find("/elsewhere/c/model.py") is None
    assert Sources(linked).find(str(linked / "model.py")) == home / "project" / "model.py"


def test_the_source_is_never_an_output(home: Path) -> None:
    del home
    Path("train.py").write_text("x = 1\n")
    refused("lines", "--source", ".", naming("train.py"), "-o", "train.py")
    assert Path("train.py").read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/elsewhere/one/model.py", "one/model.py"),
        (r"C:\work\two\model.py", "two/model.py"),
        ("/elsewhere/three/model.py", None),
        ("only.py", "one/only.py"),
        ("/elsewhere/two/only.py", None),
        ("/elsewhere/three/here.py", "here.py"),
        ("/etc/passwd", None),
        ("", None),
    ],
)
def test_files_are_found_by_the_end_of_their_path(
    path: str, expected: str | None, tmp_path: Path
) -> None:
    """The longest match counts; none if several are equal, or if only the name matches."""
    for name in ("one/model.py", "two/model.py", "one/only.py", "here.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert Sources(tmp_path).find(path) == (tmp_path / expected if expected else None)
