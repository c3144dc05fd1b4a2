"""Two recordings of memory compared."""

from types import SimpleNamespace
from typing import cast

import pytest

from pyprof.analysis.memory.memory_diff import METRICS, compare, parse
from pyprof.answers.memory_answer import DeviceMemory, HeldMemory


def _device(name: str, **held: int) -> DeviceMemory:
    groups = tuple(
        HeldMemory(name=each, bytes=size, block_count=1, allocated_bytes=size, net_bytes=None,
                   byte_ns=None)
        for each, size in held.items()
    )  # fmt: skip
    levels = dict.fromkeys(("peak_bytes", "peak_reserved_bytes", "start_bytes", "end_bytes"), 0)
    return cast("DeviceMemory", SimpleNamespace(**levels, device=name, by={"category": groups}))


def test_changes_are_sorted_by_size_and_equal_groups_left_out() -> None:
    (device,) = compare(
        [_device("cuda:0", parameters=10, activations=50, gone=5)],
        [_device("cuda:0", parameters=10, activations=20, new=100)],
    ).devices
    changes = [(each.name, each.change_bytes) for each in device.by["category"]]
    assert changes == [("new", 100), ("activations", -30), ("gone", -5)]
    assert device.by["layer"] == ()


@pytest.mark.parametrize(
    ("a", "b", "pairs", "only_a", "only_b"),
    [
        (("cuda:0", "cuda:1"), ("cuda:1", "cuda:2"), [("cuda:1", "cuda:1")],
         ("cuda:0",), ("cuda:2",)),
        (("cuda:0",), ("cpu", "cuda:3"), [("cuda:0", "cpu")], (), ("cuda:3",)),
    ],
    ids=["by name", "without a common name, the highest peaks"],
)  # fmt: skip
def test_devices_are_paired(
    a: tuple[str, ...], b: tuple[str, ...], pairs: list[tuple[str, str]],
    only_a: tuple[str, ...], only_b: tuple[str, ...],
) -> None:  # fmt: skip
    found = compare(*([_device(name) for name in names] for names in (a, b)))
    assert [(each.a_device, each.b_device) for each in found.devices] == pairs
    assert (found.only_a, found.only_b) == (only_a, only_b)


@pytest.mark.parametrize(
    ("text", "value"),
    [("peak>2GB", 2e9), ("reserved>1GiB", 2.0**30), ("end>+5%", 0.05), ("start>0", 0.0)],
)
def test_a_limit_is_read_with_its_unit(text: str, value: float) -> None:
    limit = parse(text)
    assert limit.metric == f"{text.partition('>')[0]}_bytes"
    assert limit.value == pytest.approx(value)
    assert limit.relative is text.endswith("%")


def test_a_number_without_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="unit of bytes"):
        parse("peak>5")


def test_a_misspelt_metric_is_suggested() -> None:
    with pytest.raises(ValueError, match="peak") as refused:
        parse("peek>5%")
    assert all(name in str(refused.value) for name in METRICS)
