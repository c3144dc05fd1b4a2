"""Sets of captures in other viewers' files: what each rank's own file holds, all in one."""

import csv
import io
import json
import marshal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyprof
from pyprof import export as exporters
from pyprof.errors import PyprofError
from pyprof.export import write as exported
from pyprof.inputs.executor import Executor, Handle, InProcess, open_executor
from pyprof.prof.table import Override
from tests.analysis.captured import capture
from tests.commands import run
from tests.export.test_as_speedscope import SCHEMA

A = TypeVar("A")
T = TypeVar("T")

RANKS = 3
pytestmark = pytest.mark.usefixtures("two_workers")
FORMS = [form for form in exporters.FORMATS if not form.suffixes[0].endswith(".gz")]


@pytest.fixture(scope="module")
def workers(two_workers: None) -> Iterator[Executor]:
    del two_workers
    with open_executor(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three ranks' captures: one is slower, and the last one's clock is ahead."""
    folder = tmp_path_factory.mktemp("ranks")
    for rank in range(RANKS):
        capture(folder / f"net-rank{rank}.sqlite", slower=1 + rank % 2, steps=2,
                clock_ns=5_000_123 * (rank // 2))  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def real(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return captures of different tools as the ranks of one run; one holds two processes."""
    folder = tmp_path_factory.mktemp("real")
    for rank, name in enumerate(
        ("nsys2026.2-h100x2-fsdp/net.sqlite", "nsys2024.2-a100-pyprof-markers/net.sqlite",
         "kineto-h100-vit-inference/trace.json.gz")
    ):  # fmt: skip
        source = captures / name
        (folder / f"rank{rank}.{source.name}").symlink_to(source)
    return folder


def write(sources: Path, form: exporters.Format, folder: Path, executor: Executor) -> bytes:
    """Export a set; no other file may be left."""
    target = folder / "out"
    with target.open("w+b") as file:
        exported.write([str(sources)], form, str(target), file, Override(), executor)
    assert [*folder.iterdir()] == [target]
    return target.read_bytes()


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(
            form, id=form.module, marks=() if form.module == "as_csv" else pytest.mark.slow
        )
        for form in FORMS
    ],
)
def test_the_number_of_workers_changes_nothing(
    form: exporters.Format, ranks: Path, workers: Executor, tmp_path: Path
) -> None:
    assert write(ranks, form, tmp_path, workers) == write(ranks, form, tmp_path, InProcess())


def export(sources: Path, target: Path, *options: str) -> bytes:
    done = run("export", sources, "-o", target, *options)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    return target.read_bytes()


class Elsewhere(InProcess):
    """An executor that does not see the files of this machine."""

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        if isinstance(function, partial) and "folder" in function.keywords:
            Path(function.keywords["folder"]).rename(function.keywords["folder"] + ".else")
        return super().map(function, items, label)


def test_workers_must_see_the_place(ranks: Path, tmp_path: Path) -> None:
    (form,) = (form for form in FORMS if form.module == "as_csv")
    with pytest.raises(PyprofError, match="workers write beside the output: choose a place"):
        write(ranks, form, tmp_path, Elsewhere())


@pytest.mark.slow
def test_rows_are_those_of_the_frame(ranks: Path, tmp_path: Path) -> None:
    """Rank after rank, in each format; each row as in its rank's own file, but for its numbers."""
    frame = pyprof.load(ranks)
    table = export(ranks, tmp_path / "net.csv", "--workers", "2").decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    objects = json.loads(export(ranks, tmp_path / "net.json"))
    for name in ("rank", "sil", "idx", "opid", "start"):
        assert [int(row[name]) for row in rows] == frame[name].tolist()
        assert [row[name] for row in objects] == frame[name].tolist()
    export(ranks, tmp_path / "net.parquet")
    alone = []
    for file in sorted(ranks.iterdir()):
        export(file, tmp_path / "alone.parquet")
        alone.append(pq.read_table(tmp_path / "alone.parquet"))
    whole, numbers = pq.read_table(tmp_path / "net.parquet"), ["rank", "idx", "opid"]
    assert whole.drop(numbers).equals(pa.concat_tables(alone).drop(numbers), check_metadata=True)
    for name in numbers:
        assert whole[name].to_pylist() == frame[name].tolist()
        assert whole.schema.field(name).equals(alone[0].schema.field(name), check_metadata=True)


def test_stacks_add_up(ranks: Path, tmp_path: Path) -> None:
    """Calls and times of each frame are those of all ranks."""
    whole = marshal.loads(export(ranks, tmp_path / "all.prof"))  # noqa: S302 - our own
    sums: Counter[tuple[Any, int]] = Counter()
    for file in ranks.iterdir():
        alone = marshal.loads(export(file, tmp_path / "one.prof"))  # noqa: S302 - our own
        for frame, entry in alone.items():
            for place in range(4):
                sums[frame, place] += entry[place]
    assert {(frame, place): whole[frame][place] for frame, place in sums} == pytest.approx(sums)


def test_streams_of_all_ranks_are_profiles(ranks: Path, tmp_path: Path) -> None:
    """Each as in its rank's own file, under its rank's name; the first has all stacks once."""
    jsonschema = pytest.importorskip("jsonschema")
    whole = json.loads(export(ranks, tmp_path / "all.speedscope.json"))
    jsonschema.validate(whole, json.loads(SCHEMA.read_text()))
    in_all, *streams = spelt(whole)
    expected: Counter[tuple[str, ...]] = Counter()
    for rank, file in enumerate(sorted(ranks.iterdir())):
        first, *alone = spelt(json.loads(export(file, tmp_path / "one.speedscope.json")))
        for stack, weight in first[1]:
            expected[stack] += weight
        assert streams[: len(alone)] == [(f"rank {rank}: {name}", rows) for name, rows in alone]
        streams = streams[len(alone) :]
    assert not streams
    assert in_all[1] == sorted(expected.items(), key=lambda entry: -entry[1])


def spelt(content: dict[str, Any]) -> list[tuple[str, list[tuple[tuple[str, ...], int]]]]:
    """Return each profile's name, and its stacks in words with their weights."""
    names = [frame["name"] for frame in content["shared"]["frames"]]
    return [
        (profile["name"], [(tuple(names[frame] for frame in stack), weight) for stack, weight
                           in zip(profile["samples"], profile["weights"], strict=True)])
        for profile in content["profiles"]
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["ranks", pytest.param("real", marks=pytest.mark.slow)])
def test_events_of_all_ranks_are_on_one_time(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each event is where its rank's own file has it, to the ns; processes and flows are apart."""
    folder: Path = request.getfixturevalue(name)
    whole = trace(folder, tmp_path / "all.pt.trace.json")
    alone = [trace(file, tmp_path / "one.pt.trace.json") for file in sorted(folder.iterdir())]
    assert timed(whole) == sum(map(timed, alone), Counter())
    labels = {e["pid"]: e["args"]["labels"] for e in events(whole, "M", "process_labels")}
    assert Counter(labels.values()) == {
        f"rank {rank}": len({event["pid"] for event in one["traceEvents"]})
        for rank, one in enumerate(alone)
    }
    assert {event["pid"] for event in whole["traceEvents"]} == labels.keys()
    starts, ends = (Counter(e["id"] for e in events(whole, phase, "ac2g")) for phase in "sf")
    assert starts == ends
    assert len(starts) == sum(len(events(one, "s", "ac2g")) for one in alone)
    assert set(starts.values()) == {1}
    read, frame = pyprof.load(tmp_path / "all.pt.trace.json"), pyprof.load(folder)
    assert sorted(read["sil"]) == sorted(frame["sil"])
    args = (event.get("args", {}) for event in whole["traceEvents"])
    calls = {each["External id"] for each in args if "External id" in each}
    assert calls == {*frame["opid"]}


def trace(source: Path, target: Path) -> dict[str, Any]:
    """Export a timeline and read it, times as exact decimals."""
    assert run("export", "-q", source, "-o", target).code == 0
    found: dict[str, Any] = json.loads(target.read_bytes(), parse_float=Decimal)
    return found


def events(content: dict[str, Any], phase: str, name: str) -> list[dict[str, Any]]:
    return [e for e in content["traceEvents"] if (e["ph"], e["name"]) == (phase, name)]


def timed(content: dict[str, Any]) -> Counter[tuple[object, ...]]:
    """Count what is the case when, by the clock."""
    base = content["baseTimeNanoseconds"]
    return Counter(
        (
            e["ph"],
            e["name"],
            e["tid"],
            base + 1000 * e["ts"],
            e.get("dur"),
            str({key: value for key, value in e.get("args", {}).items() if key != "External id"}),
        )
        for e in content["traceEvents"]
        if "ts" in e
    )
