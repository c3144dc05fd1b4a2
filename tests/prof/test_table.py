"""Impossible devices in a capture; peaks of kernels of unknown units."""

from pathlib import Path

import pytest

from pyprof.gpu.peaks import Device, completed, peaks
from pyprof.marker import Call, Tensor
from pyprof.ops.registry import FPROP
from pyprof.parse import parse
from pyprof.prof.calls.attributed_call import AttributedCall
from pyprof.prof.table import Table, classify_kernel
from tests.readers.kineto_json import kernel, launch, read


def _device(folder: Path, sms: object) -> object:
    described = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": sms}
    net = read(folder, [launch(1, 10), kernel(1, 20)], deviceProperties=[described])
    return Table(parse(net)).device_of("NVIDIA A100-SXM4-80GB")


@pytest.mark.parametrize("sms", [-108, -1, 2**31 - 1, 1 << 20])
def test_a_device_with_impossible_numbers_is_unknown(sms: int, tmp_path: Path) -> None:
    """A negative number of SMs would make peaks and MFU negative."""
    assert _device(tmp_path, sms) == _device(tmp_path, None)
    assert _device(tmp_path, sms) != _device(tmp_path, 54)  # half a card, as MIG gives it


@pytest.mark.parametrize(
    ("gpu", "dtype", "known"),
    [
        ("AMD Instinct MI300X", "float32", True),
        ("AMD Instinct MI300X", "float16", False),
        ("NVIDIA A100-SXM4-40GB", "float32", False),
        ("NVIDIA V100-SXM2-16GB", "float32", True),
    ],
)
def test_a_peak_that_all_units_share_is_certain(gpu: str, dtype: str, *, known: bool) -> None:
    """Units are unknown from this name: in float32, both of an MI300X do 163.4 TFLOP/s."""
    call = Call("torch", "mm", (Tensor((4, 4), dtype), Tensor((4, 4), dtype)))
    work = AttributedCall(call=call, direction=FPROP)
    device = completed(Device(name=gpu))
    judged = classify_kernel("gemm_kernel", work, device, peaks(device))
    assert judged.certain_peak == (judged.flops_peak if known else None)
    assert judged.flops_peak is not None
