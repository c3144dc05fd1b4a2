"""Power of devices, and why their clocks were low."""

from pathlib import Path

import pytest

from tests.analysis import product
from tests.capture_files.metrics import kineto_counters
from tests.commands import run
from tests.readers import kineto_json


def test_each_step_has_its_energy_and_the_device_its_power(tmp_path: Path) -> None:
    watts = [300.0 + 100 * (at % 2) for at in range(len(product.TIMES))]
    events = kineto_counters("Power (W)", (product.TIMES, watts), key="", pid=0)
    for step in range(2):
        at = 100 * (step + 1)
        events.append(kineto_json.event("user_annotation", f"ProfilerStep#{step}", at - 1, 90))
        events += [kineto_json.launch(step, at + 1), kineto_json.kernel(step, at + 5, 40)]
    path = kineto_json.trace_file(tmp_path, events)
    assert "350 W on average, 400 W at most" in " ".join(run("summary", path).stdout.split())
    (device,) = run("summary", "-q", "--json", path).json["measured"]["power"]
    assert (device["device"], device["mean_w"], device["most_w"]) == (0, pytest.approx(350), 400)
    energies = {
        row["Step"]: row["Energy(mJ)"]
        for row in run("prof", "-q", "--csv", "--by", "step", path).rows
    }
    assert energies == {"0": "14", "1": "14"}


def _low_clock(path: Path, clock: list[float], **counters: list[float]) -> str:
    """Return the finding for a product on an A100 whose clock is below the peak's."""
    events = [kineto_json.launch(1, 1), kineto_json.kernel(1, 100, 400, name=product.GEMM)]
    names = {"power": "Power (W)", "heat": "Temperature (C)", "reasons": "Clock Event Reasons"}
    series = {"SM Clock (MHz)": clock, "Power (W)": [400.0]}
    series |= {names[name]: values for name, values in counters.items()}
    for name, values in series.items():
        repeated = [values[at % len(values)] for at in range(100)]
        events += kineto_counters(name, (product.TIMES[:100], repeated), key="", pid=0)
    gpu = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
    path.write_text(kineto_json.text(events, deviceProperties=[gpu]))
    answer = run("summary", "-q", "--json", path).json
    return str(answer["measured"]["throttled"]).partition("; ")[2]


def test_the_throttle_reason_is_named(tmp_path: Path) -> None:
    """The driver's if it was recorded, else inferred; a fixed clock is neither."""
    path, moved = tmp_path / "a.json", [990.0, 1010.0]
    assert _low_clock(path, moved) == "power stayed at 400 W, which looks like a power cap"
    assert _low_clock(path, [1000.0]) == ""
    assert _low_clock(path, moved, heat=[91.0]).startswith("at 91 °C, which looks like thermal")
    reasons = [4.0, 4.0, 4.0 + 0x20, 0.0]
    assert _low_clock(path, moved, heat=[91.0], reasons=reasons) == (
        "the driver names a power cap in 75 %, heat in 25 % of the samples"
    )
    assert _low_clock(path, moved, reasons=[0.0]) == ""
    assert _low_clock(path, moved, reasons=[1.0, 2.0]) == (
        "the driver names clocks set by the user in 100 % of the samples"
    )


def test_power_of_each_rank_s_own_device(tmp_path: Path) -> None:
    """Each rank sampled all devices of the machine; pauses of the samples use no energy."""
    times = [*range(100_000, 1_000_000, 100_000), *range(9_000_000, 9_500_000, 100_000)]
    for rank in range(2):
        kernel = kineto_json.kernel(1, 100, 50)
        kernel["args"]["device"] = rank
        events = [kineto_json.launch(1, 1), kernel]
        for device in range(2):
            watts = [100.0 * (device + 1)] * len(times)
            events += kineto_counters("Power (W)", (times, watts), key="", pid=device)
        info = {"rank": rank, "world_size": 2, "backend": "nccl"}
        (tmp_path / f"{rank}.json").write_text(kineto_json.text(events, distributedInfo=info))
    paths = [tmp_path / f"{rank}.json" for rank in range(2)]
    power = run("summary", "-q", "--json", *paths).json["measured"]["power"]
    assert [(one["rank"], one["device"], one["mean_w"]) for one in power] == [
        (0, 0, pytest.approx(100)), (1, 1, pytest.approx(200))
    ]  # fmt: skip
    assert power[0]["energy_j"] == pytest.approx(100 * 13 * 100e-6)
