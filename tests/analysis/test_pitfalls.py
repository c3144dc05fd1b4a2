"""Pitfalls of captures: a small capture with each, and one without."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof import schema
from pyprof.analysis import pitfalls
from pyprof.capture.under_profiler import database
from tests import damage
from tests.analysis.captures import Api, Range, Work
from tests.analysis.captures import capture as described

OP = "aten::mm, seq = 4, op_id = 1, sizes = [[2, 2], [2, 2]]"


def kernels(count: int, *, late: int = 100, call: int = 10) -> list[Work]:
    """Return kernels that start `late` ns after their launch, a call of `call` ns, does."""
    return [
        Work((at + late, at + late + 50), (at, at + call), "gemm")
        for at in range(1000, 1000 * count + 1000, 1000)
    ]


def capture(
    work: Sequence[Work],
    texts: Sequence[str] = (OP,),
    *,
    api: Sequence[Api] = (),
    device: bool = True,
    warnings: tuple[str, ...] = (),
) -> schema.Capture:
    net = described(work, api, [Range(text, (0, 9)) for text in texts], pids=2)
    devices = net.devices if device else net.devices.slice(0, 0)
    return replace(net, devices=devices, warnings=warnings)


def unnested() -> schema.Capture:
    net = capture(kernels(2))
    style = pa.array([schema.FREE], schema.RANGES.field("style").type)
    place = net.ranges.column_names.index("style")
    return replace(net, ranges=net.ranges.set_column(place, "style", style))


def test_a_capture_without_pitfalls_has_only_the_warnings_of_the_reader() -> None:
    """That ranges are missing is said once."""
    assert pitfalls.find_pitfalls(capture(kernels(30))) == []
    assert pitfalls.find_pitfalls(capture(kernels(5, call=200))) == []
    warned = capture(kernels(2), texts=(), warnings=("lost records", "no NVTX ranges"))
    assert pitfalls.find_pitfalls(warned) == ["lost records", "no NVTX ranges"]


COLLECTIVE = "{'mod': 'c10d', 'op': 'allreduce', 'args': []}"
TWO_PROCESSES = [*kernels(1), replace(kernels(2)[1], pid=2)]
SIDE_BY_SIDE = [*kernels(3), *(replace(each, pid=2, call=None) for each in kernels(3))]
OTHER_STREAM = [*kernels(3), *(replace(each, stream=8, call=None) for each in kernels(3))]
EMULATED = [replace(each, name="oz2_int8_dgemm_kernel") for each in kernels(2)]
LOST = replace(capture(kernels(4)), activities=schema.ACTIVITIES.empty_table())
ALLOCATIONS = [Api("cudaMalloc", (at, at + 5)) for at in range(12)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (capture(kernels(30, call=200)), "CUDA_LAUNCH_BLOCKING=1"),
        (capture(kernels(2, late=-5)), "2 kernels started before the launch"),
        (capture(kernels(1, late=-5)), "1 kernel started before the launch"),
        (capture(kernels(2), texts=()), "no ranges at all"),
        (capture(kernels(2), texts=("aten::mm, op_id = 1, sizes = [[2]]",)), "no sequence numbers"),
        (capture(kernels(2), texts=("aten::mm, seq = 4",)), "no shapes"),
        (capture(kernels(2), texts=("aten::mm, seq = 4", COLLECTIVE)), "no shapes"),
        (capture([]), "no GPU work was captured (only 1 range"),
        (LOST, "kernels were launched (4), but none was recorded"),
        (
            capture([*kernels(2), replace(kernels(1)[0], device=1)], device=False),
            "the peaks of devices 0, 1 are",
        ),
        (unnested(), "they name no op, and layers only for what their own thread launches"),
        (capture(TWO_PROCESSES), "2 processes used a GPU"),
        (capture(SIDE_BY_SIDE), "2 processes used a GPU"),  # and no stream overlaps another
        (capture(kernels(2), api=ALLOCATIONS), "12 allocations by the driver"),
        (capture(kernels(2), device=False), "the peaks of device 0 are unknown"),
        (capture(OTHER_STREAM), "add up to 0.0 ms in 0.0 ms"),
        (capture(EMULATED), "emulated on integer units"),
    ],
)
def test_each_pitfall_is_one_sentence(given: schema.Capture, said: str) -> None:
    (text,) = pitfalls.find_pitfalls(given)
    assert said in text


@pytest.mark.parametrize(("name", "known"), [("Max 1550", True), ("GPU of tomorrow", False)])
def test_a_card_without_a_count_of_multiprocessors_may_have_peaks(
    name: str, *, known: bool
) -> None:
    net = capture(kernels(2))
    devices = schema.table(schema.DEVICES, {"device": [0], "name": [name]})
    found = pitfalls.find_pitfalls(replace(net, devices=devices))
    assert found == ([] if known else ["the peaks of device 0 are unknown: eff needs --gpu NAME"])


def test_a_file_with_the_environment_says_so(tmp_path: Path) -> None:
    """Others are known to hold none."""
    path = damage.sql(
        tmp_path / "net.sqlite",
        "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name, value)",
        "CREATE TABLE PROCESSES (name)",
        "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('TOKEN', 'secret')",
    )
    (said,) = database.private_content(path)
    assert "TARGET_INFO_SYSTEM_ENV: the machine and its environment" in said
    assert "secret" not in said
    other = tmp_path / "trace.json"
    other.write_text("{}")
    assert database.private_content(other) == []
