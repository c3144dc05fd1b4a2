"""The benchmark of roofline shares, small and on the CPU: its arithmetic, not the figures."""

import pytest

from pyprof.gpu.peaks import Device, peaks
from pyprof.gpu.peaks.efficiency import efficiency, measured_cards
from pyprof.gpu.peaks.family_benchmark import measure_shares, shares
from pyprof.gpu.peaks.microbenchmark import gpu_clock
from tests.known import known

torch = pytest.importorskip("torch")

FAMILIES = {"gemm", "bmm", "softmax", "norm", "pointwise"}


def _clock(work: object) -> float:
    assert callable(work)
    assert work() is not None
    return 1e-3


def test_each_family_has_the_median_of_its_shapes() -> None:
    """With 1 ms for each kernel: FLOPs and bytes by hand, relative to the T4's peaks."""
    before = torch.get_float32_matmul_precision()
    found = shares(torch, "cpu", known(peaks(Device("Tesla T4"))), _clock, scale=2, budget_s=0)
    assert {f"{family} float32" for family in FAMILIES} <= found.keys()
    assert found["gemm float32"] == pytest.approx(
        max(2 * 128 * 32 * 32 / 8.1e12, 4 * (2 * 128 * 32 + 32 * 32) / 320e9) / 1e-3, rel=0.05
    )
    batched = 2 * (2 * 32 * 2 + 32 * 32)  # elements of the shape in the middle
    assert found["bmm float32"] == pytest.approx(batched * 4 / 320e9 / 1e-3, rel=0.05)
    assert found["softmax float32"] == pytest.approx(2 * 256 * 32 * 4 / 320e9 / 1e-3, rel=0.05)
    assert torch.get_float32_matmul_precision() == before


def test_an_unsupported_type_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise RuntimeError("not implemented for 'Half'")

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", refuses)
    found = shares(torch, "cpu", known(peaks(Device("Tesla T4"))), _clock, scale=2, budget_s=0)
    assert found.keys() == {f"{family} float32" for family in FAMILIES}


def test_a_cpu_has_no_shares() -> None:
    assert measure_shares("cpu") == {}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_reaches_a_share_of_its_datasheet() -> None:
    found = measure_shares("cuda")
    assert all(0 < share < 1.2 for share in found.values())
    name = torch.cuda.get_device_name()
    for family in FAMILIES if name in measured_cards() else ():
        assert found[f"{family} float32"] == pytest.approx(
            known(efficiency(name, family, "float32")), rel=0.5
        )
    assert gpu_clock(torch, "cuda")(lambda: None) >= 0
