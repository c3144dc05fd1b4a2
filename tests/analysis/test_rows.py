"""Sets of captures in every report, on any number of processes."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyprof
from pyprof.prof.columns.standard import COLUMNS
from pyprof.records import parquet
from tests.analysis import captures
from tests.analysis.captured import capture
from tests.analysis.captures import Work, records
from tests.commands import run
from tests.conftest import long_except

RANKS = 3
pytestmark = pytest.mark.usefixtures("two_workers")


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(RANKS):
        capture(folder / f"net-rank{rank}.sqlite", slower=1 + rank % 2, steps=4)
    return folder


def rows(*arguments: str | Path) -> list[dict[str, str]]:
    """Run prof --csv and read what it wrote."""
    return run("prof", "--csv", *arguments).rows


@pytest.mark.long
def test_rows_of_all_ranks_follow_each_other(ranks: Path) -> None:
    names = ",".join(name for name in COLUMNS if name not in ("rank", "eff", "idx", "opid"))
    alone = [rows("-c", names, file) for file in sorted(ranks.iterdir())]
    assert rows("-c", names, ranks) == [row for part in alone for row in part]
    found = [row["Rank"] for row in rows("-c", "rank", ranks)]
    assert found == [str(rank) for rank in range(RANKS) for _ in alone[rank]]


@pytest.mark.long
@pytest.mark.parametrize("form", ["capture", "parsed", "original"])
def test_numbers_continue_equally_in_prof_and_load(form: str, ranks: Path) -> None:
    """One number per row and per op call of a rank; those of the first rank are as alone."""
    for file in sorted(ranks.iterdir()) if form != "capture" else ():
        lines = file.with_suffix(".dict")
        run("parse", file, "-o", lines)
        file.unlink()
        if form == "original":  # which has no op calls
            lines.write_text(re.sub(r"""(["'])callIds\1: ?\[[^]]*\], ?""", "", lines.read_text()))
            assert "callIds" not in lines.read_text()
    source = ranks if form == "capture" else ranks / "*.dict"
    whole = pyprof.load(source)
    assert whole["idx"].tolist() == [*range(1, len(whole) + 1)]
    assert whole.groupby("opid")["rank"].nunique().max() == 1
    first = min(ranks.iterdir())
    alone = pyprof.load(first)
    for rank, part in whole.groupby("rank"):
        before = whole[whole["rank"].lt(rank)]["opid"].max() + 1 if rank else 0
        assert (part["opid"] - before).tolist() == alone["opid"].tolist()
    printed = [(int(row["Idx"]), int(row["OpId"])) for row in rows("-c", "idx,opid", source)]
    assert printed == [*zip(whole["idx"], whole["opid"], strict=True)]
    last = rows("-c", "opid", "--sort", "idx", "--top", "2", source)
    assert [int(row["OpId"]) for row in last] == whole["opid"].tolist()[:-3:-1]


def test_an_op_call_that_is_guessed_ends_with_its_rank(tmp_path: Path) -> None:
    """The original's files have no calls: consecutive copies are one, but never of two ranks."""
    line = "{'kShortName': 'memcpy', 'kDuration': 9, 'kLongName': 'memcpy', 'kind': 'memcpy'}\n"
    for rank in range(2):
        (tmp_path / f"rank{rank}.dict").write_text(line * 2)
    run("export", tmp_path / "*.dict", "-o", tmp_path / "all.csv")
    assert pd.read_csv(tmp_path / "all.csv")["opid"].tolist() == [0, 0, 1, 1]
    assert pyprof.load(tmp_path / "*.dict")["opid"].tolist() == [0, 0, 1, 1]


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("key", ["op", "layer", "kernel", "rank"])
def test_groups_are_of_all_ranks(key: str, ranks: Path) -> None:
    """Counts, sums and extremes equal those of the rows."""
    whole = rows("-c", f"{key},sil,flops", ranks)
    found = rows("--by", key, ranks)
    header = COLUMNS[key].header
    assert {row[header] for row in found} == {row[header] for row in whole}
    for group in found:
        durations = [int(row["Sil(ns)"]) for row in whole if row[header] == group[header]]
        assert int(group["Calls"]) == len(durations)
        assert int(group["Total(ns)"]) == sum(durations)
        assert (int(group["Min(ns)"]), int(group["Max(ns)"])) == (min(durations), max(durations))


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    long_except(["prof --csv -c rank,idx,op,sil,flops,eff", "prof --csv --by op",
         "prof --csv -c rank,sil --sort flops --top 5", "summary", "summary --by layer",
         "summary --steps 1:3", "diff FEW"], "prof --csv --by op", "summary"),
)  # fmt: skip
def test_the_number_of_workers_changes_nothing(arguments: str, ranks: Path) -> None:
    words = arguments.replace("FEW", f"{ranks}/*[01].sqlite").split()
    here, two = run(*words, ranks), run(*words, "--workers", "2", ranks)
    assert (two.code, two.stdout, two.stderr) == (0, here.stdout, here.stderr)


@pytest.mark.long
def test_a_frame_holds_all_ranks(ranks: Path) -> None:
    """By folder, glob or paths, on any number of workers."""
    whole = pyprof.load(ranks)
    assert whole["rank"].value_counts().to_dict() == dict.fromkeys(range(RANKS), len(whole) / RANKS)
    for same in (str(ranks / "*.sqlite"), sorted(ranks.iterdir())):
        pd.testing.assert_frame_equal(pyprof.load(same), whole)
    pd.testing.assert_frame_equal(pyprof.load(ranks, workers=2), whole)


@pytest.mark.slow
def test_a_corrupt_capture_is_named_and_skipped(ranks: Path) -> None:
    (ranks / "net-rank1.sqlite").write_bytes(b"SQLite format 3\0" + bytes(50))
    done = run("summary", ranks)
    assert done.code == 0
    assert "net-rank1.sqlite" in done.stderr
    assert "rank 2, GPU 0" in done.stdout
    assert "rank 1" not in done.stdout
    strict = run("summary", "--strict", ranks)
    assert (strict.code, strict.stdout) == (1, "")
    assert len(strict.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "command",
    [
        *("prof --csv", "prof --by op", "summary", "lines", "report -o OUT.html", "diff IN"),
        *("ranks", "export -o OUT.md", "export -o OUT.pt.trace.json", "export -o OUT.json"),
        *("export -o OUT.prof", "export -o OUT.csv", "export -o OUT.speedscope.json"),
    ],
)
def test_a_file_without_rows_is_not_an_error(command: str, tmp_path: Path) -> None:
    nothing = records(captures.capture([Work((0, 5))])).take(np.zeros(0, np.int64))
    path = tmp_path / "net.parquet"
    with path.open("wb") as file:
        parquet.write(nothing, file)
    words = command.replace("OUT", f"{tmp_path}/out").replace("IN", str(path)).split()
    done = run(*words, path)
    assert done.code in (0, 1)
    assert done.code == 0 or done.stderr.count("\n") == 1
    for written in tmp_path.glob("out.*json"):
        json.loads(written.read_bytes())


@pytest.mark.filterwarnings("error")
def test_impossible_times_cause_no_warning_of_numpys(tmp_path: Path) -> None:
    """The reader warns of them."""
    found = records(captures.capture([Work((0, 2**62)), Work((5, 2**62)), Work((6, 2**62 + 5))]))
    with (tmp_path / "net.parquet").open("wb") as file:
        parquet.write(found, file)
    for command in ("lines", "summary"):
        run(command, tmp_path / "net.parquet")
