"""Collectives of a group by kind, algorithm and size."""

from dataclasses import replace

import numpy as np
import pytest

from pyprof import schema
from pyprof.analysis.ranks.collective_kinds import algorithm, collective, collectives
from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.analysis.time.intervals import EMPTY
from tests.analysis.captures import Range, Work, capture, records
from tests.analysis.ranks.literal import Collective, gathered

MS = 1_000_000
THREAD = 11
"""The thread that calls."""


def _calls(*calls: tuple[str, int | None]) -> list[Collective]:
    """Return the same calls, of a kind and size, of two ranks."""
    return [
        Collective(rank, (place * MS, place * MS + 500), kind=kind, size=2, bytes=size)
        for rank in (0, 1)
        for place, (kind, size) in enumerate(calls)
    ]


def _keys(*calls: tuple[str, int | None]) -> dict[tuple[object, ...], int]:
    speeds = compare_ranks(gathered(_calls(*calls))).groups
    return {(each.kind, each.bytes, each.mixed): each.calls for each in speeds}


def test_each_kind_and_size_is_counted_separately() -> None:
    sizes = (8, 16, 8, None)
    assert _keys(("all_gather", 8), *(("all_reduce", size) for size in sizes)) == {
        ("all_reduce", 8, False): 2,
        ("all_reduce", 16, False): 1,
        ("all_reduce", None, False): 1,
        ("all_gather", 8, False): 1,
    }


def test_rare_ones_of_very_many_sizes_are_one_kind_of_mixed_size() -> None:
    found = _keys(*(("all_reduce", 8 * size) for size in range(1, 101)))
    (mixed,) = [calls for (_, _, is_mixed), calls in found.items() if is_mixed]
    assert mixed == 100 - (len(found) - 1)
    assert sum(found.values()) == 100


COLLECTIVES = {
    "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "AllReduce RING",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgs*)": "ReduceScatter RING",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)": "AllGather RING",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)": "SendRecv None",
    "ncclKernel_AllReduce_TREE_LL_Sum_float(ncclWorkElem)": "AllReduce TREE",
    "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long)": "Broadcast RING",
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)": "AllReduce RING",
    "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)": "None None",
    "void (anonymous namespace)::multimem_all_reduce_kernel<float, 16>()": "all_reduce None",
    "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>()": "all_reduce None",
    "hcom_broadcast__447_0_1": "broadcast None",
    "hcom_batchSendRecv__447_0_1": "SendRecv None",
    "dlslime::intranode_alltoall_kernel": "alltoall None",
    "void deep_ep::intranode::combine<__nv_bfloat16, (int)8>(T1 *)": "None None",
    "void softmax<BlockAllReduce<float>>(float*)": "None None",
    "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)": "None None",
}


@pytest.mark.parametrize(("name", "expected"), COLLECTIVES.items(), ids=COLLECTIVES)
def test_a_kernel_name_gives_the_collective_and_the_algorithm(name: str, expected: str) -> None:
    assert f"{collective(name)} {algorithm(name)}" == expected


def _collectives(*rows: Work) -> list[tuple[int, int]]:
    of_step = np.zeros(len(rows), np.int64)
    called = [Range(row.name, row.at) for row in rows]
    found = collectives(records(capture(rows, (), called)), 0, of_step, EMPTY)[1]
    bounds = (found.column(name).to_pylist() for name in ("start_ns", "end_ns"))
    return list(zip(*bounds, strict=True))


def _all_reduce(start: int, end: int, kind: int = schema.CPU, stream: int = 7) -> Work:
    return Work((start, end), (start, end), "c10d::allreduce_", kind, stream=stream, grid=None)


def test_what_the_cpu_hands_to_a_thread_is_not_a_collective_to_wait_in() -> None:
    """An op of gloo returns at once: its end says nothing of the other ranks."""
    assert _collectives(_all_reduce(0, 10, stream=THREAD)) == []
    assert _collectives(_all_reduce(0, 10)) == [(0, 10)]
    assert _collectives(_all_reduce(0, 10, schema.KERNEL)) == [(0, 10)]


def test_receives_on_the_cpu_are_not_compared_with_those_of_other_ranks() -> None:
    received = replace(_all_reduce(0, 10), name="c10d::recv_")
    assert _collectives(received) == []
    assert _collectives(replace(received, kind=schema.KERNEL)) == [(0, 10)]


def test_collectives_in_which_two_threads_wait_at_once_count_one_after_the_other() -> None:
    work = _all_reduce(0, 50), _all_reduce(5, 70), _all_reduce(6, 60), _all_reduce(80, 90)
    assert _collectives(*work) == [(0, 50), (50, 70), (60, 60), (80, 90)]
