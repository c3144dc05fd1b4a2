"""A real Dask cluster of two workers gives what one process gives, even if it loses a worker."""

import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from threading import enumerate as enumerate_threads

import pytest

from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs import dataset
from pyprof.inputs.executor import InProcess, open_executor
from pyprof.inputs.ranks import ranked_captures
from tests.builders import Range, Work, nsys_db
from tests.commands import refused, run
from tests.inputs import work
from tests.inputs.cluster import cluster
from tests.inputs.test_dataset import _files
from tests.known import raising

pytest.importorskip("distributed")

from pyprof.inputs.dask_cluster import Cluster


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with cluster(workers=2) as found:
        yield found


@pytest.fixture(scope="module")
def captures_of_a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    for rank in range(6):
        done = [Work(f"gemm{n % 3}", (100 * n, 100 * n + 9 + rank)) for n in range(1, 40 + rank)]
        nsys_db(folder / f"net.rank{rank}.sqlite", done, [Range("layer:a", (0, 900))])
    os.truncate(folder / "net.rank4.sqlite", 8192)
    return folder


@pytest.fixture(scope="module")
def expected(captures_of_a_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("here")
    dataset.write_all([str(captures_of_a_run)], str(folder), InProcess())
    return _files(folder)


@pytest.mark.long
def test_a_cluster_writes_what_one_process_writes(
    address: str, captures_of_a_run: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    done = run("parse", captures_of_a_run, "-o", f"{out}/", "--workers", address)
    assert done.code == 0, done.stderr
    assert "net.rank4.sqlite: the SQLite file is damaged" in done.stderr
    assert "1 of 6 captures could not be read" in done.stderr
    assert _files(out) == expected


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "name", "more"),
    [("report", "page.html", ()),
     ("diff", "diff.csv", ("net.rank[01].sqlite",)),
     ("lines", "lines.txt", ()),
     ("export", "net.pt.trace.json", ()),
     ("export", "net.prof", ())],
)  # fmt: skip
def test_a_cluster_reports_what_one_process_reports(
    command: str, name: str, more: tuple[str, ...], address: str, captures_of_a_run: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    target, folder = tmp_path / name, captures_of_a_run
    given = [folder / more[0]] if command == "diff" else more
    written = []
    for options in ((), ("--workers", address)):
        done = run(command, "-o", target, *given, folder, *options)
        assert (done.code, done.stdout) == (0, ""), done.stderr
        written.append((target.read_bytes(), done.stderr))
    assert written[0] == written[1]


@pytest.mark.slow
def test_results_are_merged_where_they_are(address: str) -> None:
    with open_executor(address) as executor:
        handles = executor.map(work.as_text, range(6), "")
        assert executor.reduce(work.pair, handles) == "(((0 1) (2 3)) (4 5))"
        tree, pid = executor.reduce_and_finish(work.pair, handles, work.with_process)
        assert (tree, pid != os.getpid()) == ("(((0 1) (2 3)) (4 5))", True)
        assert list(executor.gather(executor.map(work.even, range(4), ""))) == [0, 2]
        with pytest.raises(CaptureError, match="capture 1: is odd"):
            executor.map(work.even, [1], "")
        with pytest.raises(PyprofError, match="no space left"):
            executor.map(work.unwritable, [1], "")
    odd = pytest.raises(CaptureError, match="is odd")
    with open_executor(address, strict=True) as executor, odd:
        executor.map(work.even, range(2), "")


@pytest.fixture
def unused() -> int:
    """Return a port without a listener: it was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{}", "tls://localhost:{}", "127.0.0.1:{}"])
def test_a_missing_scheduler_is_an_error_at_once(
    address: str, unused: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No client is made, which would retry for half a minute."""
    monkeypatch.setattr("pyprof.inputs.dask_cluster.Client", None)
    capture, place = nsys_db(tmp_path / "a.sqlite", [Work()]), address.format(unused)
    said = refused("parse", capture, "-o", f"{tmp_path}/out/", "--workers", place)
    assert f"no Dask scheduler answers at {place} (" in said
    assert "; give the address that dask scheduler prints" in said
    assert not (tmp_path / "out").exists()


def test_a_host_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall drops packets: after a few seconds."""

    def silent(_: object, timeout_s: float) -> None:
        assert 1 <= timeout_s <= 10
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", silent)
    told = pytest.raises(PyprofError, match=r"answers at tcp://192.0.2.1:8786 \(timed out\)")
    with told, open_executor("tcp://192.0.2.1:8786"):
        pass


def test_a_listener_that_is_not_a_scheduler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts the connection but never replies, like the dashboard's port."""
    dask = pytest.importorskip("dask")
    monkeypatch.setitem(dask.config.config["distributed"]["comm"]["timeouts"], "connect", "50ms")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        told = pytest.raises(PyprofError, match=f"no Dask scheduler answers at 127.0.0.1:{port}")
        with told, open_executor(f"127.0.0.1:{port}"):
            pass


def test_other_protocols_are_left_to_dask(unused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """UCX has connections of its own."""

    def asked(address: str, **_: object) -> None:
        raise OSError(f"dask was asked for {address}")

    monkeypatch.setattr("pyprof.inputs.dask_cluster.get_address_host_port", lambda _: ("", unused))
    monkeypatch.setattr("pyprof.inputs.dask_cluster.Client", asked)
    with pytest.raises(PyprofError, match="dask was asked for ucx://"), open_executor("ucx://a:1"):
        pass


@pytest.mark.parametrize("content", [None, "junk", "{}", "[]"])
def test_an_invalid_address_is_an_error_at_once(content: str | None, tmp_path: Path) -> None:
    before = set(enumerate_threads())
    place = tmp_path / "scheduler.json"
    if content is not None:
        place.write_text(content)
    said = refused("parse", nsys_db(tmp_path / "a.sqlite", [Work()]), "--workers", place)
    assert f"no Dask scheduler answers at {place}" in said
    assert set(enumerate_threads()) <= before


@pytest.mark.long
def test_workers_of_another_version_are_an_error(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or without pyprof: one line instead of work that never ends."""
    monkeypatch.setattr("pyprof.inputs.dask_cluster.__version__", "99.0")
    advice = r"have 0\..* not 99.0; install torch-pyprof\[dask\]==99.0"
    with pytest.raises(PyprofError, match=advice), open_executor(address):
        pass
    missing = raising(ModuleNotFoundError("pyprof"))
    monkeypatch.setattr("pyprof.inputs.dask_cluster.resolve_name", missing)
    with pytest.raises(PyprofError, match="no version of torch-pyprof"), open_executor(address):
        pass


@pytest.mark.long
def test_a_capture_that_kills_workers_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, with the likely reason, after two workers; the third does the rest."""
    settings = {
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",  # nothing else waits beside it
    }
    with cluster(3, **settings) as own, open_executor(own) as executor:
        handles = executor.map(work.ends_always, [2, *range(10, 20)], "")
        assert list(executor.gather(handles)) == [*range(10, 20)]
    told = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"pyprof: warning: 2: its worker ended .* memory.*", told[0])
    assert told[1:] == ["pyprof: warning: 1 of 11 captures could not be read and are left out"]


@pytest.mark.long
def test_strict_stops_at_a_capture_that_kills_workers() -> None:
    first = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    gives_up = pytest.raises(CaptureError, match=r"^2: its worker ended .* memory")
    with cluster(1, **first) as own, open_executor(own, strict=True) as executor, gives_up:
        executor.map(work.ends_always, [2], "")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_scheduler_that_ends_mid_run_is_an_error(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    with cluster(1) as own, open_executor(own) as executor:
        assert isinstance(executor, Cluster)
        scheduler = executor._client.run_on_scheduler(os.getpid)

        def end() -> None:
            begun.read_text()
            os.kill(scheduler, signal.SIGKILL)

        ending = Thread(target=end)
        ending.start()
        with pytest.raises(PyprofError, match=f"^{own}: the scheduler is gone; start one"):
            executor.map(work.begins, [str(begun)], "")
        ending.join()


@pytest.mark.slow
def test_a_cluster_without_workers_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster(0) as own, open_executor(own):
        assert f"{own} has no workers yet; waiting for them" in capsys.readouterr().err


@pytest.mark.long
def test_a_lost_worker_costs_a_retry(
    captures_of_a_run: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    killed: list[int] = []
    with cluster(workers=2) as own, socket.create_server(("127.0.0.1", 0)) as server:
        killer = Thread(target=_kill, args=(server, killed))
        killer.start()
        with open_executor(own) as executor:
            found = ranked_captures([str(captures_of_a_run)], executor)
            port = server.getsockname()[1]
            done = executor.map(
                partial(work.writes_and_tells, folder=str(out), port=port), found, ""
            )
            killer.join()
            pids = set(executor.gather(executor.map(work.process, range(4), "")))
        assert len(killed) == 1
        assert killed[0] not in {pid for _, pid in pids}
    assert [handle.item for handle in done] == [
        member for member in found if "rank4" not in member.url
    ]
    assert _files(out) == expected


def _kill(server: socket.socket, killed: list[int]) -> None:
    """Wait for the first process that sends its id, and kill it; ignore all others."""
    connection, _ = server.accept()
    server.close()
    with connection, connection.makefile() as lines:
        killed.append(int(lines.readline()))
        os.kill(killed[0], getattr(signal, "SIGKILL", signal.SIGTERM))
