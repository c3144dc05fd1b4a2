"""`pyprof ranks`: its tables, and wrong usage."""

from pathlib import Path

import pytest

from pyprof.answers.base import table_columns
from pyprof.answers.ranks_answer import Ranks
from pyprof.commands.ranks import _TABLES
from tests.builders import Range, Work, nsys_db
from tests.commands import run

NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _pair(folder: Path) -> list[str]:
    """Write two ranks: the second comes 300 us later to each of two collectives."""
    paths = []
    for rank, late in enumerate((0, 300_000)):
        work = [
            Work(NCCL, (at + late, at + 900_000), call=(at + late - 9000, at + late - 5000))
            for at in (1_000_000, 5_000_000)
        ]
        path = folder / f"net.rank{rank}.sqlite"
        ranges = [Range("layer:net", (900_000, 9_000_000))]
        paths.append(str(nsys_db(path, work, ranges)))
    return paths


@pytest.mark.slow
def test_tables_are_written_for_programs(tmp_path: Path) -> None:
    done = run("ranks", "-q", *_pair(tmp_path), "--csv", "stragglers")
    rows = done.rows
    assert [(row["rank"], row["last"], row["cost_ns"]) for row in rows] == [
        ("1", "2", "600000"), ("0", "0", "0"),
    ]  # fmt: skip
    done = run("ranks", "-q", *_pair(tmp_path), "--json")
    tables = done.json
    assert [row["exposed_ns"] for row in tables["ranks"]] == [1_800_000, 1_200_000]
    assert [row["transfer_ns"] for row in tables["groups"]] == [600_000]
    assert tables["groups"][0]["bus_bytes_per_s"] is None
    assert (tables["left_out"], tables["slowest_ranks"]) == ([], [1])


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("table", _TABLES)
def test_a_table_without_rows_has_its_columns(table: str, tmp_path: Path) -> None:
    quiet = nsys_db(tmp_path / "net.sqlite", [Work("gemm", (0, 9))])
    names = [
        run("ranks", "-q", *captures, "--csv", table).stdout.splitlines()
        for captures in ([str(quiet)], _pair(tmp_path))
    ]
    assert names[0][0] == names[1][0]
    empty = {"late", "together", "steps", "stalls", "groups", "parallelism", "unmatched"}
    assert empty & {table} == {table for rows in names[:1] if len(rows) == 1}


def test_every_table_can_be_requested() -> None:
    """The command lists them without loading what makes them."""
    assert (*_TABLES, "memory") == tuple(table_columns(Ranks))


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--csv", "--json"], 2, "exclude each other"),
        (["--csv", "stals"], 2, "did you mean 'stalls'?"),
        (["missing.sqlite"], 1, "no such file"),
        ([], 2, "Missing argument"),
    ],
)
def test_wrong_usage_ends_in_one_line(options: list[str], code: int, said: str, here: Path) -> None:
    given = [*_pair(here), *options] if "--csv" in options else options
    done = run("ranks", *given)
    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr
