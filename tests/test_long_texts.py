"""Texts of any length in a capture take bounded time."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyprof import marker, sanitize, schema
from pyprof.analysis.ranks import collective_kinds
from pyprof.gpu import kernel_dtypes, kernel_names, kernel_roles, peaks, tensorcore
from pyprof.gpu.peaks import formula
from pyprof.marker import Call, decode, serving_steps, user_ranges
from pyprof.ops import registry
from pyprof.parse.autograd import forward_backward
from pyprof.parse.ranges import range_stacks
from pyprof.prof import op_names
from pyprof.prof.kernels import kernel_families
from pyprof.readers.kineto import gpu as kineto_gpu
from pyprof.readers.kineto import texts as kineto_texts
from pyprof.render.page import tables
from tests.builders import Range, Work, nsys_db
from tests.commands import run

_CHARS = 50_000
_UNITS = (
    *"-_ .:#=([{<~/\\,'\"aAx0\n?@&*",
    *("ab", "0a", "A0", "a.", "a::", "::a", "a/", "a<", "b(", "_1", "__", "- ", " \t", "##", "a ="),
    *("Backward", "Backward0", "gemm::", "cutlass", "nccl", "fmha", "xmma_a", "_sqsk=1", "bs=0 "),
    *("[pl][module]", ", seq = ", "step[", "execute_context_0("),
    *("ProfilerStep", "train_step ", "://"),
    *("_triton_", "MemcpyHost", "copy_kernel_cuda(", "_matmul_ogs_N_a", "kernel_cutlass_A", " mig"),
    *("<frozen a", "at::native::", "mi0", "elementwise_kernel<", "lambda(", "unrolled_", "int "),
)
"""Long runs of what our patterns repeat, or begin with."""
_STARTS = (
    *("", "##", "step[EXTEND _sqsk=", "prefill[bs=0 ", "execute_context_0(", "FSDP::a (", "layer:"),
    *("[pl][module]", "{'Module': '", "aten::", "void a<"),
    *("triton_poi_fused_", "float", "aBackward"),
)
_END = "\n!"
"""Nothing that a pattern could end with."""


def _texts() -> Iterator[str]:
    for unit in _UNITS:
        yield unit * (_CHARS // len(unit)) + _END
    for start in _STARTS:
        for unit in ("0", "a", "A", " ", "-", "_", ".", "a ", "(0"):
            yield start + unit * (_CHARS // len(unit)) + _END


_LOOKS: dict[str, Callable[[str], object]] = {
    "kind": marker.classify,
    "range": user_ranges.range_name,
    "step": user_ranges.is_step,
    "step's name": user_ranges.step_name,
    "direction": user_ranges.direction,
    "serving step": serving_steps.serving_step,
    "requests": serving_steps.read_requests,
    "states requests": serving_steps.states_requests,
    "op": decode.decode_seq,
    "op's name": lambda text: op_names.op_name(text, text),
    "op's cost": lambda text: registry.find(Call(text, text)),
    "type": decode._DTYPE.fullmatch,
    "node": lambda text: forward_backward.base_name(marker.statement(text).node),
    "frame": lambda text: range_stacks.user_line((text,)),
    "line": range_stacks.file_and_line,
    "GPU": peaks.find_card,
    "GPU's maker": formula.is_cuda,
    "copy": lambda text: kineto_gpu.transfer_name(schema.MEMCPY, text),
    "generated": kineto_texts.is_generated,
    "frame of a trace": kineto_texts.frame,
    "message": sanitize.message,
    "sentence": tables.without_folders,
}


_LOOKS_AT_KERNELS: dict[str, Callable[[str], object]] = {
    "kernel's name": kernel_names.short_name,
    "kernel's role": kernel_roles.role,
    "kernel's family": kernel_families.family_of_kernel,
    "kernel's type": kernel_dtypes.data_type,
    "kernel's moved type": kernel_dtypes.moved_type,
    "kernel's types": kernel_dtypes.name_types,
    "kernel's Tensor Cores": lambda text: tensorcore.tensor_core(text, cc=(8, 0)),
    "kernel's weights": kernel_dtypes.weight_type,
    "collective": collective_kinds.collective,
    "algorithm": collective_kinds.algorithm,
}
_KERNELS = ("-", "gemm::", "xmma_a", "at::native::", "nccl", "cutlass", "a<", "_matmul_ogs_N_a")


@pytest.mark.long
@pytest.mark.parametrize("look", _LOOKS.values(), ids=_LOOKS)
def test_a_long_text_takes_linear_time(look: Callable[[str], object]) -> None:
    """With quadratic time one text took minutes."""
    for text in _texts():
        look(text)


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("look", _LOOKS_AT_KERNELS.values(), ids=_LOOKS_AT_KERNELS)
def test_a_long_name_of_a_kernel_is_looked_at_in_part(look: Callable[[str], object]) -> None:
    """Its beginning is enough; kernels have far more patterns than ranges."""
    for unit in _KERNELS:
        look(unit * (_CHARS // len(unit)) + _END)


@pytest.mark.slow
def test_long_names_in_a_capture(tmp_path: Path) -> None:
    texts = [unit * (_CHARS // len(unit)) for unit in ("-", " ", "a", "##", "_")]
    work = [
        Work(text, (10 * n + 5, 10 * n + 8), (10 * n + 1, 10 * n + 2))
        for n, text in enumerate(texts)
    ]
    ranges = [Range(text, (10 * n, 10 * n + 4)) for n, text in enumerate(texts)]
    net = nsys_db(tmp_path / "net.sqlite", work, ranges)
    parsed = run("parse", net)
    (tmp_path / "net.dict").write_text(parsed.stdout)
    for file in (net, tmp_path / "net.dict"):
        done = run("prof", "--csv", "-c", "idx,layer", "--where", "kernel!~b+$", file)
        assert (done.code, len(done.stdout.splitlines())) == (0, len(texts) + 1)
