"""Steps of each GPU."""

from pathlib import Path

import numpy as np

from pyprof.analysis.report.devices import device_steps
from pyprof.analysis.summary.overview import overview
from pyprof.inputs import source
from tests.builders import Range, Work, nsys_db


def test_times_of_a_gpu_beside_another_are_of_the_chosen_steps(tmp_path: Path) -> None:
    """From the end of the previous step on the GPU."""
    work = [
        Work("mm", (at + 100, at + 200 + 50 * device), (at, at + 9), device=device)
        for at in (0, 1000, 2000) for device in range(2)
    ]  # fmt: skip
    ranges = [Range(f"step {step}", (1000 * step, 1000 * step + 900)) for step in range(3)]
    net = source.load(str(nsys_db(tmp_path / "net.sqlite", work, ranges)))
    view = overview(net, "0:2")
    times = device_steps(net.table.records, view)
    for found, first, second in (
        (times.duration_ns, [100, 1000], [150, 1000]),
        (times.computing_ns, [100, 100], [150, 150]),
    ):
        assert np.array_equal(found, [[*first, np.nan], [*second, np.nan]], equal_nan=True)
