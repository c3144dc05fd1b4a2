"""Output files are complete or absent; devices and pipes are written to in place."""

import os
import sys
from pathlib import Path

import pytest

from pyprof.errors import PyprofError
from pyprof.process import output_file
from tests.commands import run


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("linked", [True, False])
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path, *, linked: bool) -> None:
    target, given = tmp_path / "net.dict", tmp_path / "given.dict"
    os.mkfifo(target)
    given.symlink_to(target)
    reader = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    with output_file.open_output(str(given if linked else target)) as file:
        file.write(b"whole")
    assert os.read(reader, 100) == b"whole"
    os.close(reader)
    assert target.is_fifo()
    target.unlink()
    with output_file.open_output(str(given)) as file:
        file.write(b"whole")
    assert given.is_symlink()
    assert target.read_bytes() == b"whole"


@pytest.mark.parametrize("error", [PyprofError("no"), ValueError("no"), KeyboardInterrupt()])
def test_a_failure_leaves_no_partial_file(error: BaseException, tmp_path: Path) -> None:
    target = tmp_path / "net.dict"
    target.write_bytes(b"old")

    def fail() -> None:
        with output_file.open_output(str(target)) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [(path, path.read_bytes()) for path in tmp_path.iterdir()] == [(target, b"old")]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_an_output_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    with output_file.open_output(str(tmp_path / "net.dict")) as file:
        file.write(b"whole")
    modes = {os.stat(path).st_mode for path in tmp_path.iterdir()}  # noqa: PTH116
    assert len(modes) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_a_replaced_output_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "net.dict"
    target.touch()
    target.chmod(0o600)
    with output_file.open_output(str(target)) as file:
        file.write(b"secret")
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"secret", 0o600)


@pytest.mark.parametrize(
    ("inputs", "name"),
    [(["runs/net.sqlite"], "net.report.html"), (["net.pt.trace.json.gz"], "net.report.html"),
     (["ranks/"], "ranks.report.html"), (["a.sqlite", "b.sqlite"], "report.html"),
     (["ranks/*.gz"], "report.html"), (["-"], "report.html"), ([], "report.html"),
     (["net.v2.db"], "net.v2.report.html"), ([".json"], "report.html"),
     (["s3://me:secret@host/a/net.json?token=secret"], "net.report.html"),
     (["myhost_42.1690000000000.pt.trace.json"], "42.report.html")],
)  # fmt: skip
def test_an_output_is_named_after_its_input(inputs: list[str], name: str) -> None:
    assert output_file.named_after(inputs, "report.html") == name


def test_an_output_of_this_folder_has_the_folder_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ranks").mkdir()
    monkeypatch.chdir(tmp_path / "ranks")
    assert output_file.named_after(["."], "report.html") == "ranks.report.html"


@pytest.mark.parametrize(
    ("command", "name"),
    [(("diff", "--json"), "x.html"), (("diff", "--csv"), "x.json"), (("ranks", "--json"), "x.csv"),
     (("ranks", "--csv"), "x.json"), (("ranks", "--json"), "x.md"), (("memory", "--json"), "x.csv"),
     (("memory", "--json"), "x.collapsed"), (("prof", "--csv"), "x.json"),
     (("prof", "--json"), "x.csv")],
)  # fmt: skip
def test_an_option_writes_no_file_of_another_format(
    command: tuple[str, str], name: str, tmp_path: Path
) -> None:
    inputs = [tmp_path / "a.sqlite", tmp_path / "b.sqlite"][: 1 + (command[0] == "diff")]
    done = run(*command, *inputs, "-o", tmp_path / name)
    assert (done.code, done.stdout, name in done.stderr) == (2, "", True)
    assert not (tmp_path / name).exists()
