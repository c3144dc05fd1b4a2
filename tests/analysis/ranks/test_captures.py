"""Real captures: two ranks of one host, and so one clock, in one file; a single rank."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pyprof import marker
from pyprof.analysis.time.intervals import union_of
from pyprof.answers.ranks_answer import Ranks
from tests import damage
from tests.analysis.ranks import compare
from tests.builders import CAPTURES, Range, Work, nsys_db
from tests.commands import printed, run
from tests.readers.kineto_json import kernel, launch, text

H100 = CAPTURES / "nsys2026.2-h100x2-fsdp" / "net.sqlite"
V100 = CAPTURES / "kineto-v100-resnet-ddp" / "trace.json.gz"
NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _needed(path: Path) -> Path:
    if not path.exists():
        pytest.skip("no real captures here")
    return path


@pytest.fixture(scope="module")
def h100() -> Ranks:
    return compare(_needed(H100))


def test_all_collectives_of_both_ranks_pair_up(h100: Ranks) -> None:
    """33 of each, in order, as SQL counts them."""
    query = (
        "SELECT deviceId, count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds"
        " ON id = demangledName WHERE value LIKE 'nccl%' GROUP BY 1"
    )
    counted = dict(damage.query(H100, query))
    assert [one.of for one in h100.stragglers] == [counted[0], counted[1]] == [33, 33]
    assert not h100.unmatched
    assert {speed.kind for speed in h100.groups} == {"all_to_all", "send_recv"}


def test_a_guess_that_explains_little_is_not_a_step(tmp_path: Path) -> None:
    """Ranks are not compared by what repeats in a tenth of the time."""
    said = []
    for long_ns in (100, 90_000):
        work = [
            Work(f"k{place % 4}", (at + 50, at + 90), call=(at, at + 10))
            for place, at in enumerate(range(0, 4000, 100))
        ]
        work.append(Work("long", (5000, 5000 + long_ns), call=(4100, 4110)))
        path = nsys_db(tmp_path / f"net{long_ns}.rank0.sqlite", work)
        found = compare(path)
        said.append((found.step_count, found.step_origins))
    assert said == [(10, ("repetition of 4 kernels (guessed: may be layers of a step)",)), (0, ())]


def test_the_times_of_a_rank_are_those_of_the_summary(h100: Ranks) -> None:
    for one in h100.ranks:
        rows = []
        for kind in ("KERNEL", "MEMCPY", "MEMSET"):
            times = f"SELECT start, end FROM CUPTI_ACTIVITY_KIND_{kind}"  # noqa: S608
            rows += damage.query(H100, f"{times} WHERE deviceId = {one.device}")
        start, end = zip(*rows, strict=True)
        assert one.busy_ns == union_of(np.array(start), np.array(end)).total
        assert one.rows == len(rows)
        assert one.busy_ns + one.idle_ns == one.span_ns


@pytest.mark.slow
def test_one_rank_alone_waits_for_nobody() -> None:
    shown = printed("ranks", _needed(V100))
    assert "cannot be aligned: no two ranks share timed collectives" in shown
    assert "Only one rank: nothing to compare" in shown


def _plan(rank: int) -> Iterator[tuple[tuple[int, int], dict[str, str | int]]]:
    """Yield when each of four ranks is in its collectives, in us, and their fields.

    The third comes late to each, and each one's clock is off.
    """
    pair = f"[{rank // 2 * 2}, {rank // 2 * 2 + 1}]"
    for number in range(4):
        at = rank * 1000 + 10_000 * number + 700 * number**2
        for place, (name, group, ranks, size, count) in enumerate((
            ("all_gather", str(1 + rank // 2), pair, 2, 1 << 19),
            ("all_reduce", "0", "[0, 1, 2, 3]", 4, 1 << 20),
        )):  # fmt: skip
            start = at + 2000 * place
            yield (
                (start + (300 if rank == 2 else 0), start + 1300),
                {"name": name, "group": group, "ranks": ranks, "size": size, "in": count},
            )


def _trace(folder: Path, rank: int) -> Path:
    events = []
    for corr, ((start, end), said) in enumerate(_plan(rank), 1):
        event = kernel(corr, start, end - start, name=NCCL)
        event["args"] |= {
            "Collective name": said["name"], "Process Group Name": said["group"],
            "Process Group Ranks": said["ranks"], "Group size": said["size"], "dtype": "BFloat16",
            "In msg nelems": said["in"], "Out msg nelems": 1 << 20,
        }  # fmt: skip
        events += [launch(corr, start - 50), event]
    path = folder / f"{rank}.json"
    path.write_text(text(events, distributedInfo={"backend": "nccl", "rank": rank}))
    return path


def _nsys(folder: Path, rank: int) -> Path:
    """Write an export of nsys with markers, and without payloads of NCCL."""
    work, ranges = [], []
    for (start, end), said in _plan(rank):
        call = (1000 * (start - 50), 1000 * (start - 45))
        said |= {"dtype": "bfloat16", "out": 1 << 20}
        called = marker.Call("torch.distributed", str(said.pop("name")), collective=said)
        ranges.append(Range(marker.encode_op(called), (call[0] - 9, call[1] + 9)))
        work.append(Work(NCCL, (1000 * start, 1000 * end), call=call))
    return nsys_db(folder / f"net.rank{rank}.sqlite", work, ranges)


@pytest.mark.slow
@pytest.mark.parametrize("write", [_trace, _nsys])
def test_groups_and_sizes_in_a_capture_give_bus_bandwidth(
    write: Callable[[Path, int], Path], tmp_path: Path
) -> None:
    """By hand: 2 MiB in 1 ms, times 2 (n - 1) / n of four, (n - 1) / n of two."""
    found = compare(*(write(tmp_path, rank) for rank in range(4)))
    told = {
        (speed.kind, *map(int, speed.members.split())): speed.bus_bytes_per_s
        for speed in found.groups
    }
    size = 2 << 20
    assert told == {
        ("all_reduce", 0, 1, 2, 3): pytest.approx(size * 2 * 3 / 4 / 1e-3),
        ("all_gather", 2, 3): pytest.approx(size / 2 / 1e-3),
        ("all_gather", 0, 1): pytest.approx(size / 2 / 1.3e-3),  # rank 2 is late, they are not
    }
    assert [one.clock_offset_ns for one in found.ranks] == [0, 10**6, 2 * 10**6, 3 * 10**6]
    assert found.stragglers[0].rank == 2
    assert found.stragglers[0].cost_ns == 4 * (3 + 1) * 300_000


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sqlite", "parquet", "parts"])
def test_ranks_of_one_capture_have_one_clock(form: str, tmp_path: Path) -> None:
    """Also in a parsed file, and in a dataset's file for each rank.

    The second comes 300 us later and always leaves 40 us earlier, which no offset explains.
    """
    work = [
        Work(NCCL, (at + late, at + 900_000 - early), call=(at + late - 9000, at + late - 5000),
             pid=pid, device=pid - 1)
        for pid, late, early in ((1, 0, 0), (2, 300_000, 40_000))
        for at in range(1_000_000, 50_000_000, 5_000_000)
    ]  # fmt: skip
    capture = nsys_db(tmp_path / "net.sqlite", work, [Range("layer:net", (900_000, 9_000_000))])
    parsed = {"sqlite": capture, "parquet": tmp_path / "net.parquet", "parts": tmp_path / "parts/"}
    if form != "sqlite":
        target = f"{parsed[form]}{'/' * (form == 'parts')}"
        assert run("parse", "-q", capture, "-o", target).code == 0
    found = run("ranks", "-q", parsed[form], "--json").json
    names = ("clock", "clock_offset_ns", "clock_residual_ns")
    assert [[row[name] for name in names] for row in found["ranks"]] == [[0, 0, 0]] * 2
    costs = [(row["rank"], row["cost_ns"]) for row in found["stragglers"]]
    assert costs == [(1, 3_000_000), (0, 0)]
    assert [row["transfer_ns"] for row in found["groups"]] == [580_000]  # to the middle of the ends
    assert "one clock: the 2 ranks are in one capture" in run("ranks", "-q", parsed[form]).stdout


@pytest.mark.slow
def test_a_pause_between_windows_changes_nothing(tmp_path: Path) -> None:
    tables = []
    for pause in (1_000, 3_000_000_000):
        paths = []
        for rank, (late, offset) in enumerate(((0, 0), (200_000, 7_000_000_000))):
            work = [
                Work(NCCL, (at + late, at + 700_000), call=(at + late - 9000, at + late - 5000))
                for number in range(12)
                for at in [offset + 1_000_000 * (number + 1) + (number >= 6) * pause]
            ]
            between = offset + 6_900_000
            for call, at in (("Stop", between), ("Start", between + 1 + pause)):
                api = f"cudaProfiler{call}_v4000"
                work.append(Work(kind="none", api=api, call=(at, at + 1)))
            ranges = [Range("layer:net", (offset + 900_000, offset + 990_000_000))]
            folder = tmp_path / str(pause)
            folder.mkdir(exist_ok=True)
            paths.append(nsys_db(folder / f"net.rank{rank}.sqlite", work, ranges))
        found = run("ranks", "-q", *paths, "--json").json
        for row in found["ranks"]:
            del row["source"]
        tables.append(found)
    assert tables[0] == tables[1]
    assert [row["calls"] for row in tables[0]["groups"]] == [12]
    assert tables[0]["stragglers"][0]["cost_ns"] == 12 * 200_000
    assert tables[0]["ranks"][1]["clock_offset_ns"] == 7_000_000_000
