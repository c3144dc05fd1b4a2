"""Unusable input ends in one line that says what it is and what to do."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import Range, Work, nsys_db, nvprof_db, table, write_tables
from tests.commands import refused, run

WORK = [Work(call=(1, 2)), Work(kind="memcpy", at=(1200, 1300), call=(3, 4))]


def _bytes(data: bytes, name: str = "net.sqlite") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(data)
        return path

    return make


def _cut(folder: Path) -> Path:
    path = nsys_db(folder / "net.sqlite", WORK * 200, [Range("x" * 50, (0, 9))] * 200)
    os.truncate(path, path.stat().st_size // 2)
    return path


def _zeroed_tail(folder: Path) -> Path:
    path = nsys_db(folder / "net.sqlite", WORK * 200)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))
    return path


def _foreign(name: str, *columns: str) -> Callable[[Path], Path]:
    """Make a database with one table, of one row."""
    tables = {name: table(columns, ("x",) * len(columns))}
    return lambda folder: write_tables(folder / "net.sqlite", tables)


def _directory(folder: Path) -> Path:
    path = folder / "net.sqlite"
    path.mkdir()
    return path


BAD = {
    # what it is: (how it is made, words of the message)
    "an empty file": (_bytes(b""), ["empty", "capture again"]),
    "a text file": (_bytes(b"hello\nworld\n"), ["a text file", "expected an nsys export"]),
    "text without a capture's words": (_bytes(b"\xef\xbb\xbfHost,User\n"), ["a text file"]),
    "a binary file": (_bytes(b"\x7fELF\xff\xfe" * 99), ["an unknown binary file", "expected"]),
    "a lone SQLite header": (_bytes(b"SQLite format 3\0"), ["SQLite", "export"]),
    "an SQLite file cut in half": (_cut, ["damaged or truncated", "export it again"]),
    "a file of zeros": (_bytes(bytes(8192)), ["zeros", "interrupted"]),
    "an SQLite file whose tail is zeros": (_zeroed_tail, ["damaged or truncated", "again"]),
    "another program's SQLite file": (
        _foreign("moz_places", "url"), ["without a profiler's tables", "expected"]),
    "a table that happens to be called StringIds": (
        _foreign("StringIds", "id", "value"), ["without a profiler's"]),
    "a JSON file": (_bytes(b'{"name": "x"}', "a.json"), ["expected"]),
    "JSON that ends early": (_bytes(b'{"traceEvents": [{"ph": "X"', "a.json"), ["a.json"]),
    "compressed text": (_bytes(gzip.compress(b"hello"), "a.json.gz"), ["a.json.gz"]),
    "compressed data that ends early": (_bytes(gzip.compress(b"{" * 999)[:20]), ["net.sqlite"]),
    "a folder": (_directory, ["is a folder", "name the capture"]),
    "no file": (lambda folder: folder / "none.sqlite", ["no such file", "check the path"]),
    "an nsys capture without GPU work": (
        lambda folder: nsys_db(folder / "net.sqlite", [], [Range("x", (1, 2))]),
        ["no GPU work", "1 range", "nsys profile -t cuda,nvtx"],
    ),
    "an nvprof capture without GPU work": (
        lambda folder: nvprof_db(folder / "net.sql"), ["no GPU work", "nvprof"]),
}  # fmt: skip


def _check(words: list[str], path: Path, *arguments: str | Path) -> None:
    said = refused(*arguments)
    for word in [str(path), *words]:
        assert word in said


@pytest.mark.parametrize(
    "data", [b'{"kShortName": "k"}\n', b"{'kShortName': 'k'}", b"PAR1\x15\xff"]
)
def test_parse_recognises_its_own_records(data: bytes, tmp_path: Path) -> None:
    path = _bytes(data)(tmp_path)
    _check(["pyprof parse", "other commands read"], path, "parse", path)


COMMANDS = ["parse", "parse -o out.dict", "parse -o out.parquet", "prof", "prof --csv -o out.csv",
            "prof --by op"]  # fmt: skip


@pytest.mark.few(9)
@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD)
def test_every_command_says_what_it_is_and_writes_nothing(
    make: Callable[[Path], Path], words: list[str], here: Path
) -> None:
    path = make(here)
    before = sorted(here.iterdir())
    for command in COMMANDS:
        _check(words, path, *command.split(), path)
    _check([], path, "prof", "--summary", "nvprof", path)
    assert sorted(here.iterdir()) == before


def test_a_file_without_read_permission_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    opened = Path.open

    def refuse(self: Path, *args: object, **kwargs: object) -> object:
        if self == path:
            raise PermissionError(13, "Permission denied")
        return opened(self, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)  # a test that runs as root may read anything
    _check(["Permission denied", "permissions"], path, "parse", path)


def test_a_capture_of_copies_fails_only_with_kernels_only(tmp_path: Path) -> None:
    """The message says to leave out --kernels-only."""
    path = nsys_db(tmp_path / "net.sqlite", WORK[1:], [Range("x", (1, 2))])
    assert run("parse", path).code == 0
    words = ["no kernels", "without --kernels-only"]
    _check(words, path, "parse", path, "--kernels-only")


@pytest.mark.parametrize("output", ["out.txt", "out", "out.sqlite"])
def test_an_output_of_unknown_format_is_a_usage_error(output: str, tmp_path: Path) -> None:
    done = run("parse", tmp_path / "none.sqlite", "-o", tmp_path / output)
    assert done.code == 2
    assert ".dict" in done.stderr


def test_an_output_that_cannot_be_written_ends_in_one_line(tmp_path: Path) -> None:
    path = nsys_db(tmp_path / "net.sqlite", WORK, [Range("x", (1, 2))])
    target = tmp_path / "missing" / "net.dict"
    _check(["-o"], target, "parse", path, "-o", target)
