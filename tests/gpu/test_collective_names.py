"""Collectives and algorithms by kernels' names, as captures have them."""

import pytest

from pyprof.gpu.collective_names import algorithm, collective

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
    "dlslime::intranode_alltoall_kernel": "alltoall None",
    "void deep_ep::intranode::combine<__nv_bfloat16, (int)8>(T1 *)": "None None",
    "void softmax<BlockAllReduce<float>>(float*)": "None None",
    "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)": "None None",
}


@pytest.mark.parametrize(("name", "expected"), COLLECTIVES.items(), ids=COLLECTIVES)
def test_a_name_tells_the_collective_and_the_algorithm(name: str, expected: str) -> None:
    assert f"{collective(name)} {algorithm(name)}" == expected
