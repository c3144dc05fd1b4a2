"""Ranges that name data loading, whoever wrote them."""

from pathlib import Path

from pyprof.analysis.time.loading import loading_ranges
from pyprof.readers import read
from tests.builders import Range, Work, nsys_db


def test_ranges_of_data_loaders_are_found_by_name(tmp_path: Path) -> None:
    names = ("DataLoader.__next__", "get_batch", "forward", "optimizer")
    ranges = [Range(name, (10 * place, 10 * place + 5)) for place, name in enumerate(names)]
    path = nsys_db(
        tmp_path / "net.sqlite", [Work(call=(1, 2))], [*ranges, Range("get_batch", (90, 95))]
    )
    found = loading_ranges(read(path))
    assert set(found) == {"DataLoader.__next__", "get_batch"}
    start, end = found["get_batch"]
    assert (end - start).tolist() == [5, 5]
