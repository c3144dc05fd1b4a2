"""Work is what is on a device's track, in any category; unknown tracks are named."""

from pathlib import Path

import pytest

from pyprof import schema
from pyprof.errors import CaptureError
from tests.commands import run
from tests.readers.kineto_json import Event, event, kernel, launch, op, read, trace_file
from tests.readers.test_nsys import rows


def label(pid: object, labels: str, name: str = "python") -> list[Event]:
    """Describe a process as Kineto does."""
    described = (("process_name", {"name": name}), ("process_labels", {"labels": labels}))
    return [{"ph": "M", "name": key, "pid": pid, "tid": 0, "ts": 0, "args": args}
            for key, args in described]  # fmt: skip


def device_event(category: str, corr: int, *, pid: object = 0, name: str = "matmul") -> Event:
    return event(category, name, 100 * corr + 40, 7.5, pid=pid, tid=3, correlation=corr)


CATEGORIES = ("mtia_ccp_events", "mtia_workloadd", "privateuse1_kernel", "hpu_op", "of no list")


@pytest.mark.parametrize("category", CATEGORIES)
def test_events_on_a_labelled_track_are_work_in_any_category(category: str, tmp_path: Path) -> None:
    events = [*label(7, "CPU"), *label(5, "MTIA 0"), *label(6, "MTIA 1")]
    for corr in (1, 2):
        events += [op("aten::mm", 100 * corr, 20), launch(corr, 100 * corr + 5)]
        events.append(device_event(category, corr, pid=4 + corr))
    capture = read(tmp_path, events)
    assert rows(capture.activities, "start", "end", "device", "stream", "corr", "name") == [
        (140_000, 147_500, 0, 3, 1, "matmul"),
        (240_000, 247_500, 1, 3, 2, "matmul"),
    ]
    assert rows(capture.devices, "device", "name") == [(0, "MTIA"), (1, "MTIA")]
    assert not any("no GPU work" in warning for warning in capture.warnings)


def test_an_event_that_names_device_and_stream_is_work_without_any_label(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 20),
        launch(1, 5),
        event("xyz", "matmul", 40, 7.5, pid=4, tid=3, device=4, stream=9, correlation=1),
    ]
    capture = read(tmp_path, events)
    assert rows(capture.activities, "device", "stream", "corr") == [(4, 9, 1)]


@pytest.mark.parametrize(
    "category", ["gpu_user_annotation", "cuda_sync", "overhead", "cuda_event", "mlu_notifier"]
)
def test_annotations_and_waits_on_a_device_are_not_work(category: str, tmp_path: Path) -> None:
    events = [*label(0, "GPU 0"), launch(1, 5), kernel(1, 20), device_event(category, 1)]
    assert read(tmp_path, events).activities.num_rows == 1


def test_copies_and_fills_are_known_by_name_or_category(tmp_path: Path) -> None:
    events = [
        *label(0, "MTIA 0"),
        device_event("mtia_ccp_events", 1, name="Memcpy HtoD (Pinned -> Device)"),
        device_event("memset_event", 2, name="zero"),
    ]
    capture = read(tmp_path, events)
    assert rows(capture.activities, "kind", "name") == [
        (schema.MEMCPY, "[CUDA memcpy HtoD]"),
        (schema.MEMSET, "[CUDA memset]"),
    ]


def test_an_unknown_track_is_named_with_its_time(tmp_path: Path) -> None:
    events = [op("aten::mm", 0, 20), event("busy", "step", 3, 2500, pid=99, tid=3)]
    capture = read(tmp_path, [*events, *label(99, "", name="accelerator X")])
    (said, *others) = capture.warnings
    assert "track 'accelerator X' (1 events, 2.500 ms)" in said
    assert not any("no GPU work" in warning for warning in others)
    with pytest.raises(CaptureError, match="track '99'"):
        read(tmp_path, events[1:])


def test_an_unknown_category_of_a_host_is_neither_work_nor_a_warning(tmp_path: Path) -> None:
    events = [op("aten::mm", 0, 20), launch(1, 5), kernel(1, 20), event("enqueue", "q", 3, 2)]
    capture = read(tmp_path, [*label(7, "CPU"), *events])
    assert (capture.activities.num_rows, capture.warnings) == (1, ())


def test_devices_are_called_as_their_users_call_them(tmp_path: Path) -> None:
    events = [*label(7, "CPU"), *label(0, "MTIA 0"), op("aten::mm", 100, 20), launch(1, 105)]
    path = trace_file(tmp_path, [*events, device_event("mtia_ccp_events", 1)])
    said = run("summary", path).stdout
    assert "MTIA 0" in said
    assert "of MTIA time" in said
    assert "GPU 0" not in said
