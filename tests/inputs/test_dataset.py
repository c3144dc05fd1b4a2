"""A set of captures becomes a Parquet dataset, every rank whole and once, on any executor."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pyprof.errors import PyprofError
from pyprof.inputs import dataset
from pyprof.inputs.executor import InProcess
from pyprof.inputs.files import files_of
from pyprof.inputs.ranks import ranked_captures
from pyprof.inputs.source import load
from pyprof.records import parquet
from tests.builders import Range, Work, nsys_db
from tests.commands import Done, refused, run
from tests.known import raising
from tests.programs import environment

ROWS = {0: 20, 1: 21, 2: 22}
"""How many rows each rank of the made-up run has."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    for rank, rows in ROWS.items():
        work = [
            Work(f"gemm{n % 3}", (100 * n, 109 * n), kind="kernel" if n % 5 else "memcpy")
            for n in range(1, 1 + rows)
        ]
        nsys_db(path / f"net.rank{rank}.sqlite", work, [Range("layer:a", (0, 900))])
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.parquet"


def _write(folder: Path, out: Path | str, *options: str) -> Done:
    done = run("parse", folder, "-o", f"{out}/", *options)
    assert (done.code, done.stdout) == (0, ""), done.stderr
    return done


def _files(out: Path) -> dict[str, bytes]:
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file()
    }


def _cut(folder: Path, rank: int) -> Path:
    path = folder / f"net.rank{rank}.sqlite"
    os.truncate(path, 8192)
    return path


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's, before it knew pandas 3.1
def test_pyarrow_pandas_and_dask_read_it(folder: Path, out: Path) -> None:
    frames = pytest.importorskip("dask.dataframe")
    assert "3 ranks, 63 rows" in _write(folder, out).stderr
    found = ds.dataset(out, partitioning="hive").to_table()
    counts = {row["values"]: row["counts"] for row in found["rank"].value_counts().to_pylist()}
    assert counts == ROWS
    assert dict(pd.read_parquet(out)["rank"].astype(int).value_counts()) == ROWS
    assert dict(frames.read_parquet(out).compute()["rank"].astype(int).value_counts()) == ROWS


@pytest.mark.slow
def test_a_part_holds_what_a_file_holds(folder: Path, out: Path, tmp_path: Path) -> None:
    _write(folder, out)
    for rank in ROWS:
        alone = tmp_path / "alone.parquet"
        run("parse", folder / f"net.rank{rank}.sqlite", "-o", alone)
        expected = pq.read_table(alone).drop_columns(["rank"])
        assert pq.ParquetFile(dataset.part(str(out), rank)).read().equals(expected)


@pytest.mark.long
@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("workers", ["1", "2", pytest.param("3", marks=pytest.mark.slow)])
def test_the_number_of_workers_changes_nothing(folder: Path, out: Path, workers: str) -> None:
    _cut(folder, 1)
    dataset.write_all([str(folder)], str(out), InProcess())
    expected = _files(out)
    assert sorted(expected) == ["rank=0/part-0.parquet", "rank=2/part-0.parquet"]
    other = out.with_name("other")
    _write(folder, other, "--workers", workers)
    assert _files(other) == expected


@pytest.mark.slow
def test_existing_ranks_are_not_written_again(folder: Path, out: Path) -> None:
    _write(folder, out)
    assert "; 3 of them already finished" in _write(folder, out).stderr
    expected, places = _files(out), [Path(dataset.part(str(out), rank)) for rank in ROWS]
    places[0].unlink()
    os.truncate(places[1], 100)
    kept = places[2].stat()
    assert "; 1 of them already finished" in _write(folder, out).stderr
    assert _files(out) == expected
    assert places[2].stat().st_ino == kept.st_ino  # the very same file
    nsys_db(folder / "net.rank2.sqlite", [Work()])
    assert "; 2 of them already finished" in _write(folder, out).stderr
    assert pq.read_metadata(places[2]).num_rows == 1


@pytest.mark.slow
def test_kernels_only_is_another_dataset(folder: Path, out: Path) -> None:
    _write(folder, out)
    assert "already" not in _write(folder, out, "--kernels-only").stderr
    assert set(pd.read_parquet(out)["kind"]) == {"kernel"}


@pytest.mark.slow
def test_a_corrupt_capture_is_named_and_left_out(folder: Path, out: Path) -> None:
    _write(folder, out)
    path = _cut(folder, 1)
    done = _write(folder, out)
    assert f"{path}: the SQLite file is damaged" in done.stderr
    assert "1 of 3 captures could not be read and are left out" in done.stderr
    assert "2 ranks, 42 rows" in done.stderr
    assert sorted(_files(out)) == ["rank=0/part-0.parquet", "rank=2/part-0.parquet"]
    assert not (out / "rank=1").exists()


def test_a_broken_link_is_named_and_left_out(folder: Path, out: Path) -> None:
    """It shows that there was a capture."""
    (folder / "net.rank3.sqlite").symlink_to(folder / "gone")
    done = _write(folder, out)
    assert f"{folder / 'net.rank3.sqlite'}: " in done.stderr
    assert "1 of 4 captures could not be read and are left out" in done.stderr
    assert run("parse", folder, "-o", f"{out}/", "--strict").code == 1


def test_strict_stops_at_a_corrupt_capture(folder: Path, out: Path) -> None:
    path = _cut(folder, 1)
    assert str(path) in refused("parse", folder, "-o", f"{out}/", "--strict")
    assert sorted(_files(out)) == ["rank=0/part-0.parquet"]


def test_without_a_readable_capture_nothing_is_left(folder: Path, out: Path) -> None:
    for rank in ROWS:
        _cut(folder, rank)
    assert "(and 2 more)" in refused("parse", folder, "-o", f"{out}/")
    assert not out.exists()


def test_leftovers_of_an_ended_process_are_removed(folder: Path, out: Path) -> None:
    """No reader takes half-written files by their names; the next run removes them."""
    half = out / "rank=7" / ".part-0.parquet.x1y2"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"PAR1")
    os.utime(half, (10**9, 10**9))  # what is young may not be locked yet
    _write(folder, out)
    assert not half.parent.exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no open file by itself")
def test_files_of_a_running_process_stay(folder: Path, out: Path) -> None:
    place = dataset.part(str(out), 7)
    with files_of(place).output(place) as file:
        file.write(b"half")
        _write(folder, out)
        file.write(b" and whole")
    assert Path(place).read_bytes() == b"half and whole"


def test_a_failing_write_leaves_nothing(
    folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "write", raising(OSError(28, "No space left on device")))
    with pytest.raises(PyprofError, match="No space left on device; choose another place with -o"):
        dataset.write_all([str(folder)], str(out), InProcess())
    assert not out.exists()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl-C to whole consoles")
def test_ctrl_c_leaves_only_whole_files(folder: Path, out: Path, tmp_path: Path) -> None:
    _write(folder, out)
    expected = _files(out)
    (folder / "net.rank3.nsys-rep").write_bytes(b"a report, whatever is in it")
    pipe = tmp_path / "begun"
    os.mkfifo(pipe)
    nsys = tmp_path / "bin" / "nsys"
    nsys.parent.mkdir()
    nsys.write_text(f'#!/bin/sh\necho > "{pipe}"\nexec sleep 60\n')
    nsys.chmod(0o755)
    variables = environment()
    variables["PATH"] = f"{nsys.parent}{os.pathsep}{variables['PATH']}"
    command = [sys.executable, "-m", "pyprof", "parse", str(folder), "-o", f"{out}/"]
    with subprocess.Popen(
        [*command, "--workers", "2"], env=variables, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        pipe.read_text()  # when it is being exported
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (128 + signal.SIGINT, "Aborted!")
    assert _files(out) == expected


def test_a_folder_that_cannot_be_made_is_an_error(folder: Path, here: Path) -> None:
    (here / "file").touch()
    assert "choose another place with -o" in refused("parse", folder, "-o", f"{here / 'file'}/")
    assert run("parse", folder, "-o", "").code == 2
    assert sorted(path.name for path in here.iterdir()) == ["file", "run"]


def test_captures_are_not_overwritten(folder: Path, out: Path) -> None:
    _write(folder, out)
    expected = _files(out)
    link = out.with_name("link")
    link.symlink_to(folder)
    sources = [(out, out), (folder, folder), (out / "rank=1", out), (folder, link), (link, folder)]
    for source, target in sources:
        said = refused("parse", source, "-o", f"{target}/")
        assert "contains the captures; choose another place with -o" in said
    assert _files(out) == expected


def test_ranks_of_another_run_are_warned_of(folder: Path, out: Path) -> None:
    _write(folder, out)
    done = _write(folder / "net.rank1.sqlite", out)
    assert "also contains rank 0, 2, not from these captures" in done.stderr
    assert len(_files(out)) == 3


def test_many_captures_need_a_folder(folder: Path) -> None:
    for options in ([], ["-o", str(folder / "net.dict")]):
        done = run("parse", folder, *options)
        assert (done.code, done.stdout, "name a folder" in done.stderr) == (2, "", True)


@pytest.mark.slow
def test_captures_at_urls(folder: Path, out: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.store.clear()
    for path in folder.iterdir():
        memory.pipe(f"/run/{path.name}", path.read_bytes())
    done = run("parse", "memory://run/*.sqlite", "-o", f"{out}/")
    assert "3 ranks, 63 rows" in done.stderr
    done = run("parse", "memory://run", "-o", f"{out}/")
    assert "; 3 of them already finished" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["file", "local"])
def test_a_file_url_is_a_path(folder: Path, out: Path, scheme: str) -> None:
    _write(folder, f"{scheme}://{out}")
    _write(folder, out.with_name("other"))
    assert _files(out) == _files(out.with_name("other"))
    assert "; 3 of them already finished" in _write(folder, out).stderr
    done = run("parse", f"{scheme}://{folder}", "-o", f"{folder}/")
    assert (done.code, "contains the captures" in done.stderr) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["get_file", "put_file"])
def test_a_full_disk_for_copies_ends_the_run(
    method: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.store.clear()
    memory.pipe("/run/net.rank0.sqlite", (folder / "net.rank0.sqlite").read_bytes())

    full = raising(OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(type(memory), method, full)
    said = refused("parse", "memory://run", "-o", "memory://out")
    assert "No space left on device" in said
    assert ("set TMPDIR" in said) == (method == "get_file")
    assert [*memory.find("/out")] == []


@pytest.mark.slow
def test_a_dataset_at_a_url(folder: Path, out: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.store.clear()
    url = "memory://bucket/out.parquet"
    assert "3 ranks, 63 rows" in _write(folder, url).stderr
    _write(folder, out)
    at_url = {path: memory.cat(path) for path in memory.find("/bucket/out.parquet")}
    assert {path.split("parquet/", 1)[1]: data for path, data in at_url.items()} == _files(out)
    memory.pipe("/bucket/out.parquet/rank=1/part-0.parquet", b"PAR1")
    assert "; 2 of them already finished" in _write(folder, url).stderr
    assert {path: memory.cat(path) for path in at_url} == at_url
    sources = [load(member, host=False) for member in ranked_captures([url], InProcess())]
    assert [source.table.records.rows for source in sources] == list(ROWS.values())


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_in_a_dataset_is_not_written_through(folder: Path, out: Path) -> None:
    victim = out.parent / "victim"
    victim.write_text("precious")
    (out / "rank=0").mkdir(parents=True)
    (out / "rank=0" / "part-0.parquet").symlink_to(victim)
    assert _write(folder, out).code == 0
    assert victim.read_text() == "precious"
    (out / "rank=77").symlink_to(out.parent)
    assert "rank=77: is a link" in refused("parse", folder, "-o", f"{out}/")
