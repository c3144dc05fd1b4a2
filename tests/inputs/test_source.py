"""Input as one file or many gives the same, and rows of a set know their rank."""

from collections import Counter
from pathlib import Path

import pytest

from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs.executor import InProcess, open_executor
from pyprof.inputs.ranks import ranked_captures, with_ranks
from pyprof.inputs.source import Source, items, load, map_reduce
from pyprof.parse import parse_file, record_file
from pyprof.prof.table import Override
from pyprof.records import parquet
from tests.builders import Range, Work, nsys_db
from tests.commands import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of two captures, with two ranks of 2 and 3 rows each."""
    path = tmp_path / "run"
    path.mkdir()
    work = [
        Work(at=(n * 10, n * 10 + 5), pid=7 if n % 5 < 2 else 8, device=n % 5 // 2)
        for n in range(5)
    ]
    for node in range(2):
        nsys_db(path / f"node{node}.sqlite", work)
    return path


def _ranks(source: Path) -> list[Counter[int]]:
    """Count the rows of each rank, member by member."""
    found = ranked_captures([str(source)], InProcess())
    return [Counter(load(member).table.records.arrow("rank").to_pylist()) for member in found]


def test_ranks_of_a_capture_are_its_processes(folder: Path) -> None:
    assert _ranks(folder) == [Counter({0: 2, 1: 3}), Counter({2: 2, 3: 3})]


@pytest.mark.slow
def test_a_part_of_a_dataset_is_of_one_rank(folder: Path, tmp_path: Path) -> None:
    run("parse", folder, "-o", f"{tmp_path / 'out'}/")
    rows = {0: 2, 1: 3, 2: 2, 3: 3}
    assert _ranks(tmp_path / "out") == [Counter({rank: count}) for rank, count in rows.items()]
    member = ranked_captures([str(tmp_path / "out")], InProcess())[1]
    part = with_ranks(record_file.load(member.url), member).table()
    whole = parse_file(folder / "node0.sqlite").table()
    of_rank = [row | {"rank": 1} for row in whole.to_pylist() if row["pid"] == 8]
    assert part.to_pylist() == of_rank


def test_a_capture_of_one_rank(tmp_path: Path) -> None:
    capture = nsys_db(tmp_path / "net.rank6.sqlite", [Work()] * 3)
    assert _ranks(capture) == [Counter({6: 3})]
    lines = tmp_path / "net.rank6.dict"
    run("parse", capture, "-o", lines)
    assert _ranks(lines) == [Counter({6: 3})]


def _ranks_of_rows(source: Source) -> list[int | None]:
    """Summarise a capture by the rank of each row, unknown where it is not part of a set."""
    ranks: list[int | None] = source.table.records.arrow("rank").to_pylist()
    return ranks


def _joined(a: list[int | None], b: list[int | None]) -> list[int | None]:
    return a + b


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_many_captures_are_summarised_as_one_is(folder: Path, workers: int) -> None:
    one, two = sorted(map(str, folder.iterdir()))
    with open_executor(workers) as executor:
        for paths in ([str(folder)], [f"{folder}/*"], [two, one]):
            found = map_reduce(paths, _ranks_of_rows, _joined, executor)
            assert Counter(found) == Counter({0: 2, 1: 3, 2: 2, 3: 3})
            assert found == sorted(found, key=str)
        assert map_reduce([one], _ranks_of_rows, _joined, executor) == [None] * 5


@pytest.mark.parametrize(
    ("host", "stages"),
    [(True, ["reading", "parsing", "adding up"]), (False, ["reading", "adding up"])],
)  # fmt: skip
def test_stages_are_those_of_one_file(folder: Path, stages: list[str], *, host: bool) -> None:
    told: list[str] = []
    capture = str(folder / "node0.sqlite")

    def has_host(source: Source) -> bool:
        return source.capture is not None

    assert map_reduce([capture], has_host, max, InProcess(), None, told.append, host=host) == host
    assert told == stages


@pytest.mark.parametrize("host", [False, True])
def test_summaries_skip_texts_that_they_do_not_show(tmp_path: Path, *, host: bool) -> None:
    path = tmp_path / "net.sqlite"
    mul = "aten::mul, seq = 5, sizes = [[4], [4]]"
    nsys_db(path, [Work(call=(110, 112), at=(120, 130))], [Range(mul, (100, 120))])
    whole = load(str(path)).table
    assert whole.records.arrow("seqMarker").to_pylist() == [[mul]]

    def names_and_costs(source: Source) -> tuple[set[str], list[int]]:
        return {*source.table.records.columns}, source.table.costs.flops.tolist()

    names, flops = map_reduce([str(path)], names_and_costs, max, InProcess(), host=host)
    assert flops == whole.costs.flops.tolist() == [4]
    assert {*whole.records.columns} - names == {*parquet.RAW}


def test_one_file_needs_no_worker(folder: Path) -> None:
    unused = InProcess()
    unused.map = None  # type: ignore[assignment, method-assign]
    assert len(map_reduce([str(folder / "node0.sqlite")], _ranks_of_rows, _joined, unused)) == 5


def test_unusable_input_is_one_error(folder: Path) -> None:
    (folder / "none").mkdir()
    with pytest.raises(CaptureError, match="is a folder without captures"):
        items([str(folder / "none")], InProcess())
    nobody = Override(gpu="Voodoo 2")
    for paths in ([str(folder)], [str(folder / "node0.sqlite")]):
        with pytest.raises(PyprofError, match="Voodoo 2"):
            map_reduce(paths, _ranks_of_rows, _joined, InProcess(), nobody)
