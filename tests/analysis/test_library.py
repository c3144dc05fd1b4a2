"""The library of a program: one other than PyTorch only if kernel names show it."""

import re
from pathlib import Path

import pytest

from pyprof.analysis.library import is_compiled, library_of
from pyprof.analysis.summary.composition import summary
from pyprof.analysis.summary.overview import summarise
from pyprof.inputs.source import load
from tests.builders import Work, nsys_db
from tests.readers.kineto_json import event, kernel, launch, trace_file

PYTORCH_KERNEL = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int)"


@pytest.mark.parametrize(
    ("names", "library", "compiled"),
    [
        (("cupy_sqrt__float64_float64", "gemv2T_kernel_val"), "CuPy", False),
        (("loop_add_fusion", "input_reduce_fusion"), "XLA", False),
        (("void tensorflow::functor::ShuffleInTensor3Simple<float>(int)",), "TensorFlow", False),
        (("cudapy::__main__::add$241(Array<float>)",), "Numba", False),
        (("cupy_sqrt__float64_float64", PYTORCH_KERNEL), "PyTorch", False),
        (("void tensorflow", "triton_poi_fused_add_0"), "PyTorch", True),
        (("triton_red_fused_add_native_layer_norm_0",), "PyTorch", True),
        (("triton__0d1d2d3de",), "PyTorch", True),
        (("graph_0_cpp_fused_gelu_view_6",), "PyTorch", True),
        (("triton_gemm_dot.12",), None, False),
        (("ampere_sgemm_128x64_tn",), None, False),
    ],
)
def test_the_library_and_torch_compile_follow_from_kernel_names(
    names: tuple[str, ...], library: str | None, *, compiled: bool, tmp_path: Path
) -> None:
    """One kernel of PyTorch's is enough for PyTorch; without a known name it is unknown."""
    work = [
        Work(name, (100 * place + 50, 100 * place + 90), (100 * place, 100 * place + 9))
        for place, name in enumerate(names)
    ]
    table = load(str(nsys_db(tmp_path / "net.sqlite", work))).table
    assert (library_of(table), is_compiled(table)) == (library, compiled)


def test_a_range_of_torch_profiler_is_of_pytorch(tmp_path: Path) -> None:
    """All kernels may be in a graph, where none has an op."""
    work = [launch(1, 5, name="cudaGraphLaunch"), kernel(1, 20), kernel(1, 30)]
    for ranges in ([], [event("user_annotation", "ProfilerStep#1", 0, 50)]):
        source = load(str(trace_file(tmp_path, [*ranges, *work])))
        assert summarise(source).library == ("PyTorch" if ranges else None)


OF_PYTORCH = re.compile(r"torch|DataLoader|pyprof\.|empty_cache|\.item\(\)|FSDP")


def _names_pytorch(path: Path) -> bool:
    answer = summary(summarise(load(str(path))))
    texts = [each.action for each in answer.advice] + [each.text for each in answer.verdict]
    return bool(OF_PYTORCH.search(" ".join(texts)))


@pytest.mark.slow
def test_a_program_of_an_unknown_library_gets_no_advice_for_pytorch(tmp_path: Path) -> None:
    path = tmp_path / "net.sqlite"
    late = [(place * 100_000, place * 100_000 + 20_000) for place in range(1, 40)]
    for name, named in (("probe_GPU2", False), (PYTORCH_KERNEL, True)):
        nsys_db(path, [Work(name, times, (times[0] - 900, times[0] - 500)) for times in late])
        assert summary(summarise(load(str(path)))).advice
        assert _names_pytorch(path) == named


@pytest.mark.slow
@pytest.mark.parametrize(
    "capture", ["nsys2021.2-rtx6000-no-nvtx/net.sqlite", "rocpd-mi300x-bmm/results.db",
                "nsys2022.2-a100-duplicate-api-rows/net.sqlite",
                "nsys2025.3-t4-registered-strings/net.sqlite"],
)  # fmt: skip
def test_real_programs_without_pytorch_get_no_advice_for_it(captures: Path, capture: str) -> None:
    assert not _names_pytorch(captures / capture)
