"""Power and clocks next to a trace of torch.profiler, with a stand-in for NVML."""

import ctypes
import gzip
import json
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pyprof.capture.kineto import device_monitor
from pyprof.capture.kineto.device_monitor import DeviceMonitor, Nvml, Reading
from pyprof.readers import read
from tests.capture.conftest import Capture
from tests.known import known, raising


class _Device:
    def read(self) -> Sequence[Reading]:
        return [Reading(321.5, 1395, None, 0x20)]


SCRIPT = "import torch\nfor _ in range(3):\n    torch.ones(64, 64) @ torch.ones(64, 64)\n"


def test_readings_are_counters_of_the_trace(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_monitor, "nvml", _Device)
    trace = read(known(capture(SCRIPT, metrics=True).path))
    samples = trace.samples.to_pylist()
    assert {row["metric"] for row in samples} == {"power_w", "clock_hz", "clock_reasons"}
    assert {row["value"] for row in samples} == {321.5, 1.395e9, 0x20}
    starts = trace.ranges.column("start").to_pylist()
    assert min(starts) - 1e9 < samples[0]["time"] < max(starts) + 1e9


class _Library:
    """NVML with one device, 5, without a temperature."""

    def __init__(self, fails: int = 0) -> None:
        self._fails = fails

    def nvmlInit_v2(self) -> int:  # noqa: N802 - NVML's name
        return self._fails

    def nvmlDeviceGetHandleByIndex_v2(self, number: int, handle: Any) -> int:  # noqa: ANN401, N802 - as above
        handle._obj.value = number
        return int(number != 5)

    def nvmlDeviceGetPowerUsage(self, handle: ctypes.c_void_p, value: Any) -> int:  # noqa: ANN401, N802 - as above
        value._obj.value = 250_500 if handle.value == 5 else 0
        return 0

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int, value: Any) -> int:  # noqa: ANN401, N802 - as above
        del handle
        value._obj.value = {1: 1410}[kind]
        return 0

    def nvmlDeviceGetTemperature(self, *_: object) -> int:  # noqa: N802 - as above
        return 3

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object, value: Any) -> int:  # noqa: ANN401, N802 - as above
        del handle
        value._obj.value = 4
        return 0


def test_the_drivers_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_monitor, "_library", _Library)
    assert Nvml([5]).read() == [Reading(250.5, 1410, None, 4)]
    with pytest.raises(OSError, match="no device 4"):
        Nvml([4])
    monkeypatch.setattr(device_monitor, "_library", lambda: _Library(fails=9))
    with pytest.raises(OSError, match="initialised"):
        Nvml([5])


def test_it_reads_at_both_ends() -> None:
    monitor = DeviceMonitor(_Device().read, interval_s=60)
    monitor.start()
    monitor.start()
    monitor.stop()
    monitor.stop()
    events = json.loads(b"[0" + monitor.events(b'"baseTimeNanoseconds": 1000,') + b"]")[1:]
    assert len([event for event in events if event["name"] == "Power (W)"]) == 2
    assert all(event["pid"] == 0 for event in events)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("the driver's library NVML was not found"), ": the driver's library"),
        *(
            (error, "")
            for error in (RuntimeError("MIG"), AttributeError("nvmlInit_v2"), KeyError(0))
        ),
    ],
)
def test_whatever_the_driver_says_the_rest_is_captured(
    error: Exception, said: str, capture: Capture, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Torch has no number for a MIG instance, and old drivers lack functions."""
    monkeypatch.setattr(device_monitor, "nvml", raising(error))
    path = known(capture(SCRIPT, metrics=True).path)
    assert read(path).samples.num_rows == 0
    assert not [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
                if e.get("ph") == "C"]  # fmt: skip
    assert f"no power or clocks are sampled{said}" in capsys.readouterr().err


@pytest.mark.filterwarnings("error")
def test_a_device_that_goes_away_ends_the_readings_only() -> None:
    readings = iter([[Reading(100, None, None)]])
    monitor = DeviceMonitor(lambda: next(readings), interval_s=0)
    monitor.start()
    monitor.stop()
    assert monitor.events(b"").count(b"Power") == 1
