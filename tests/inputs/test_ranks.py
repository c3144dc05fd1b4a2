"""A rank comes from the capture, else from its name, else from its position."""

import gzip
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pyprof import readers
from pyprof.errors import CaptureError
from pyprof.inputs.executor import Handle, InProcess
from pyprof.inputs.ranks import RankedCapture, identify, rank_in, ranked_captures
from pyprof.schema import Identity
from tests.builders import Range, Work, nsys_db, nvprof_db
from tests.commands import run
from tests.programs import generate
from tests.readers.kineto_json import kernel, text


def _trace(path: Path, rank: int | None = None, **header: object) -> Path:
    if rank is not None:
        header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 8}
    written = text([kernel(1, 2)], **header).encode()
    path.write_bytes(gzip.compress(written) if path.suffix == ".gz" else written)
    return path


def _ranks(folder: Path) -> dict[str, list[int]]:
    found = ranked_captures([str(folder)], InProcess())
    return {
        member.url.rpartition("rank-set")[2][1:]: [rank for _, rank in member.ranks]
        for member in found
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder whose own name says no rank, although it looks so."""
    path = tmp_path / "rank-set"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("net.rank3.sqlite", 3),  # pyprof capture
        ("net-rank3.nsys-rep", 3),
        ("rank_12.json", 12),
        ("RANK7_trace.json.gz", 7),
        ("trace_rank-0.pt.trace.json", 0),
        ("rank0.1712195495.pt.trace.json.gz", 0),
        ("net_3of8.sqlite", 3),
        ("out.parquet/rank=31/part-0.parquet", 31),
        ("attempt_0/rank_5/trace.json", 5),
        ("rank_1/rank_2.json", 2),
        ("lora-rank8.rank3.json", 3),
        ("lora-rank8/net3.json", None),
        ("net3.sqlite", None),
        ("frank3.sqlite", None),
        ("host_1102.1712195495.pt.trace.json", None),
    ],
)
def test_names_that_say_a_rank(name: str, rank: int | None) -> None:
    """A file's name takes precedence over those of folders, which count only as a whole."""
    assert rank_in(f"/data/run/{name}") == rank
    assert rank_in(f"s3://data/run/{name}") == rank


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_trace_says_its_rank(folder: Path, suffix: str) -> None:
    assert identify(str(_trace(folder / f"rank9{suffix}", 5))) == Identity(5)
    assert identify(str(_trace(folder / f"rank8{suffix}", pyprof_rank=6))) == Identity(6)
    assert identify(str(_trace(folder / f"rank7{suffix}"))) == Identity(7)


def test_an_export_says_its_processes(folder: Path) -> None:
    work = [
        Work(pid=9, device=0, at=(10, 20)),
        Work(pid=4, device=1, at=(5, 8), kind="memcpy"),
        Work(pid=9, device=1, at=(30, 40)),
        Work(pid=2, device=3, at=(1, 2), kind="graph"),
    ]
    path = nsys_db(folder / "net.sqlite", work, [Range("x", (0, 9), pid=77)])
    assert identify(str(path)) == Identity(None, (9, 4, 2))
    run("parse", "-q", path, "-o", folder / "net.parquet")
    assert identify(str(folder / "net.parquet")) == Identity(None, (9, 4, 2))
    one = nsys_db(folder / "one.sqlite", work[:1], [Range("x", (0, 9), pid=77)])
    assert identify(str(one)) == Identity(None, ())
    assert identify(str(nvprof_db(folder / "net.sql", work))) == Identity(None, ())


@pytest.mark.parametrize("name", ["nsys", "nsys_report"])
def test_no_file_is_read_for_a_rank_that_it_cannot_tell(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name has one; a report of nsys would need an export."""
    reader = import_module(f"pyprof.readers.{name}")
    looked: list[str] = []

    def looks(path: Path) -> Identity:
        looked.append(path.name)
        return Identity()

    monkeypatch.setattr(readers, "readers", lambda: [reader])
    monkeypatch.setattr(reader, "DATABASE", False, raising=False)
    monkeypatch.setattr(reader, "sniff", lambda path, _: path.suffix == ".capture")
    monkeypatch.setattr(reader, "identity", looks)
    for stem, rank in (("net", None), ("net.rank3", 3)):
        path = folder / f"{stem}.capture"
        path.write_bytes(b"anything")
        assert identify(str(path)) == Identity(rank)
    assert looked == ["net.capture"]


@pytest.mark.slow
def test_two_ranks_in_a_file_count_as_two(folder: Path) -> None:
    for name in ("node0", "node1", "node10", "node2"):
        generate(folder / f"{name}.sqlite", "--ranks", "2", "--kernels", "4")
    assert _ranks(folder) == {
        "node0.sqlite": [0, 1], "node1.sqlite": [2, 3],
        "node2.sqlite": [4, 5], "node10.sqlite": [6, 7],
    }  # fmt: skip


def test_the_real_trace_of_rank_0(captures: Path) -> None:
    path = captures / "kineto-v100-resnet-ddp" / "trace.json.gz"
    assert identify(str(path)) == Identity(0)


def test_members_are_sorted_by_rank(folder: Path) -> None:
    for name, rank in [("a", 2), ("b", 0), ("c", 1)]:
        _trace(folder / f"{name}.json", rank)
    assert _ranks(folder) == {"b.json": [0], "c.json": [1], "a.json": [2]}


def test_captures_without_a_rank_get_the_free_ones(folder: Path) -> None:
    for name, rank in [("host_17", 0), ("host_4", 3), ("host_9", 1)]:
        _trace(folder / f"{name}.json", rank)
    (folder / "host_5.json").touch()
    assert list(_ranks(folder).values()) == [[0], [1], [2], [3]]
    assert _ranks(folder)["host_5.json"] == [2]


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (["net0", "net1", "net3", "net10"], [0, 1, 3, 10]),  # nsys profile -o net%q{RANK}
        (["net4711", "net4712", "net5000"], [0, 1, 2]),  # process ids
        (["v2_0", "v2_2"], [0, 2]),
        (["a0_7", "a1_9"], [0, 1]),  # two numbers differ: which is it?
        (["a", "b"], [0, 1]),
        (["net0"], [0]),
    ],
)
def test_one_number_that_counts_from_0_is_the_rank(
    folder: Path, names: list[str], ranks: list[int]
) -> None:
    for name in names:
        nsys_db(folder / f"{name}.sqlite", [Work()])
    found = zip([f"{name}.sqlite" for name in names], ([rank] for rank in ranks), strict=True)
    assert _ranks(folder) == dict(found)


def test_a_capture_that_kills_workers_keeps_the_rank_of_its_name(folder: Path) -> None:
    """Reading it later reports the error."""

    class Killed(InProcess):
        def map(self, function: Any, items: Any, label: str) -> list[Handle[Any]]:  # noqa: ANN401
            return [handle for handle in super().map(function, items, label) if "0" in handle.item]

    for rank in range(2):
        _trace(folder / f"rank{rank}.json")
    found = ranked_captures([str(folder)], Killed())
    assert [member.ranks for member in found] == [((None, 0),), ((None, 1),)]


def test_two_captures_of_one_rank_are_an_error(folder: Path) -> None:
    paths = [_trace(folder / f"{name}.json", 4) for name in ("today", "yesterday")]
    with pytest.raises(CaptureError) as error:
        ranked_captures([str(folder)], InProcess())
    assert all(str(path) in str(error.value) for path in paths)
    assert "are both rank 4" in str(error.value)


def test_two_cycles_of_one_process_are_an_error(folder: Path) -> None:
    """As `tensorboard_trace_handler` names them; with other processes or numbers they are ranks."""
    for name in ("vm_17.1795972629", "vm_18.1795972629", "worker.1", "worker.2"):
        _trace(folder / f"{name}.pt.trace.json")
    assert [*_ranks(folder).values()] == [[0], [1], [2], [3]]
    _trace(folder / "vm_17.1795972630.pt.trace.json")
    with pytest.raises(CaptureError, match="are cycles of one process, not ranks; name one"):
        ranked_captures([str(folder)], InProcess())


def test_a_set_at_a_url() -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.store.clear()
    for rank in (1, 0):
        memory.pipe(f"/run/x{rank}.json", text([kernel(1, 2)], pyprof_rank=rank).encode())
    found = ranked_captures(["memory://run/*.json"], InProcess())
    assert found == [
        RankedCapture(f"memory:///run/x{rank}.json", ((None, rank),)) for rank in (0, 1)
    ]
    memory.pipe("/run/rank7.json", text([kernel(1, 2)], pyprof_rank=0).encode())
    assert identify("memory:///run/rank7.json") == Identity(7)  # its name spares a copy


@pytest.mark.parametrize("suffix", [".dict", ".parquet"])
def test_records_say_their_rank(folder: Path, suffix: str) -> None:
    path = folder / f"rank1{suffix}"
    run("parse", _trace(folder / "a.json", 6), "-o", path)
    assert identify(str(path)) == Identity(6)
    run("parse", _trace(folder / "a.json"), "-o", path)
    assert identify(str(path)) == Identity(1)
    path.write_bytes(path.read_bytes()[:40])
    assert identify(str(path)) == Identity(1)


@pytest.mark.slow
@pytest.mark.parametrize("digits", ["2147483648", "9" * 20, "9" * 200])
def test_a_number_that_is_not_a_rank(digits: str, folder: Path) -> None:
    """No job has so many; the capture takes a free rank."""
    nsys_db(folder / f"net.rank{digits}.sqlite", [Work()])
    nsys_db(folder / "net.rank0.sqlite", [Work()])
    found = sorted(rank for ranks in _ranks(folder).values() for rank in ranks)
    assert found == [0, 1]
    for command in ("ranks", "summary"):
        assert run(command, folder).code == 0
    _trace(folder / "net.rank0.json", int(digits))
    (folder / "net.rank0.sqlite").unlink()
    assert run("ranks", folder).code == 0


def test_names_with_path_separators_only_give_a_number(tmp_path: Path) -> None:
    for name in ("rank=../../x", "rank=/etc", "rank=-1", "rank=", "rank=1e9", "rank=..", "rank=²"):
        assert rank_in(f"{tmp_path}/{name}/part-0.parquet") is None
