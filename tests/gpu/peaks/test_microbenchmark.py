"""The microbenchmark, small and on the CPU: its arithmetic, not the figures."""

import pytest

from pyprof.errors import PyprofError
from pyprof.gpu.peaks import microbenchmark
from pyprof.gpu.peaks.microbenchmark import _key, measure

torch = pytest.importorskip("torch")


def test_cpu_has_a_figure_for_each_type() -> None:
    before = torch.get_float32_matmul_precision()
    found = measure("cpu", side=32, copy_bytes=1 << 12, budget_s=0)
    assert found.device == "cpu"
    assert set(found.flops) == {"float64", "float32", "bfloat16"}
    assert min(found.flops.values()) > 0
    assert found.bandwidth > 0
    assert torch.get_float32_matmul_precision() == before


def test_products_have_2_n3_flops_and_copies_move_each_byte_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(microbenchmark, "_cpu_clock", lambda _: 2.0)
    found = measure("cpu", side=32, copy_bytes=1 << 12, budget_s=0)
    assert {*found.flops.values()} == {2 * 32**3 / 2.0}
    assert found.bandwidth == 2 * (1 << 12) / 2.0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_cuda_device_there_is_an_error() -> None:
    with pytest.raises(PyprofError, match="no CUDA device"):
        measure("cuda")


def test_a_device_behind_the_last_one_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(PyprofError, match="no device cuda:2: torch sees 2 CUDA devices"):
        measure("cuda:2")


@pytest.mark.parametrize("allocates", ["randn", "zeros"])
def test_full_memory_is_not_an_unsupported_type(
    monkeypatch: pytest.MonkeyPatch, allocates: str
) -> None:
    """Other processes may hold the memory."""

    def full(*_: object, **__: object) -> None:
        raise torch.cuda.OutOfMemoryError("tried to allocate")

    monkeypatch.setattr(torch, allocates, full)
    with pytest.raises(PyprofError, match="too little free memory"):
        measure("cpu", side=32, copy_bytes=1 << 12, budget_s=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_has_figures_too() -> None:
    found = measure("cuda", side=4096)
    assert found.device == torch.cuda.get_device_name()
    assert min(*found.flops.values(), found.bandwidth) > 0


@pytest.mark.parametrize(
    ("key", "kind", "cc"),
    [
        ("bfloat16 tensor", "bfloat16", (8, 0)),
        ("bfloat16", "bfloat16", (7, 5)),
        ("float32", "float32", (9, 0)),
        ("tf32 tensor", "tf32", (9, 0)),
        ("float64 tensor", "float64", (9, 0)),
        ("float64", "float64", (8, 6)),
        ("float32", "float32", None),
    ],
)
def test_figures_have_the_tables_keys(key: str, kind: str, cc: tuple[int, int] | None) -> None:
    """Each is filed under the units that ran it, so that it replaces the right peak."""
    assert _key(kind, cc) == key


def test_amds_matrix_cores_ran_every_product() -> None:
    assert _key("float32", None, is_amd=True) == "float32 tensor"
