"""Input types from kernel names, as torch calls them, and which of them Tensor Cores take.

`tf32` is added to torch's names: float32 data that Tensor Cores round, with a peak of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pyprof.gpu.kernel_names import by_name, split
from pyprof.gpu.kernel_roles import MATRIX_ROLES, role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HALF = frozenset({"float16", "bfloat16"})
NARROW = frozenset({"float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int8", "uint8", "int4"})
"""Types that a matrix product in CUDA cores practically never has."""


class Types(NamedTuple):
    """The types of a matrix product; None if they are not in the name."""

    dtype: str | None
    """The type of the inputs A and B."""
    accumulate: str | None = None
    """The type of the sum: `float16` doubles the peak of GeForce parts, and of most CUDA cores."""


_WORDS: Mapping[str, str] = {
    "f16": "float16", "fp16": "float16", "h": "float16", "half": "float16",
    "bf16": "bfloat16", "t": "bfloat16",
    "f32": "float32", "fp32": "float32", "s": "float32",
    "tf32": "tf32",
    "f64": "float64", "d": "float64",
    "c": "complex64", "z": "complex128",
    "e4m3": "float8_e4m3fn", "q": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "r": "float8_e5m2",
    "ue4m3xf4": "float4_e2m1fn", "e2m1": "float4_e2m1fn", "f4": "float4_e2m1fn",
    "i8": "int8", "s8": "int8", "b": "int8", "int8": "int8", "u8": "uint8",
    "i4": "int4", "s4": "int4", "u4": "int4",
    "i32": "int32", "s32": "int32", "i": "int32",
}  # fmt: skip
"""How libraries spell a type: cutlass and xmma by width, cuBLAS and nvjet by letter."""

_TYPE = r"(?:bf16|tf32|f16|f32|f64|e4m3|e5m2|i8|s8|u8|i4|s4|i32)"
_NVJET = re.compile(r"nvjet_(?:sm\d+_)?([a-z]{3,5})(?=_|$)")
_XMMA = re.compile(
    rf"xmma_.{{0,200}}?_({_TYPE})({_TYPE})_({_TYPE})({_TYPE})?_({_TYPE})(?![a-z0-9])"
)
_CUTLASS3 = re.compile(r"tensorop_[a-z]?\d+x\d+x\d+gemm_(?:block_scaled_)?([a-z0-9]+)_([a-z0-9]+)_")
_CUTLASS3_SIMT = re.compile(rf"simt_[sdcz]gemm_({_TYPE})_")
MMA_SHAPE = r"(?:884|1688|16816|16832|16864|8816|161616)"
"""M, N and K of an instruction of Tensor Cores, as names have them."""
_CUTLASS = re.compile(
    rf"(?:tensorop|wmma)_(?:({_TYPE})_)?([a-z])({MMA_SHAPE})[a-z]+(?:_optimized|_analytic)?"
    rf"(?:_(?:relu|grouped))*(?:_({_TYPE})(?=_))?"
)
_CUBLAS = re.compile(
    rf"(?<![a-z0-9])(?:(fp16|bf16|int8)_)?([sdhciz]|gc)({MMA_SHAPE})?(?:gemm|cudnn)"
    r"(?:_(fp16|bf16|int8)(?=_))?"
)
_TENSILE = re.compile(r"^Cijk_[A-Za-z]+_[A-Za-z]+_(F8|B8|I8|4xi8|[BHSDCZ])")
_TENSILE_WORDS = {
    "F8": "float8_e4m3fn", "B8": "float8_e5m2", "I8": "int8", "4xi8": "int8", "B": "bfloat16",
    "H": "float16", "S": "float32", "D": "float64", "C": "complex64", "Z": "complex128",
}  # fmt: skip
_LETTERS = re.compile(
    r"(?<![a-z0-9])(bf16|f16|fp16|e4m3|e5m2|fp8|tf32|f32|int8|mxfp8|nvfp4)(?![a-z0-9])"
)
_CXX = re.compile(
    r"(bfloat16_t|__(?:nv|hip)_bfloat16|BFloat16|bf16(?:_t)?\b)"
    r"|(half_t|__half|Half|half\b|_Float16|fp16_t\b)|(e4m3)|(e5m2)"
    r"|(?<![\w])(float)(?![\w])|(?<![\w])(double)(?![\w])"
)
_CXX_TYPES = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float32", "float64")
"""By group of `_CXX`."""


def _nvjet(name: str) -> Types | None:
    """Read `tst` as input, sum, output and `qqtst` as A, B, C, sum, D: observed, undocumented."""
    if not (match := _NVJET.search(name)):
        return None
    letters = match[1]
    total = letters[3] if len(letters) == 5 else letters[1]  # noqa: PLR2004 - qqtst
    dtype = _WORDS.get(letters[0])
    if dtype == "float32" and "_tf32" in name:
        dtype = "tf32"
    return Types(dtype, _WORDS.get(total))


def _xmma(name: str) -> Types | None:
    """Read `f16f16_f16f32_f32` as A and B, two more, and the sum."""
    if not (match := _XMMA.search(name)):
        return None
    words = match.groups()
    first = "tf32" if "tf32" in words[:4] else words[0]
    return Types(_WORDS.get(first), _WORDS.get(words[4]))


def _cutlass(name: str) -> Types | None:
    """Read `tensorop_bf16_s16816gemm_bf16`: the letter is the sum's type, a word the input's."""
    if match := _CUTLASS3.search(name):
        first = "tf32" if "tf32" in match[1] else match[1]
        return Types(_WORDS.get(first))
    if match := _CUTLASS3_SIMT.search(name):
        return Types(_WORDS.get(match[1]))
    if not (match := _CUTLASS.search(name)):
        return None
    before, letter, size, after = match.groups()
    return Types(_mma_input(before or after, letter, size, name), _WORDS.get(letter))


def _cublas(name: str) -> Types | None:
    """Read `volta_fp16_s884gemm_fp16`, or `ampere_sgemm`, in which only the letter shows the type.

    `fp16_sgemm` reads float16 and computes in float32; `hgemm` in float16 throughout.
    """
    if not (match := _CUBLAS.search(name)):
        return None
    before, letter, size, after = match.groups()
    word, letter = before or after, letter.removeprefix("g")
    if size is None:
        return Types(_WORDS.get(word or letter), _WORDS.get(letter))
    return Types(_mma_input(word, letter, size, name), _WORDS.get(letter))


def _mma_input(word: str | None, letter: str, size: str, name: str) -> str | None:
    """Return the input type of an MMA whose sum has type `letter` and whose shape is `size`."""
    if word:
        return _WORDS.get(word)
    if letter in "hdi":
        return {"h": "float16", "d": "float64", "i": "int8"}[letter]
    if size == "884" or "volta" in name or "turing" in name:
        return "float16"  # an fp32 sum over the only input that these cores know
    if size == "1688" and letter == "s":
        return "tf32"  # from Ampere on, 16-bit inputs have K = 16
    return None


def _tensile(name: str) -> Types | None:
    """Read AMD's `Cijk_Alik_Bljk_BBS_`: input, output, sum; `SB_` is float32 alone."""
    if not (match := _TENSILE.match(name)):
        return None
    return Types(_TENSILE_WORDS.get(match[1]))


def _trtllm(name: str) -> Types | None:
    """Read `bmm_OUT_AB_SUM`, of mixed inputs the wider, and `fmhaSm100fKernel_QkvBfloat16`."""
    if match := _BMM.match(name):
        inputs = {_TRTLLM_WORDS[match[1]], _TRTLLM_WORDS[match[2] or match[1]]}
        widest = next(word for word in _TRTLLM_WORDS.values() if word in inputs)
        return Types(widest, _TRTLLM_WORDS.get(match[3]))
    match = _FMHA.search(name)
    return Types(_TRTLLM_WORDS[match[1]]) if match else None


_TRTLLM_WORDS: Mapping[str, str] = {
    "Fp32": "float32", "Bfloat16": "bfloat16", "Fp16": "float16", "E4m3": "float8_e4m3fn",
    "E5m2": "float8_e5m2", "E2m1": "float4_e2m1fn",
}  # fmt: skip
"""The widest first."""
_TRTLLM_TYPE = "|".join(_TRTLLM_WORDS)
_BMM = re.compile(
    rf"(?:bmm|gemm)_(?:Mx)?(?:{_TRTLLM_TYPE})_(?:Mx)?({_TRTLLM_TYPE})(?:(?:Mx)?({_TRTLLM_TYPE}))?"
    rf"_({_TRTLLM_TYPE})"
)
_FMHA = re.compile(rf"fmhaSm\d+\w?Kernel_Q(?:kv)?({_TRTLLM_TYPE})")
_OGS = re.compile(r"_matmul_ogs_[A-Z]{1,9}_\w{1,80}?x(bf16|fp16|fp32|fp8e4\w*|fp8e5\w*)x")


def _named_by_library(name: str) -> Types | None:
    """Read the type in a library's own name, not that of an argument after it."""
    if match := _OGS.search(name):  # output, input, weights
        word = {"fp8e4": "e4m3", "fp8e5": "e5m2"}.get(match[1][:5], match[1])
        return Types(_WORDS[word])
    return _named_types(name) if "deep_gemm::" in name or "_gtcx" in name else None


def _named_types(name: str) -> Types | None:
    """Find a bounded `bf16` or `f32` in the path: fmha_cutlassF_bf16_aligned, ..._wgmma_f16_..."""
    if not (match := _LETTERS.search(split(name).path)):
        return None
    return Types({"fp8": "float8_e4m3fn", "mxfp8": "float8_e4m3fn", "nvfp4": "float4_e2m1fn"}.get(
        match[1], _WORDS.get(match[1])))  # fmt: skip


def _template_types(name: str) -> list[str]:
    """Return the floating types among the template arguments."""
    matches = _CXX.finditer(split(name).rest)
    return [_CXX_TYPES[match.lastindex - 1] for match in matches if match.lastindex]


def _cxx(name: str) -> Types | None:
    """Take the floating type among the template arguments.

    A matrix kernel's first type is its input's; elsewhere it is returned only if there is just one.
    """
    types = _template_types(name)
    if types and (len(set(types)) == 1 or role(name) in MATRIX_ROLES):
        return Types(types[0])
    return None


@by_name
def data_type(name: str) -> str | None:
    """Read the floating type of the tensors that a kernel works on; None if the name lacks it.

    Names of 16-bit kernels contain float32, too, in which they compute. The result for a kernel
    that casts is None: its name contains only one of its two types.
    """
    if _CASTS.search(name):
        return None
    dtype = name_types(name).dtype
    if dtype is None:
        narrow = {*_template_types(name)} - {"float32"}
        dtype = narrow.pop() if len(narrow) == 1 and narrow <= HALF else None
    return "float32" if dtype == "tf32" else dtype if dtype in FLOATS else None


@by_name
def casts(name: str) -> bool:
    """Whether a kernel surely copies a tensor to another type."""
    return bool(_TO_ANOTHER_TYPE.search(name))


def moved_type(name: str) -> str | None:
    """Read the type of the elements that a kernel copies or fills; None if the name lacks it.

    A kernel for all types of the same width shows only the width: `opaque2`.
    """
    if _CASTS_TYPES.search(name):
        return None
    path, rest = split(name)
    if widths := set(_OPAQUE.findall(rest)):
        return f"opaque{widths.pop()}" if len(widths) == 1 else None
    match = _FIRST_TYPE.match(rest) if _TYPED_FIRST.search(path) else _FUNCTOR_TYPE.search(rest)
    word = next(filter(None, match.groups()), "") if match else ""
    return _MOVED.get(word.strip().removeprefix("c10::"))


_CASTS_TYPES = re.compile(r"(?:Load|Store)WithCast|float\w*_copy_kernel|gpu_kernel_impl<")
_OPAQUE = re.compile(r"OpaqueType<(?:\([a-z ]+\))?(\d+)u?l?>")
_TYPED_FIRST = re.compile(
    r"CatArray|indexSelect|roll_cuda|triu_tril|(?:reflection|replication)_pad|im2col|col2im"
)
"""Kernels whose first template argument is the type of their elements."""
_FIRST_TYPE = re.compile(r"<\s*([\w:]+(?: \w+)*|c10::complex<\w+>)\s*[,>]")
_FUNCTOR_TYPE = re.compile(
    r"FillFunctor<\s*([\w:]+(?: \w+)*|c10::complex<\w+>)\s*>"
    r"|::Copy<\s*([\w:]+(?: \w+)*|c10::complex<\w+>),\s*\2\s*>"
    r"|(?:direct_copy_kernel_cuda|copy_device_to_device)\(.{0,400}?"
    r"[{[]lambda\(([\w:]+(?: \w+)*|c10::complex<\w+>)\)"
)
_MOVED: Mapping[str, str] = {
    "bool": "bool", "unsigned char": "uint8", "signed char": "int8", "char": "int8",
    "short": "int16", "int": "int32", "long": "int64", "long long": "int64",
    "unsigned short": "uint16", "unsigned int": "uint32", "unsigned long": "uint64",
    "Half": "float16", "__half": "float16", "half": "float16",
    "BFloat16": "bfloat16", "__nv_bfloat16": "bfloat16", "hip_bfloat16": "bfloat16",
    "float": "float32", "double": "float64",
    "complex<Half>": "complex32", "complex<float>": "complex64",
    "complex<double>": "complex128",
    "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip

_TO_ANOTHER_TYPE = re.compile(r"(?:Load|Store)WithCast|float16_copy")
_CASTS = re.compile(rf"{_TO_ANOTHER_TYPE.pattern}|copy_kernel")
FLOATS = HALF | {"float32", "float64"}

_READERS: tuple[Callable[[str], Types | None], ...] = (
    _nvjet, _xmma, _cutlass, _tensile, _trtllm, _named_by_library, _cxx, _cublas, _named_types
)  # fmt: skip


@by_name
def name_types(name: str) -> Types:
    """Read input and accumulation type from a kernel's full name; None if it lacks them."""
    return next((types for read in _READERS if (types := read(name))), Types(None))


FIRST_TENSOR_CORES = (7, 0)
"""Volta's compute capability."""

_TENSOR_CORES_SINCE: Mapping[str, tuple[int, int]] = {
    "float16": FIRST_TENSOR_CORES, "int8": (7, 2), "uint8": (7, 2), "int4": (7, 5),
    "bfloat16": (8, 0), "tf32": (8, 0), "float8_e4m3fn": (8, 9), "float8_e5m2": (8, 9),
    "float4_e2m1fn": (10, 0),
}  # fmt: skip
_FLOAT64_PARTS = frozenset({(8, 0), (9, 0), (10, 0)})
"""Data-centre parts; the others run float64 in a few CUDA cores."""


def tensor_core_takes(cc: tuple[int, int], dtype: str) -> bool:
    """Whether a GPU of compute capability `cc` has Tensor Cores for inputs of `dtype`.

    Source: CUDA C++ Programming Guide, Tensor Core input types by compute capability. No
    Tensor Core takes plain float32, only `tf32`.
    """
    if dtype == "float64":
        return cc in _FLOAT64_PARTS
    since = _TENSOR_CORES_SINCE.get(dtype)
    return since is not None and cc >= since


_WEIGHTS = re.compile(r"_matmul_ogs_[NT]{1,9}_\w{1,80}?x(mxfp4|mxfp8|fp8\w*|nvfp4)_", re.IGNORECASE)


_BMM_INPUTS = re.compile(
    r"bmm_(?:Mx)?(?:Fp32|Bfloat16|Fp16|E[245]m[123])_((?:Mx)?(?:Bfloat16|Fp16|E[245]m[123]))"
    r"((?:Mx)?(?:Bfloat16|Fp16|E[245]m[123]))_"
)
_BMM_WEIGHTS = {"MxE2m1": "mxfp4", "E2m1": "nvfp4", "MxE4m3": "mxfp8", "E4m3": "fp8", "E5m2": "fp8"}
"""The narrowest first: if a product's inputs differ, the weights are the narrower ones."""


@by_name
def weight_type(name: str) -> str | None:
    """Return how a mixture-of-experts kernel's weights are stored; None if the name lacks it.

    `mxfp4` of Triton's `_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1`: result, activations,
    weights; and of TensorRT-LLM's `bmm_Bfloat16_MxE2m1Bfloat16_Fp32_...`.
    """
    if match := _WEIGHTS.search(name):
        return match[1].lower()
    if not (match := _BMM_INPUTS.match(name)):
        return None
    return next((kind for word, kind in _BMM_WEIGHTS.items() if word in match.groups()), None)
