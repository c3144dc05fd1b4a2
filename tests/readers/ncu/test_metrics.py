"""Metrics of Nsight Compute by name."""

import pytest

from pyprof.readers.ncu.metrics import known_name, measured
from pyprof.readers.ncu.tables import Kernel, Numbers, Value


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("gpu__time_duration.sum", "gpu__time_duration.sum"),
        ("Duration gpu__time_duration.sum", "gpu__time_duration.sum"),
        ("Duration", "Duration"),
        ("Traffic (dram__bytes_read.sum)", "dram__bytes_read.sum"),
        ("Traffic (pmsampling:dram__bytes_read.sum)", None),
        ("sm__sass_thread_inst_executed_op_ffma_pred_on.sum",) * 2,
        ("Some Other Metric", None),
    ],
)
def test_a_metric_is_known_by_its_counter_or_its_title(title: str, name: str | None) -> None:
    assert known_name(title) == name


def _measured(metrics: dict[str, str], cc_major: int | None = None) -> dict[str, float]:
    kernel = Kernel({}, {name: Value(text, "") for name, text in metrics.items()})
    return measured(kernel, Numbers([kernel]), cc_major)


def test_flops_need_all_three_counts_of_float32() -> None:
    counts = {f"sm__sass_thread_inst_executed_op_f{op}_pred_on.sum": "8" for op in ("add", "mul")}
    assert "flops" not in _measured(counts)
    counts["sm__sass_thread_inst_executed_op_ffma_pred_on.sum"] = "8"
    assert _measured(counts)["flops"] == 8 + 8 + 2 * 8
