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
        ("pmsampling:dram__bytes.sum", None),
        ("sm__sass_thread_inst_executed_op_ffma_pred_on.sum",) * 2,
        ("Some Other Metric", None),
    ],
)
def test_a_metric_is_known_by_its_counter_or_its_title(title: str, name: str | None) -> None:
    assert known_name(title) == name


def _measured(metrics: dict[str, str], cc_major: int | None = None) -> dict[str, float]:
    kernel = Kernel({}, {name: Value(text, "") for name, text in metrics.items()})
    return measured(kernel, Numbers([kernel]), cc_major)


def test_duration_is_cycles_over_clock() -> None:
    found = _measured(
        {"sm__cycles_elapsed.avg": "1000", "sm__cycles_elapsed.avg.per_second": "1e9"}
    )
    assert found["duration_ns"] == pytest.approx(1000)


def test_idle_tensor_cores_are_0_only_if_all_pipes_were_collected() -> None:
    metrics = {"sm__inst_executed_pipe_tensor.sum": "0"}
    assert _measured(metrics, 8)["tensor_insts"] == 0
    assert "tensor_insts" not in _measured(metrics, 10)


def test_flops_need_all_three_counts_of_float32() -> None:
    counts = {f"sm__sass_thread_inst_executed_op_f{op}_pred_on.sum": "8" for op in ("add", "mul")}
    assert "flops" not in _measured(counts)
    counts["sm__sass_thread_inst_executed_op_ffma_pred_on.sum"] = "8"
    assert _measured(counts)["flops"] == 8 + 8 + 2 * 8
