"""Bytes and differences of memory as text."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from pyprof.allocations import read
from pyprof.analysis.memory.held_memory import Moment
from pyprof.analysis.memory.peaks import highest_first
from pyprof.answers.memory_answer import PossibleChange, TimedMemory
from pyprof.render.text.memory_text import (
    _describe_held,
    _time_table,
    change_cells,
    sentences,
    signed,
    size,
)
from tests.allocations import built
from tests.analysis.memory.test_peaks import analysed


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (1500, "1.5 kB"), (2_000_000, "2 MB"), (3 * 10**9, "3 GB")]
)
def test_sizes_have_a_decimal_prefix(value: int, text: str) -> None:
    assert size(value) == text


def test_a_difference_has_its_sign() -> None:
    assert (signed(1500), signed(-1500)) == (f"+{size(1500)}", f"-{size(1500)}")


def test_unused_memory_is_shown_with_its_pieces(tmp_path: Path) -> None:
    """For want of a large one an allocation may fail."""
    device = built.Device(segment_bytes=10_240)
    hole = device.alloc(2048)
    device.alloc(512)
    device.free(hole)
    device.alloc(5120)
    shown = "\n".join(sentences(analysed(built.write(tmp_path / "x.pickle", device))))
    assert "unused in 2 pieces, the largest 2.56 kB" in shown


def test_what_was_held_at_a_moment_is_shown_instead_of_the_peak(tmp_path: Path) -> None:
    device = built.Device()
    device.free(device.alloc(3000, built.user(1)))
    device.alloc(1000, built.user(2))
    recorded = [read.read(built.write(tmp_path / "x.pickle", device))]
    (found,) = highest_first(recorded, at=Moment(None, 3))
    shown = "\n".join(chain.from_iterable(_describe_held(found, ["line"], 9)))
    assert "train.py:2" in shown
    assert "train.py:1" not in shown


def test_a_peak_known_as_an_interval_differs_by_an_interval(tmp_path: Path) -> None:
    """From a peak of 1024 bytes."""
    device = built.Device()
    device.alloc(1024)
    (found,) = highest_first([read.read(built.write(tmp_path / "x.pickle", device))])
    known = PossibleChange(change="", peak_bytes=700, saved_bytes=324, assumes="")
    assert change_cells(found, known) == ("700 B", "-324 B")
    interval = replace(known, low_bytes=500, high_bytes=1100)
    assert change_cells(found, interval) == ("500 B to 1.1 kB", "-524 B to +76 B")


def test_bytes_times_time_are_unknown_without_times() -> None:
    timed = [TimedMemory(name, 5, 5, known, 7, 1) for name, known in (("a", 2e15), ("b", None))]
    rows = [line.split() for line in _time_table("op", timed, 9)][-2:]
    assert [row[5] for row in rows] == ["2", "-"]
