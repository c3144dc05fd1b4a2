"""Sets of captures in one file: as each rank's own file, on any executor."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyprof
from pyprof import export as exporters
from pyprof.errors import PyprofError
from pyprof.export import write as exported
from pyprof.inputs.executor import Executor, Handle, InProcess, open_executor
from pyprof.prof.table import Override
from tests.export.exported import quietly

A = TypeVar("A")
T = TypeVar("T")

pytestmark = pytest.mark.usefixtures("two_workers")
FORMS = [form for form in exporters.FORMATS if not form.suffixes[0].endswith(".gz")]


@pytest.fixture(scope="module")
def workers(two_workers: None) -> Iterator[Executor]:
    del two_workers
    with open_executor(2) as executor:
        yield executor


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
            form, id=form.module, marks=() if form.module == "as_csv" else pytest.mark.long
        )
        for form in FORMS
    ],
)
def test_the_number_of_workers_changes_nothing(
    form: exporters.Format, ranks: Path, workers: Executor, tmp_path: Path
) -> None:
    assert write(ranks, form, tmp_path, workers) == write(ranks, form, tmp_path, InProcess())


class Elsewhere(InProcess):
    """An executor that does not see the files of this machine."""

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        if isinstance(function, partial) and "folder" in function.keywords:
            Path(function.keywords["folder"]).rename(function.keywords["folder"] + ".else")
        return super().map(function, items, label)


def test_workers_must_see_the_output_folder(ranks: Path, tmp_path: Path) -> None:
    (form,) = (form for form in FORMS if form.module == "as_csv")
    with pytest.raises(PyprofError, match="workers write beside the output: choose a place"):
        write(ranks, form, tmp_path, Elsewhere())


@pytest.mark.slow
def test_rows_are_those_of_the_frame(ranks: Path, tmp_path: Path) -> None:
    """Rank after rank, in each format, as in each rank's own file except for row numbers."""
    frame = pyprof.load(ranks)
    table = quietly(ranks, tmp_path / "net.csv", "--workers", "2").decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    objects = json.loads(quietly(ranks, tmp_path / "net.json"))
    for name in ("rank", "pid", "sil", "idx", "opid", "start"):
        assert [int(row[name]) for row in rows] == frame[name].tolist()
        assert [row[name] for row in objects] == frame[name].tolist()
    quietly(ranks, tmp_path / "net.parquet")
    alone = []
    for file in sorted(ranks.iterdir()):
        quietly(file, tmp_path / "alone.parquet")
        alone.append(pq.read_table(tmp_path / "alone.parquet"))
    whole, numbers = pq.read_table(tmp_path / "net.parquet"), ["rank", "idx", "opid"]
    assert whole.drop(numbers).equals(pa.concat_tables(alone).drop(numbers), check_metadata=True)
    for name in numbers:
        assert whole[name].to_pylist() == frame[name].tolist()
        assert whole.schema.field(name).equals(alone[0].schema.field(name), check_metadata=True)
