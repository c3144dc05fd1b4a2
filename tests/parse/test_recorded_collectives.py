"""Fields of collectives: the tool's own, else those of the marker around the launch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pyprof import marker
from pyprof.marker import Call, Tensor
from pyprof.parse import parse_file
from pyprof.prof.table import Table
from tests.builders import Range, Work, nsys_db

NCCL = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GROUP: dict[str, str | int] = {"group": "1", "ranks": "[0, 2]", "size": 2}
SAID = {**GROUP, "dtype": "bfloat16", "in": 24, "out": 48}
GIVEN = (Tensor((8, 6), "bfloat16"), Tensor((4, 6), "bfloat16"))


def _marked(
    said: Mapping[str, str | int],
    at: tuple[int, int] = (90, 200),
    op: str = "all_gather_into_tensor",
    given: tuple[Tensor, ...] = GIVEN,
) -> Range:
    return Range(marker.encode_op(Call("torch.distributed", op, given, collective=said)), at)


def _launched(*names: str) -> list[Work]:
    return [
        Work(name, (1000 + 10 * place, 1005 + 10 * place), call=(100 + place, 101 + place))
        for place, name in enumerate(names)
    ]


def _collectives(folder: Path, ranges: list[Range], work: list[Work]) -> list[Any]:
    """Parse a capture; return what is known of each row's collective."""
    records = parse_file(nsys_db(folder / "net.sqlite", work, ranges))
    return [text and json.loads(text) for text in records.arrow("collective").to_pylist()]


NAMED = {"name": "all_gather_into_tensor"}
PAYLOAD = json.dumps({"NCCL communicator ID": 7, "Message size [bytes]": 48})
TOLD = {"name": "AllGather", "group": "7"}
REDUCED = {"dtype": "uint8", "in": 48, "out": 48}
OTHER = SAID | {"group": "2"}
CASES: dict[str, tuple[list[Range], dict[str, Any] | None]] = {
    "the marker around": ([_marked(SAID)], NAMED | SAID),
    "the innermost of several": (
        [_marked(SAID), _marked(OTHER, (95, 190), "all_gather_single")],
        {"name": "all_gather_single"} | OTHER),
    "the one around what says nothing": (
        [_marked(SAID), _marked({}, (95, 190), "cat")], NAMED | SAID),
    "a marker of before": ([_marked(SAID, (10, 20))], None),
    "a marker that says nothing": ([_marked({})], None),
    "keys that nobody knows": ([_marked(SAID | {"tag": 3})], NAMED | SAID),
    "the tool first": (
        [_marked(SAID), Range("ncclAllGather", (95, 190), domain=1, payload=PAYLOAD)], SAID | TOLD),
    "the tool's own amounts": (
        [_marked(SAID), Range("ncclAllReduce", (95, 190), domain=1, payload=PAYLOAD)],
        GROUP | TOLD | {"name": "AllReduce"} | REDUCED),
    "the tool alone": ([Range("ncclAllGather", (95, 190), domain=1, payload=PAYLOAD)], TOLD),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "expected"), CASES.values(), ids=CASES)
def test_a_collectives_group_is_that_of_the_tool_or_the_marker(
    ranges: list[Range], expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    assert _collectives(tmp_path, ranges, _launched(NCCL)) == [expected]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((NCCL, "CatArrayBatchedCopy"), [{**NAMED, **SAID}, None]),  # such as copies of the pieces
        ((NCCL, NCCL), [{**NAMED, **GROUP}] * 2),  # amounts are of the call
    ],
    ids=["a copy", "two collectives"],
)
def test_each_kernel_of_a_call_has_only_what_is_its_own(
    names: tuple[str, ...], expected: list[dict[str, Any] | None], tmp_path: Path
) -> None:
    assert _collectives(tmp_path, [_marked(SAID)], _launched(*names)) == expected


def test_amounts_of_a_call_are_of_none_of_its_kernels_whatever_ops_launched_them(
    tmp_path: Path,
) -> None:
    inside = [
        Range(f"c10d::{name}_", at) for name, at in (("send", (99, 101)), ("recv", (101, 103)))
    ]
    found = _collectives(tmp_path, [_marked(SAID), *inside], _launched(NCCL, NCCL))
    assert found == [{**NAMED, **GROUP}] * 2


def test_bus_bytes_follow_from_the_group_and_the_amount(tmp_path: Path) -> None:
    """An all-reduce among 8 moves 2 * 7 / 8 of its 24 elements of 2 bytes."""
    reduced = _marked({"group": "0", "size": 8}, op="all_reduce", given=GIVEN[1:])
    records = parse_file(nsys_db(tmp_path / "net.sqlite", _launched(NCCL), [reduced]))
    (params,) = Table(records).costs.params.values
    assert (params["algo_bytes"], params["ranks"], params["bus_bytes"]) == (48, 8, 84)


def _ddp(**said: str | int) -> Range:
    return Range(marker.encode_op(Call(*marker.DDP, collective=said)), (10, 10))


REDUCE = "c10d::allreduce_, op_id = 9, sizes = [[[40], [8]], [], [], [], [], []]"
NODE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 8"
REDUCER = {
    "its own all-reduce": (
        [_ddp(**GROUP, dtype="float16")], NODE, REDUCE,
        {"name": "allreduce", **GROUP, "dtype": "float16", "in": 48, "out": 48}),
    "of no known size": (
        [_ddp(**GROUP)], NODE, "c10d::allreduce_, op_id = 9", {"name": "allreduce", **GROUP}),
    "its buffers": (
        [_ddp(**GROUP, dtype="float16")], "layer:net", "c10d::broadcast_, op_id = 9",
        {"name": "broadcast", **GROUP}),
    "not in a backward pass": ([_ddp(**GROUP)], "layer:net", REDUCE, None),
    "something else": ([_ddp(**GROUP)], NODE, "c10d::allgather_, op_id = 9", None),
    "of several groups": ([_ddp(**GROUP), _ddp(**OTHER)], NODE, REDUCE, None),
    "without DDP": ([], NODE, REDUCE, None),
}  # fmt: skip


def test_two_buckets_reduced_in_one_node_have_amounts_of_their_own(tmp_path: Path) -> None:
    """As where DDP also reduces which parameters went unused."""
    ranges = [_ddp(**GROUP, dtype="float16"), Range(NODE, (80, 300), tid=12)]
    ranges += [
        Range(REDUCE.replace("40", str(count)).replace("9", str(at)), (at, at + 50), tid=12)
        for at, count in ((90, 40), (190, 12))
    ]
    work = [Work(NCCL, (10 * at, 10 * at + 5), call=(at + 5, at + 6), tid=12) for at in (90, 190)]
    assert [found.get("in") for found in _collectives(tmp_path, ranges, work)] == [48, 20]


@pytest.mark.parametrize(("said", "outer", "inner", "expected"), REDUCER.values(), ids=REDUCER)
def test_ddp_reduces_in_its_group(
    said: list[Range], outer: str, inner: str, expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    """C++ calls it on a thread of its own; if all DDP modules have one group, it is that."""
    around = [Range(outer, (80, 210), tid=12), Range(inner, (90, 200), tid=12)]
    work = [Work(NCCL, (1000, 1005), call=(100, 101), tid=12)]
    assert _collectives(tmp_path, said + around, work) == [expected]
