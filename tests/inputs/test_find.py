"""Sources of every kind become captures, in natural order."""

import os
import sys
from pathlib import Path

import pytest

from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs.files import files_of
from pyprof.inputs.find import fetch, find, natural, only
from tests.builders import Work, nsys_db
from tests.known import raising
from tests.readers.kineto_json import kernel, text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("net.rank10.sqlite", "net.rank9.sqlite", "net.rank9.nsys-rep", ".hidden.sqlite"):
        nsys_db(tmp_path / name, [Work()])
    (tmp_path / "trace.json").write_text(text([kernel(1, 2)]))
    (tmp_path / "no-suffix").write_text(text([kernel(1, 2)]))
    (tmp_path / "cut.json").write_bytes(b"")
    (tmp_path / "config.json").write_text('{"batch": 8}')
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "net.dict").write_text("{}")
    (tmp_path / "deeper").mkdir()
    nsys_db(tmp_path / "deeper" / "net.rank1.sqlite", [Work()])
    return tmp_path


def _names(found: list[str]) -> list[str]:
    return [path.replace("\\", "/").rsplit("/", 1)[-1] for path in found]


def test_reports_of_windows_are_in_the_export_of_all(tmp_path: Path) -> None:
    """`pyprof capture` leaves NAME.sqlite with NAME.1.nsys-rep, NAME.2.nsys-rep."""
    for name in ("net.rank0.sqlite", "net.rank0.1.nsys-rep", "net.rank0.12.nsys-rep",
                 "net.rank1.3.nsys-rep"):  # fmt: skip
        nsys_db(tmp_path / name, [Work()])
    assert _names(find([str(tmp_path)])) == ["net.rank0.sqlite", "net.rank1.3.nsys-rep"]


def test_a_folders_captures_are_found(folder: Path) -> None:
    found = find([str(folder)])
    assert all(Path(path).is_absolute() for path in found)
    assert _names(found) == [
        "cut.json", "net.rank9.sqlite", "net.rank10.sqlite", "no-suffix", "trace.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.sqlite", ["net.rank9.sqlite", "net.rank10.sqlite"]),
        ("net.*", ["net.dict", "net.rank9.nsys-rep", "net.rank9.sqlite", "net.rank10.sqlite"]),
        ("**/*.sqlite", ["net.rank1.sqlite", "net.rank9.sqlite", "net.rank10.sqlite"]),
        ("deep*", ["net.rank1.sqlite"]),
        ("*.{sqlite,json}", None),  # a shell's, not a glob's
    ],
)
def test_a_glob_finds_captures_records_and_folders(
    folder: Path, pattern: str, names: list[str] | None
) -> None:
    if names is None:
        with pytest.raises(CaptureError, match="matches no capture; check the pattern"):
            find([str(folder / pattern)])
    else:
        assert _names(find([str(folder / pattern)])) == names


def test_an_existing_name_with_glob_characters_is_not_a_glob(tmp_path: Path) -> None:
    nsys_db(tmp_path / "net[1].sqlite", [Work()])
    assert _names(find([str(tmp_path / "net[1].sqlite")])) == ["net[1].sqlite"]


def test_a_datasets_ranks_are_its_captures(tmp_path: Path) -> None:
    for rank in (10, 9):
        (tmp_path / f"rank={rank}").mkdir()
        for name in ("part-0.parquet", ".part-0.parquet.x1", "_SUCCESS", "_common.parquet"):
            (tmp_path / f"rank={rank}" / name).touch()
    assert find([str(tmp_path)]) == [
        str(tmp_path / f"rank={rank}" / "part-0.parquet") for rank in (9, 10)
    ]
    assert find([str(tmp_path / "rank=9")]) == [str(tmp_path / "rank=9" / "part-0.parquet")]


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (["none.sqlite"], "none.sqlite: no such file; check the path"),
        (["empty"], "empty: is a folder without captures; name the captures"),
        (["memory"], "no captures; to see them: pyprof memory memory"),
        (["a.sqlite", "*.sqlite"], "a.sqlite: given twice; name each capture once"),
        (["a.sqlite", "empty/../a.sqlite"], "a.sqlite: given twice"),
        (["nosuch://a"], "nosuch://a: Protocol not known: nosuch"),
        (["simplecache::memory://none/a.sqlite"], "nested URLs are not supported; copy"),
        (["memory://none/a.sqlite"], "memory://none/a.sqlite: no such file"),
        ([], "no captures given; name files, a folder or a glob"),
        ([""], "the name of a capture is empty; check the path"),
        (["-", "a.sqlite"], "-: captures and sets cannot be read from stdin; save to a file"),
    ],
)
def test_a_source_without_captures_is_named(sources: list[str], words: str, here: Path) -> None:
    pytest.importorskip("fsspec")
    (here / "empty").mkdir()
    (here / "memory").mkdir()
    (here / "memory" / "rank0.pickle").touch()
    nsys_db(here / "a.sqlite", [Work()])
    with pytest.raises(PyprofError) as error:
        find(sources)
    assert words in str(error.value)


def test_an_unreadable_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(Path, "iterdir", raising(PermissionError(13, "Permission denied")))
    with pytest.raises(CaptureError, match="Permission denied; check the path and its permissions"):
        find([str(tmp_path)])


@pytest.fixture
def urls(folder: Path) -> dict[str, str]:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    for path in folder.rglob("*.*"):
        memory.pipe(f"/captures/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return {"memory": "memory://captures", "file": folder.as_uri()}


@pytest.mark.parametrize("protocol", ["memory", "file"])
def test_urls_are_found_and_fetched(protocol: str, urls: dict[str, str], folder: Path) -> None:
    url = urls[protocol]
    names = ["net.rank9.sqlite", "net.rank10.sqlite"]
    assert [name for name in _names(find([url])) if name.startswith("net")] == names
    found = find([url + "/*.sqlite"])
    assert _names(found) == names
    with fetch(found[0]) as path:
        assert path.name == names[0]
        assert path.read_bytes() == (folder / names[0]).read_bytes()
    assert path.exists() == (protocol == "file")


def test_an_error_about_a_copy_names_the_url(urls: dict[str, str]) -> None:
    """The user does not know the copy."""
    (url,) = find([urls["memory"] + "/cut.json"])
    with pytest.raises(CaptureError) as error, fetch(url) as path:
        raise CaptureError(f"{path}: is empty")
    assert str(error.value) == f"{url}: is empty"


@pytest.mark.parametrize("protocol", ["path", "memory"])
def test_the_stamp_changes_with_the_capture(
    protocol: str, urls: dict[str, str], folder: Path
) -> None:
    place = str(folder / "trace.json")
    url = place if protocol == "path" else urls["memory"] + "/trace.json"
    before = files_of(url).stamp(url)
    assert files_of(url).stamp(url) == before
    Path(place).write_text(text([kernel(1, 2), kernel(2, 9)]))
    if protocol == "memory":
        pytest.importorskip("fsspec").filesystem("memory").put(place, "/captures/trace.json")
    assert files_of(url).stamp(url) != before


def test_one_capture_is_not_a_set(folder: Path) -> None:
    assert only([str(folder / "trace.json")]) == str(folder / "trace.json")
    assert only([str(folder / "deeper")]) == str(folder / "deeper" / "net.rank1.sqlite")
    assert only([str(folder)]) is None


def test_names_are_sorted_naturally() -> None:
    longest = f"memory://{'9' * 5000}"  # a URL may be longer than any file name
    names = [longest, "b2/x10", "b2/x9", "b10/x1", "a", "b2"]
    assert natural(reversed(names)) == ["a", "b2", "b2/x9", "b2/x10", "b10/x1", longest]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_in_a_folder_is_not_a_capture(folder: Path) -> None:
    """Reading it could wait forever."""
    before = find([str(folder)])
    os.mkfifo(folder / "pipe.sqlite")
    os.mkfifo(folder / "pipe.json")
    assert find([str(folder)]) == before
    with pytest.raises(CaptureError, match="matches no capture"):
        find([f"{folder}/pipe*"])
