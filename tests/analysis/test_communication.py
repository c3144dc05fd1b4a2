"""Every part of a report agrees on which kernels are communication."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pyprof.analysis.ranks.collective_kinds import collectives
from pyprof.analysis.summary.overview import overview
from pyprof.analysis.time.intervals import EMPTY
from pyprof.inputs.source import Source
from pyprof.parse import parse, record_file
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.table import Table
from pyprof.records.records import DictionaryColumn, Records
from pyprof.render.page.parts.totals import summary as time_part
from tests.analysis.answered import answered
from tests.analysis.captures import ADD, NCCL, Range, Work, capture, write_dict
from tests.commands import run
from tests.gpu.test_kernel_roles import COMBINE, FUSED, MULTIMEM
from tests.known import known

OURS = (MULTIMEM, COMBINE, FUSED, NCCL)
"""Kernels that communicate, of libraries that each have their own names."""


def _work() -> Iterator[Work]:
    """Yield a product and a sum, which each collective half overlaps, one after the other."""
    for place, name in enumerate(OURS):
        at = 10_000 * place
        yield Work((at + 1000, at + 3000), (at, at + 100))
        yield Work((at + 2000, at + 5000), (at + 200, at + 300), name, stream=9)
        yield Work((at + 6000, at + 7000), (at + 400, at + 500), ADD)


RANGES = [
    Range("symm_mem::multimem_all_reduce_, seq = 1", (10_000 * place + 150, 10_000 * place + 350))
    for place in range(len(OURS))
]


@pytest.fixture
def records() -> Records:
    """Return records of a capture in which every kernel lies inside a library's op."""
    return parse(capture([*_work()], ranges=RANGES))


def _communicating(records: Records) -> set[str]:
    name = records.arrow("kLongName").to_pylist()
    said = COLUMNS["dir"].values(Table(records)).to_pylist()
    return {text for text, part in zip(name, said, strict=True) if part == "comm"}


def test_part_timeline_and_ranks_agree(records: Records) -> None:
    source = Source(Table(records), None)
    (device,) = known(overview(source).timeline).devices
    assert _communicating(records) == set(OURS)
    parts = {part.part: part.time_ns for part in answered(source).parts}
    assert parts["communication"] == device.communication.total == 3000 * len(OURS)
    assert device.exposed_communication.total == 2000 * len(OURS)
    signatures, rows, _ = collectives(records, 0, np.zeros(records.rows, np.int64), EMPTY)
    kinds = signatures.column("kind").take(rows.column("signature")).to_pylist()
    assert kinds == ["all_reduce", None, "all_reduce", "all_reduce"]


def test_page_and_summary_agree(records: Records, tmp_path: Path) -> None:
    """On the time by part and by interval, also for a file of an older version."""
    old = Records(
        records.rows,
        {**records.columns, "dir": DictionaryColumn(np.zeros(records.rows, np.int64), ["fprop"])},
        records.devices,
    )
    path = write_dict(tmp_path / "old.dict", old)
    assert _communicating(record_file.load(str(path))) == set(OURS)
    page = answered(Source(Table(record_file.load(str(path))), None))
    assert ("communication", "12.0 us") in [row[:2] for row in time_part.phases(page)]
    assert ("communication exposed", "8.00 us") in [card[:2] for card in time_part.cards(page)]
    lines = run("summary", "-v", path).stdout.splitlines()
    told = [line.split()[1] for line in lines if line.split()[:1] == ["communication"]]
    assert told == ["12.0", "0.012"]  # us, ms


@pytest.mark.parametrize("name", OURS)
def test_rules_take_the_same_kernels(name: str) -> None:
    work = [Work((1000, 900_000), (0, 100), name, grid=(1, 1, 1))]
    found = answered(Source(Table(parse(capture(work))), None))
    assert {advice.rule for advice in found.advice} <= {"communication"}
