"""Reports are exported by the nsys on PATH, or the message has the command."""

import stat
import sys
from pathlib import Path

import pytest

from pyprof import readers
from pyprof.errors import CaptureError, PyprofError
from tests.builders import Range, Work, nsys_db

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")

REPORT = b"\x0a\x0bnsys report, whatever is in there"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "net.nsys-rep"
    path.write_bytes(REPORT)
    return path


def put_nsys(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    tool = folder / "nsys"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep"])
def test_a_report_is_exported_with_the_nsys_on_path(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = nsys_db(tmp_path / "ready.sqlite", [Work(call=(1, 2))], [Range("x", (0, 3))])
    report = tmp_path / f"a b{suffix}"
    report.write_bytes(REPORT)
    log = tmp_path / "log"
    put_nsys(tmp_path / "bin", f'echo "$*" > "{log}"; cp "{export}" "$7"', monkeypatch)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = sorted(tmp_path.iterdir())
    assert readers.read(report).activities.num_rows == 1
    assert sorted(tmp_path.iterdir()) == sorted([*before, log])
    said = log.read_text()
    assert said.startswith("export --type sqlite --force-overwrite true --output ")
    assert said.rstrip().endswith(f"/report.sqlite {report}")


def test_a_report_whose_name_begins_with_a_dash_is_not_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nsys would write wherever that option says."""
    log = tmp_path / "log"
    put_nsys(tmp_path / "bin", f'echo "$8" > "{log}"; exit 1', monkeypatch)
    monkeypatch.chdir(tmp_path)
    report = Path("--output=x.nsys-rep")
    report.write_bytes(REPORT)
    with pytest.raises(CaptureError):
        readers.read(report)
    assert log.read_text().strip() == str(tmp_path / report)


def test_without_nsys_the_message_holds_the_command(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = "nsys export --type sqlite --force-overwrite true --output net.sqlite net.nsys-rep"
    with pytest.raises(CaptureError, match=command):
        readers.read(report)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo one; echo Version number is invalid >&2; exit 1", "Version number is invalid"),
        ("exit 3", "exit code 3"),
        ("echo done", "done"),  # claims success and writes nothing
        ("printf '\\377\\376 oops' >&2; exit 1", "oops"),  # not UTF-8
    ],
    ids=["newer report", "silent", "no file", "binary noise"],
)
def test_an_export_that_fails_is_one_message(
    script: str, said: str, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_nsys(tmp_path / "bin", script, monkeypatch)
    with pytest.raises(CaptureError, match=said) as raised:
        readers.read(report)
    assert str(report) in str(raised.value)
    assert "export it with the nsys version that wrote it" in str(raised.value)


def test_an_export_with_a_reports_suffix_is_read_as_what_it_is(tmp_path: Path) -> None:
    """The content decides: SQLite needs no nsys, whatever its suffix."""
    path = nsys_db(tmp_path / "net.nsys-rep", [Work()])
    assert readers.read(path).activities.num_rows == 1


@pytest.mark.parametrize(
    "script", ['cp "{export}" "$7"; echo "[tag] = database or disk is full" >&2', ': > "$7"']
)
def test_a_full_disk_during_the_export_is_an_error(
    script: str, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nsys of 2022 exits with 0 then, and leaves a part or nothing."""
    export = nsys_db(tmp_path / "ready.sqlite", [Work()], [])
    put_nsys(tmp_path / "bin", script.format(export=export), monkeypatch)
    with pytest.raises(PyprofError, match=r"net\.nsys-rep: no room for its export in .* TMPDIR"):
        readers.read(report)


def test_an_export_that_cannot_be_read_is_an_error_of_the_report(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_nsys(tmp_path / "bin", 'echo SQLite > "$7"', monkeypatch)
    with pytest.raises(CaptureError, match=r"file is not a database") as raised:
        readers.read(report)
    assert str(raised.value).startswith(f"{report}: ")


def test_a_missing_temporary_folder_is_an_error(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_nsys(tmp_path / "bin", ":", monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(PyprofError, match=r"temporary files .* set TMPDIR"):
        readers.read(report)
