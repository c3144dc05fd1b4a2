"""Peaks of devices: a name finds its own card; peaks are given, measured, known or unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.gpu.peaks import Device, completed, find_card, peaks
from pyprof.gpu.peaks.ceilings import Ceilings
from tests.known import known

NAMES = [
    ("H100 SXM", "NVIDIA H100 80GB HBM3"),
    ("H100 PCIe", "NVIDIA H100 PCIe"),
    ("H200 SXM", "NVIDIA H200"),
    ("GH200 96GB", "NVIDIA GH200 480GB"),
    ("GH200 144GB", "NVIDIA GH200 144G HBM3e"),
    ("B300", "NVIDIA B300 SXM6 AC"),
    ("A100 SXM 80GB", "NVIDIA A100-SXM4-80GB"),
    ("A100 40GB", "NVIDIA A100-SXM4-40GB"),
    ("A100 40GB", "A100-PCIE-40GB"),
    ("A100 40GB", "NVIDIA A100-PCIE-40GB"),
    ("T4", "Tesla T4"),
    ("L40S", "NVIDIA L40S"),
    ("L40", "NVIDIA L40"),
    ("V100 SXM2", "Tesla V100-SXM2-16GB"),
    ("V100 SXM2", "Tesla V100-SXM2-32GB"),
    ("V100 DGXS", "Tesla V100-DGXS-16GB"),
    ("V100 DGXS", "Tesla V100-DGXS-32GB"),
    ("V100 PCIe", "Tesla V100-PCIE-16GB"),
    ("V100S PCIe", "Tesla V100S-PCIE-32GB"),
    ("RTX 4090", "NVIDIA GeForce RTX 4090"),
    ("MI250X (one die)", "AMD Instinct MI250X/MI250"),
    ("MI300X", "AMD Instinct MI300X"),
    ("H800 SXM", "NVIDIA H800"),
    ("A800 SXM 80GB", "NVIDIA A800-SXM4-80GB"),
    ("A100 SXM 80GB", "NVIDIA PG509-210"),
    ("RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"),
    ("RTX PRO 6000 Blackwell", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
    ("RTX PRO 6000 Blackwell Max-Q", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"),
    ("RTX PRO 6000 Blackwell Server", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
    ("P100 SXM2", "Tesla P100-SXM2-16GB"),
    ("P100 PCIe", "Tesla P100-PCIE-16GB"),
    # cards of their own: no row, and above all not a neighbour's
    (None, "NVIDIA GeForce RTX 4090 D"),
    ("RTX 4090 Laptop", "NVIDIA GeForce RTX 4090 Laptop GPU"),
    (None, "NVIDIA GeForce RTX 3080 Laptop GPU"),
    (None, "NVIDIA GeForce RTX 3090 Ti"),
    (None, "NVIDIA RTX 5000 Ada Generation Laptop GPU"),
    (None, "Tesla V100-SXM3-32GB"),
    (None, "Tesla V100-FHHL-16GB"),
    (None, "NVIDIA A100X"),
    (None, "NVIDIA A100-SXM-64GB"),
    (None, "NVIDIA Thor"),
    (None, "NVIDIA RTX A5000"),
    (None, "NVIDIA RTX A2000 12GB"),
    (None, "NVIDIA GeForce RTX 3080"),
    (None, "NVIDIA TITAN RTX"),
    ("MI250 (one die)", "AMD Instinct MI250"),
    ("MI250X (one die)", "AMD Instinct MI250X"),
    ("Intel Max 1550 (one stack)", "Intel(R) Data Center GPU Max 1550"),
    ("Gaudi 3", "Intel Gaudi 3"),
    ("Gaudi 2", "HL-225"),
    (None, "Intel(R) Data Center GPU Max 1100"),
    (None, "Ascend 910B"),
    (None, "MTIA"),
    (None, "NVIDIA GeForce RTX 5070"),
    (None, "NVIDIA H20-3e"),
    (None, "NVIDIA RTX PRO 5000 Blackwell"),
    (None, "Quadro RTX 6000 with Max-Q Design"),
    (None, "Quadro P6000"),
    (None, "AMD Radeon Graphics"),
    (None, "Microsoft Basic Render Driver"),
    (None, "Intel(R) UHD Graphics"),
    (None, ""),
]


@pytest.mark.parametrize(("card", "name"), NAMES)
def test_name_resolves_to_its_own_card(card: str | None, name: str) -> None:
    found = find_card(name)
    assert (found.name if found else None) == card


REPORTED = [
    # as drivers report them: name, SMs, MHz, GB/s, compute capability; then dtype and TFLOP/s
    ("NVIDIA GeForce RTX 3070 Ti", 48, 1860, 608.1, (8, 6), "float32", 22.9),
    ("NVIDIA GeForce RTX 2070 SUPER", 40, 1785, 448.1, (7, 5), "float32", 9.14),
    ("NVIDIA GeForce RTX 4090 D", 114, 2520, 1008.1, (8, 9), "float32", 73.5),
]


@pytest.mark.parametrize(
    ("name", "sms", "mhz", "gb_s", "cc", "dtype", "tflops"), REPORTED, ids=[r[0] for r in REPORTED]
)
def test_formula_for_unlisted_cards(
    name: str, sms: int, mhz: int, gb_s: float, cc: tuple[int, int], dtype: str, tflops: float
) -> None:
    found = known(peaks(Device(name, sms, mhz * 1e6, gb_s * 1e9, cc)))
    rate = known(found.flops(dtype, tensor_core=False))
    assert rate.value / 1e12 == pytest.approx(tflops, rel=0.01)
    assert rate.label == f"{name} fp32 CUDA cores, {sms} SMs at {mhz} MHz, formula"
    assert known(found.bandwidth).value == gb_s * 1e9


H100 = Device("NVIDIA H100 80GB HBM3", 132, 1980e6, 3352.3e9, (9, 0))


RATES = [
    # name; dtype, sum, Tensor Cores; TFLOP/s and unit
    ("NVIDIA H100 80GB HBM3", "bfloat16", None, True, 989.4, "H100 SXM bf16 dense tensor"),
    ("NVIDIA H100 80GB HBM3", "float16", None, True, 989.4, "H100 SXM fp16 dense tensor"),
    ("NVIDIA H100 80GB HBM3", "float16", "float16", True, 989.4, "H100 SXM fp16 dense tensor"),
    ("NVIDIA H100 80GB HBM3", "tf32", None, True, 494.7, "H100 SXM tf32 dense tensor"),
    ("NVIDIA H100 80GB HBM3", "float32", None, True, 494.7, "H100 SXM tf32 dense tensor"),
    ("NVIDIA H100 80GB HBM3", "float8_e4m3fn", None, True, 1979, "H100 SXM fp8 dense tensor"),
    ("NVIDIA H100 80GB HBM3", "float4_e2m1fn", None, True, None, ""),
    ("NVIDIA H100 80GB HBM3", "float64", None, True, 66.9, "H100 SXM fp64 dense tensor"),
    ("NVIDIA H100 80GB HBM3", "float32", None, False, 66.9, "H100 SXM fp32 CUDA cores"),
    ("NVIDIA H100 80GB HBM3", "bfloat16", None, False, 66.9, "H100 SXM fp32 CUDA cores"),
    ("NVIDIA H100 80GB HBM3", "float64", None, False, 33.5, "H100 SXM fp64 CUDA cores"),
    # types that Tensor Cores do not support have no peak on them
    ("Tesla V100-SXM2-16GB", "float16", None, True, 125, "V100 SXM2 fp16 dense tensor"),
    ("Tesla V100-SXM2-16GB", "bfloat16", None, True, None, ""),
    ("Tesla V100-SXM2-16GB", "tf32", None, True, None, ""),
    ("Tesla V100-SXM2-16GB", None, None, True, None, ""),
    ("Tesla V100-SXM2-16GB", "complex32", None, False, None, ""),
    # GeForce cards double their peak for float16 sums
    ("GeForce RTX 4090", "float16", None, True, 165.2, "RTX 4090 fp16 dense tensor"),
    ("GeForce RTX 4090", "float16", "float16", True, 330.4,
     "RTX 4090 fp16 dense tensor with fp16 sum"),
    # AMD's matrix cores have a float32 rate of their own
    ("AMD Instinct MI210", "bfloat16", None, True, 181.0, "MI210 bf16 dense tensor"),
    ("AMD Instinct MI210", "float32", None, True, 45.3, "MI210 fp32 dense matrix"),
    ("AMD Instinct MI210", "float32", None, False, 22.6, "MI210 fp32 vector units"),
    # float4 where the hardware has it
    ("NVIDIA B200", "float4_e2m1fn", None, True, 9000, "B200 fp4 dense tensor"),
    ("NVIDIA B300 SXM6 AC", "float4_e2m1fn", None, True, 13125, "B300 fp4 dense tensor"),
    ("AMD Instinct MI355X", "float4_e2m1fn", None, True, 10066.3, "MI355X fp4 dense tensor"),
    ("AMD Instinct MI355X", "bfloat16", None, True, 2516.6, "MI355X bf16 dense tensor"),
    # export cards are not scaled by SMs
    ("NVIDIA H20", "bfloat16", None, True, 148, "H20 bf16 dense tensor"),
    ("NVIDIA L20", "bfloat16", None, True, 119.5, "L20 bf16 dense tensor"),
    ("NVIDIA H800", "float64", None, True, 1, "H800 SXM fp64 dense tensor"),
    ("NVIDIA PG509-210", "bfloat16", None, True, 312, "A100 SXM 80GB bf16 dense tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "dtype", "accumulate", "tensor_core", "tflops", "unit"), RATES)
def test_peaks_are_of_a_type_a_sum_and_a_unit(
    name: str,
    dtype: str | None,
    accumulate: str | None,
    tensor_core: bool,  # noqa: FBT001 - a parameter
    tflops: float | None,
    unit: str,
) -> None:
    rate = known(peaks(Device(name))).flops(dtype, tensor_core, accumulate)
    assert (rate and rate.value) == (tflops and pytest.approx(tflops * 1e12))
    assert rate is None or rate.label == f"{unit}, datasheet"


def test_doubts_about_a_card_come_with_its_peaks() -> None:
    found = known(peaks(Device("NVIDIA GeForce RTX 4090")))
    assert any("GeForce" in doubt for doubt in found.doubts)


def test_bandwidth_is_the_drivers() -> None:
    """Else the datasheet's; the source says which."""
    found = known(peaks(H100))
    assert known(found.bandwidth).value == 3352.3e9
    bare = known(peaks(Device("NVIDIA H100 80GB HBM3")))
    assert bare.bandwidth == (3350e9, "H100 SXM memory, datasheet")


def test_mig_slice_by_formula() -> None:
    """A slice has the card's name but fewer SMs, which the formula counts."""
    found = known(peaks(Device("NVIDIA H100 80GB HBM3", 16, 1980e6, 3352.3e9, (9, 0))))
    rate = known(found.flops("bfloat16", tensor_core=True))
    # 16 SMs * 4096 FLOP * 1830 MHz, the clock of NVIDIA's Tensor Core figures
    assert rate.value == pytest.approx(16 * 4096 * 1830e6)
    assert "16 SMs" in rate.label
    # the driver reports the whole card's bandwidth: the slice's share is unknown
    assert found.bandwidth is None


@pytest.mark.parametrize(
    "device",
    [
        Device("Microsoft Basic Render Driver", 0, 0, 0, (0, 0)),
        Device("Intel(R) UHD Graphics", 0, 1150e6, 0, None),
        Device(None),
        Device("NVIDIA A100-SXM4-40GB MIG 3g.20gb", cc=(8, 0), clock_hz=1410e6),
        Device("Some GPU of the future", 200, 2e9, None, (15, 0)),
        # limited for export to a quarter of what its SMs and clock could do
        Device("NVIDIA H20-3e", 78, 1980e6, None, (9, 0)),
        Device("NVIDIA H20 MIG 1g.12gb", 8, 1980e6, None, (9, 0)),
        Device("NVIDIA GeForce RTX 5090 D", 170, 2407e6, None, (12, 0)),
        # ROCm's 9.0 is not CUDA's: this is no Hopper
        Device("AMD Instinct MI100", 120, 1502e6, None, (9, 0)),
    ],
)
def test_unknown_device_has_no_peak(device: Device) -> None:
    """None, never another card's figure, and no division by zero SMs."""
    assert peaks(device) is None


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("Tesla V100-SXM2-16GB", 31.4),
        ("Tesla T4", 16.2),
        ("NVIDIA A100-SXM4-40GB", 78),  # NVIDIA's A100 whitepaper: FP16 78, FP32 19.5
        ("NVIDIA A40", 37.4),  # GA102 whitepaper: FP16 as FP32
        ("NVIDIA H100 80GB HBM3", 133.8),  # H100 whitepaper: FP16 133.8, FP32 66.9
        ("NVIDIA B200", None),
        ("AMD Instinct MI300X", None),
    ],
)
def test_float16_on_cuda_cores(name: str, tflops: float | None) -> None:
    """An hgemm has its own peak or none; with float32 sums, that of float32."""
    found = known(peaks(Device(name)))
    rate = found.flops("float16", tensor_core=False, accumulate="float16")
    assert (rate and rate.value) == (tflops and pytest.approx(tflops * 1e12))
    assert rate is None or "fp16 CUDA cores" in rate.label
    for accumulate in ("float32", None):
        wide = found.flops("float16", tensor_core=False, accumulate=accumulate)
        assert wide == found.flops("float32", tensor_core=False)


def test_measured_ceilings() -> None:
    ceilings = Ceilings(H100.name or "", {"bfloat16 tensor": 7e14, "float32": 5e13}, 3e12)
    found = known(peaks(H100, measured=ceilings))
    bfloat16 = found.flops("bfloat16", tensor_core=True)
    assert bfloat16 == (7e14, "H100 SXM bf16 dense tensor, measured")
    half = known(found.flops("float16", tensor_core=True))
    assert half.label.endswith("datasheet")
    assert found.bandwidth == (3e12, "NVIDIA H100 80GB HBM3 memory, measured")


@pytest.mark.parametrize(
    "device",
    [
        Device(None, 128, 2520e6, None, (8, 9)),  # it might be a GeForce
        Device("NVIDIA GeForce GTX 1660 Ti", 24, 1770e6, 288e9, (7, 5)),  # Turing without them
    ],
    ids=["unnamed", "GTX"],
)
def test_some_devices_have_no_tensor_core_peak(device: Device) -> None:
    found = known(peaks(device))
    assert found.flops("float16", tensor_core=True) is None
    assert found.flops("float32", tensor_core=False) is not None


@given(
    name=st.none() | st.text(),
    sms=st.none() | st.integers(0, 400),
    clock=st.none() | st.floats(0, 4e9),
    cc=st.none() | st.tuples(st.integers(0, 15), st.integers(0, 9)),
)
def test_any_device(
    name: str | None, sms: int | None, clock: float | None, cc: tuple[int, int] | None
) -> None:
    found = peaks(Device(name, sms, clock, None, cc))
    assert found is None or all(rate.value > 0 for rate in found.rates.values())


@pytest.mark.parametrize(
    ("device", "cc", "sm_count"),
    [
        (Device("Tesla T4"), (7, 5), 40),
        (Device("Tesla T4", sm_count=20), (7, 5), 20),
        (Device("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), (8, 0), None),
        (Device("NVIDIA A100-SXM4-40GB MIG 1g.5gb", sm_count=14), (8, 0), 14),
        (Device("Some GPU", sm_count=3), None, 3),
        (Device(None), None, None),
    ],
)
def test_a_name_fills_in_what_the_capture_lacks(
    device: Device, cc: tuple[int, int] | None, sm_count: int | None
) -> None:
    """A slice has fewer SMs than its card, so they stay unknown."""
    assert completed(device) == Device(device.name, sm_count, cc=cc)
