"""Names on pages, and rows that are left out."""

import pytest

from pyprof.answers.page.report_answer import UsedDevice
from pyprof.render.page.tables import (
    amount,
    device_name,
    of_numbers,
    sortable,
    without_folders,
)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("load '/home/alice/data/x.so' failed", "load 'x.so' failed"),
        ("C:\\Users\\alice\\run.py:3 waits", "run.py:3 waits"),
        ("from /mnt/a/b.py and /c/d.py", "from b.py and d.py"),
        ("in alice/runs/x.py", "in x.py"),
        ("12 FLOP/s of 3 TFLOP/s", "12 FLOP/s of 3 TFLOP/s"),
        ("compute/memory", "compute/memory"),
    ],
)
def test_folders_are_left_out(sentence: str, expected: str) -> None:
    """A path keeps its file's name; a slash between words is not a path."""
    assert without_folders(sentence) == expected


def test_rows_that_are_left_out_are_counted_with_their_time() -> None:
    made = sortable([30, 20, 10], [(of_numbers("ns"), amount)], 1, time_ns=lambda ns: ns)
    assert (len(made.rows), made.left_out, made.left_out_ns) == (1, 2, 30)


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (UsedDevice("GPU", 1, 12, 145), "GPU 1, rank 12"),
        (UsedDevice("GPU", 0, None, 145), "GPU 0, process 145"),
        (UsedDevice("GPU", None, 3, -1), "GPU, rank 3"),
        (UsedDevice("NPU", None, None, -1), "NPU"),
        (UsedDevice("CPU", 0, None, 145), "CPU, process 145"),
    ],
)
def test_a_device_is_named_by_what_is_known(device: UsedDevice, name: str) -> None:
    assert device_name(device) == name
