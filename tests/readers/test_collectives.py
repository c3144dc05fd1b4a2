"""What tools say of collectives is kept with the kernels that are theirs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pyprof import readers
from pyprof.parse import parse
from tests.builders import Range, Work, nsys_db
from tests.readers.kineto_json import kernel, launch, op, read

if TYPE_CHECKING:
    from pathlib import Path

NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _kineto(folder: Path, **args: object) -> dict[str, Any]:
    event = kernel(1, 20, name=NCCL)
    event["args"] |= args
    capture = read(folder, [op("c10d::allreduce_", 1, 9), launch(1, 2), event])
    (found,) = capture.activities.column("collective").to_pylist()
    return json.loads(found) if found else {}


def test_a_trace_tells_group_and_size(tmp_path: Path) -> None:
    """As torch 2.3 and later write it on the kernel's event."""
    said = {
        "Collective name": "allreduce", "Process Group Name": "3", "Process Group Ranks": "[0, 4]",
        "Group size": 2, "dtype": "BFloat16", "In msg nelems": 1024, "Out msg nelems": 1024,
    }  # fmt: skip
    assert _kineto(tmp_path, **said) == {
        "name": "allreduce", "group": "3", "ranks": "[0, 4]", "size": 2, "dtype": "BFloat16",
        "in": 1024, "out": 1024,
    }  # fmt: skip


def test_numbers_and_lists_of_other_versions_are_the_same_texts(tmp_path: Path) -> None:
    """What is not said is not there."""
    said = {"Collective name": "allreduce", "Process Group ID": 3, "Process Group Ranks": [0, 4]}
    assert _kineto(tmp_path, **said) == {"name": "allreduce", "group": "3", "ranks": "[0, 4]"}


def test_a_trace_that_says_nothing_has_nothing(tmp_path: Path) -> None:
    """Unknown is null."""
    assert _kineto(tmp_path) == {}


def _payload(communicator: object, size: object) -> str:
    return json.dumps({"NCCL communicator ID": communicator, "Message size [bytes]": size})


def _nsys(folder: Path, *ranges: Range) -> dict[str, Any] | None:
    work = [Work(NCCL, call=(100, 110)), Work("gemm", call=(105, 109), at=(5, 9))]
    capture = readers.read(nsys_db(folder / "net.sqlite", work, ranges))
    column = dict(zip(*(capture.activities.column(n).to_pylist() for n in ("name", "collective")),
                      strict=True))  # fmt: skip
    assert column["gemm"] is None
    found = column[NCCL]
    return None if found is None else json.loads(found)


SAID = {"name": "AllReduce", "group": "77", "dtype": "uint8", "in": 4096, "out": 4096}
CALL = Range("ncclAllReduce", (90, 120), domain=1, payload=_payload(77, 4096))
ALL_GATHER = Range("ncclAllGather", (90, 120), domain=1, payload=_payload(77, 4096))
GROUPED = Range("ncclAllReduce", (80, 90), domain=1, payload=_payload("7,7", "4,096"))
NSYS = {
    "launched inside the call": ([CALL], SAID),
    "launched when its group ends": (
        [GROUPED, Range("ncclGroupEnd", (95, 120), domain=1)], SAID),
    "a call that was over": ([GROUPED], None),
    "a call of another thread": (
        [Range("ncclAllReduce", (90, 120), tid=99, domain=1, payload=_payload(77, 1))], None),
    "a group that ended before": (
        [GROUPED, Range("ncclGroupEnd", (91, 95), domain=1)], None),
    "no payloads": ([Range("ncclAllReduce", (90, 120), domain=1)], None),
    "no JSON": (
        [Range("ncclAllReduce", (90, 120), domain=1, payload="{NCCL communicator ID")], None),
    "a part of the message": ([ALL_GATHER], {"name": "AllGather", "group": "77"}),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "expected"), NSYS.values(), ids=NSYS)
def test_nccl_s_payloads_tell_the_communicator(
    ranges: list[Range], expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    """Of the call in which, or in whose group, the kernel was launched; of no other."""
    assert _nsys(tmp_path, *ranges) == expected


def test_records_keep_it(tmp_path: Path) -> None:
    """Through parse, as one more text."""
    path = nsys_db(tmp_path / "net.sqlite", [Work(NCCL, call=(100, 110))], [CALL])
    (row,) = parse(readers.read(path)).table().to_pylist()
    assert json.loads(row["collective"]) == SAID
