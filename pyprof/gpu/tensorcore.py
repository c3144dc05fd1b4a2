"""Whether a kernel used Tensor Cores, by its full name, with the rule that decided it.

The only sure answer is a hardware counter; the rules are what such counters and achieved rates
confirmed for families of names (NVIDIA publishes no list). If a name does not show it, the answer
is `?`, not no. A new family is one line here, and one row per real name in its test.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from pyprof.gpu.kernel_dtypes import (
    FIRST_TENSOR_CORES,
    HALF,
    MMA_SHAPE,
    NARROW,
    name_types,
    tensor_core_takes,
)
from pyprof.gpu.kernel_names import by_name, split
from pyprof.gpu.kernel_roles import HELPERS, MATRIX_ROLES, role


class Verdict(Enum):
    """What a matching rule concludes."""

    YES = "1"
    NO = "0"
    UNKNOWN = "?"
    IF_NARROW = "by dtype"
    """Yes for inputs of 16 bits and less, which have no known CUDA-core variant; else unknown."""


class Rule(NamedTuple):
    """One name family. `name` is stable: users filter the `why` column by it."""

    name: str
    verdict: Verdict
    pattern: str
    because: str


_GENERATION = r"(?:kepler|maxwell|pascal|volta|turing|ampere|ada|hopper|blackwell)"

YES, NO, OPEN, IF_NARROW = Verdict

RULES: tuple[Rule, ...] = (
    # CUDA cores, whatever else the name holds: many libraries put `xmma` or `fp16` before it.
    Rule("simt", NO, r"(?<![a-z])simt(?![a-z])|OpClassSimt|MmaSimt", "CUTLASS for CUDA cores"),
    Rule("ffma", NO, r"_ffma(?![a-z])", "xmma with plain multiply-adds"),
    Rule("pre-volta", NO, r"(?<![\w])sm_?[56]\d_", "built for GPUs without Tensor Cores"),
    # Tensor Cores, named outright.
    Rule("nvjet", YES, r"(?<![a-z0-9])nvjet_", "cuBLAS's matrix kernels since Hopper"),
    Rule("tensorop", YES, r"tensorop(?![a-z])", "CUTLASS's word for Tensor Cores"),
    Rule(
        "mma",
        YES,
        r"(?<![a-z])(?:wg|[whidbug])mma(?![a-z])|tcgen05|mma_sync|SM\d+_\d+x\d+x\d+_[FSUTB]",
        "names the matrix instruction",
    ),
    Rule("mma-shape", YES, r"_tensor\d+x\d+x\d+|(?<![a-z0-9])m\d+n\d+k\d+(?![a-z0-9])",
         "names the matrix instruction's shape"),
    Rule(
        "mma-digits",
        YES,
        # the letter of the sum before and the family after it: a hash may well end in 884
        rf"(?<![a-z0-9])[hsdicz]{MMA_SHAPE}(?=gemm|cudnn|fprop|dgrad|wgrad|conv|_|$)",
        "884, 1688, 16816, ...: the matrix instruction's shape",
    ),
    Rule("cutlass3", YES, r"MainloopSm(?:90|1[0-9]{2})|cutlass_3x_gemm",
         "CUTLASS 3's matrix pipelines"),
    Rule("marlin", YES, r"(?<![a-z])(?:marlin|machete)(?![a-z])",
         "Marlin and Machete: weights of few bits, MMA"),
    Rule("xmma-sparse", YES, r"xmma_sparse", "structured sparsity needs Tensor Cores"),
    Rule("xmma-warpgroup", YES, r"xmma.*(?:warpgroupsize|warp_specialized)",
         "Hopper's warp-group matrix instruction"),
    Rule("tensile-mi", YES,
         r"^Cijk_.*_MI\d+x\d+|(?<![a-z])mfma|(?<![a-z])xdl(?:ops?)?(?![a-z])",
         "AMD's matrix instruction"),
    Rule("miopen-igemm", YES, r"(?<![a-z])igemm_\w+_gtcx\d?_",
         "MIOpen's implicit GEMM by AMD's matrix instruction"),
    Rule("ck-tile", YES,
         r"ck_tile.*(?:Fmha(?:Fwd|Bwd|BatchPrefill)|UnifiedAttention|(?:Gemm|Flatmm)\w*Kernel)",
         "Composable Kernel's products and attention are of AMD's matrix instruction"),
    Rule("trtllm-gen", YES,
         r"^(?:bmm|gemm)_(?:(?:Mx)?E[245]m[123]|Bfloat16|Fp16)_|fmhaSm(?:9|1\d)\d",
         "TensorRT-LLM's generated kernels for Hopper and Blackwell"),
    Rule("cute-dsl", YES,
         r"^kernel_cutlass_\w*MMAAtom_\w*ShapeMNK(?!111_)\d"
         r"|^kernel_cutlass_\w*(?:Sm90|Sm1\d\d|Hopper|Blackwell)\w*(?:Gemm|Attention)",
         "CuTe DSL: an argument is the matrix instruction"),
    Rule("deep-gemm", YES,
         r"deep_gemm::\w*(?:gemm|mqa_logits|einsum|bmk_bnk|bhr_hdr|mega_moe)"
         # without its namespace, as tools show it that cut names short
         r"|^(?:sm(?:90|1\d\d)_\w*(?:gemm|mega_moe)\w*_impl|fp8_(?:wgrad_)?gemm(?:_bw)?_kernel)(?!\w)",
         "DeepGEMM: Hopper's and Blackwell's matrix instructions alone"),
    Rule("sage-attention", YES, r"qk_int8?_sv_f(?:8|16)\w*_attn",
         "SageAttention: MMA of int8, then of fp16 or fp8"),
    Rule("cudnn-sdpa", YES, r"cudnn_generated_\w*sdpa", "cuDNN attention: 16 bits or fewer"),
    Rule(
        "flash",
        YES,
        r"(?<![a-z])flash_(?:fwd|bwd)|FlashAttention(?:For|Back)ward|FlashAttn(?:Fwd|Bwd)"
        r"|flash::enable_sm|flash_mla|sparse_attn_fwd_kernel|compute_attn_ws"
        r"|fmha_(?:fwd|bwd|fprop|dgrad)\w*_loop",
        "flash attention exists for 16 bits or fewer",
    ),
    Rule("cutlass-fmha", YES, r"Sm1\d{2}Fmha\w*Kernel\w*Warp_?specialized",
         "CUTLASS's attention for Blackwell: 16 bits or fewer"),
    Rule("fmha-v2", YES, r"fmha_v2_flash_attention_(?:bf16|fp16|e4m3)_",
         "TensorRT-LLM's fused attention: 16 bits or fewer"),
    Rule("xqa", YES, r"^kernel_mha(?:_impl)?$", "TensorRT-LLM's XQA: the matrix instruction"),
    Rule("fused-a-gemm", YES, r"(?:^|\s|::)fused_a_gemm_kernel",
         "DeepSeek's products before attention, of few tokens: MMA"),
    # fmha_cutlassF_f32_aligned_64x64_rf_sm50: the suffix is the architecture compiled for
    Rule("fmha-simt", NO, r"fmha_cutlass[FB]_(?:\w+_sm[56]\d|f32_\w+_sm7\d)(?!\d)",
         "memory-efficient attention for CUDA cores"),
    Rule("fmha", YES, r"fmha_cutlass[FB]_(?:b?f16_\w+_sm(?:7|[89]|1\d)\d"
         r"|f32_\w+_sm(?:[89]|1\d)\d)",
         "memory-efficient attention on Tensor Cores"),
    Rule("flashinfer", YES,
         r"(?:Batch|Single)PrefillWith|flashinfer::PrefillWithKVCache|BatchMLAPaged?Attention",
         "FlashInfer prefill, and its MLA, exist for 16 bits or fewer"),
    # CUDA cores, by family.
    Rule("flashinfer-decode", NO, r"(?:Batch|Single)DecodeWith(?!\w*MLA)",
         "FlashInfer decode: a query at a time, CUDA cores"),
    Rule("cublas-simt", NO,
         rf"{_GENERATION}_(?:fp16_|bf16_|int8_)?(?:gc|gz|[sdczh])(?:gemm|cudnn)(?![a-z])",
         "cuBLAS or cuDNN without a matrix instruction in the name"),
    # before gemv, which its arguments name
    Rule("gemm-small-n", NO, r"gemmSN_[NT]{2}_kernel", "cuBLAS for few columns: CUDA cores"),
    Rule("gemv", NO, r"gemv|gemmk1_kernel|(?<![a-z])dot_kernel",
         "a vector as operand: limited by memory, CUDA cores"),
    Rule("cudnn-classic", NO,
         r"convolve\w*_sgemm|convolveNd|convolve_common_engine|wgrad_alg\d"
         r"|(?<![a-z])[dw]grad\w*_engine|grouped_direct|winograd|fft\dd_"
         r"|Sp3AsmConv|naive_conv_",
         "cuDNN's or MIOpen's older algorithms for CUDA cores"),
    Rule("sgemm", NO, r"(?<![a-z0-9])(?:gc|[sdcz])gemm(?![a-z0-9])",
         "BLAS by its classic name: CUDA cores"),
    Rule("router-gemm", NO, r"(?<![a-z])router_gemm_kernel",
         "DeepSeek's router for few tokens: CUDA cores"),
    Rule("magma", NO, r"(?<![a-z])magma_", "MAGMA: CUDA cores"),
    Rule("torch-conv", NO, r"at::native::.*conv_depthwise|at::native::.*slow_conv",
         "PyTorch's own convolution: CUDA cores"),
    Rule("wna16", NO, r"moe_wna16_gemm_kernel|gemm_half_q_half_(?:gptq|alt)_\dbit",
         "weights of few bits, by plain multiply-adds"),
    Rule("dp4a", NO, r"mul_mat_vec_q", "GGML's products with a vector: four bytes at a time"),
    Rule("causal-conv1d", NO, r"causal_conv1d", "a short convolution, plain multiply-adds"),
    Rule("recurrence", NO,
         r"selective_(?:scan|state)_|^_state_passing_|fused_recurrent",
         "a state of each channel, updated without a matrix product"),
    # The name alone does not decide.
    Rule("triton-template", IF_NARROW, r"^triton_(?:tem|mm|bmm)_|^triton_flex|^triton_mm",
         "Triton template with tl.dot"),
    Rule("triton-attention", IF_NARROW,
         r"^_?attn_(?:fwd|bwd)(?![a-z])|^bwd_kernel_(?:dk_dv|dq|fuse)|^_fwd_kernel_aligned"
         r"|^kernel_(?:unified_attention_[23]d|paged_attention_2d)|^_fwd_grouped_kernel_stage1",
         "Triton attention, tl.dot"),
    Rule("triton-decode", NO, r"^_fwd_kernel_stage1",
         "Triton decoding of one head at a time, sums without tl.dot"),
    Rule("triton-linear-attention", IF_NARROW,
         r"^_?(?:chunk_gated_delta_rule_(?:fwd|bwd)_kernel_(?:h|dhu|kkt)"
         r"|chunk_(?:fwd|bwd)_kernel_(?:o|h|dqkwg)|chunk_(?:fwd_o|gla_fwd_kernel_o)"
         r"|chunk_scaled_dot_kkt|recompute_w_u_fwd|prepare_wy_repr|chunk_scan_(?:fwd|bwd_d[cx])"
         r"|chunk_state_|bmm_chunk_(?:fwd|bwd)|seg_la_)",
         "state spaces and linear attention in Triton, tl.dot"),
    Rule("triton-matmul", IF_NARROW,
         r"^_(?:p_)?matmul_ogs_|(?:^|_)w8a8_(?:block_)?(?:fp8|int8)_matmul|^fused_moe_kernel"
         r"|^_?(?:chunked_)?(?:sgemm_)?lora_(?:shrink|expand|[ab])_kernel|^(?:gate_up|qkv)_lora_b_kernel"
         r"|^_fused_moe_lora_kernel|^awq_gemm_kernel|^(?:matmul|bmm)_kernel_persistent"
         r"|^_mxfp8_block_scaled_matmul|^scaled_mm_kernel|^batched_triton_kernel",
         "a library's matrix product in Triton, tl.dot"),
    Rule("triton", OPEN, r"^triton_", "a Triton kernel: tl.dot or not"),
    Rule("cudnn-fusion", IF_NARROW, r"cudnn_generated_", "generated by cuDNN"),
    Rule("xmma-depthwise", OPEN, r"xmma_depthwise", "depthwise xmma, no instruction named"),
    Rule("xmma-type", IF_NARROW, r"xmma_", "xmma, name cut short before its instruction"),
    Rule("cudnn-2020", IF_NARROW,
         r"first_layer_wgrad_kernel|dgrad_1x1_stride_2x2|conv1x1|direct_group",
         "in lists of 2020, without evidence"),
)  # fmt: skip


USED, NOT_USED, UNKNOWN, NOT_APPLICABLE = "1", "0", "?", "-"

SEVERAL_PIPES = frozenset({10, 11})
"""Major compute capabilities of GPUs whose counters count tcgen05 in a pipe of its own, `tc`."""


class TensorCore(NamedTuple):
    """The verdict on one kernel name."""

    value: str
    """`1` used, `0` not used, `?` the name does not show it, `-` no arithmetic that could use them.
    """
    rule: str
    """`family: reason`; the family is stable and names a line of the rule table."""
    dtype: str | None
    """Input type in the name, in torch's words or `tf32`; None if it names none."""
    accumulate: str | None = None
    """Type of the sum in the name, if any: `float16` has its own peak on some GPUs."""


_RULES = tuple((rule, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES)
_YES = tuple((rule, pattern) for rule, pattern in _RULES if rule.verdict is Verdict.YES)
_INDUCTOR_LOOPS = re.compile(r"^triton_(?:poi|red|per|for|split_scan|spl)_")
_AMD = re.compile(r"^Cijk_|mfma|(?<![a-z])xdl|ck_tile|_gtcx\d?_", re.IGNORECASE)
"""Kernels of AMD's GPUs: CUDA's compute capability does not apply."""


@by_name
def tensor_core(
    name: str, *, cc: tuple[int, int] | None = None, dtype: str | None = None
) -> TensorCore:
    """Judge the kernel of this full name, demangled or not, possibly cut short. Never fails.

    `cc` is the device's CUDA compute capability (None for AMD, and where not known) and `dtype` the
    op's input type. Both settle what the name leaves open; before Volta, `cc` overrides the name.
    """
    types = name_types(name)
    value, rule = _by_name(name, types.dtype or dtype)
    if value != NOT_APPLICABLE and cc is not None and not _AMD.search(name):
        value, rule = _by_device(value, rule, cc, types.dtype or dtype)
    return TensorCore(value, rule, types.dtype, types.accumulate)


def _by_name(name: str, dtype: str | None) -> tuple[str, str]:
    if _INDUCTOR_LOOPS.match(name):
        return NOT_APPLICABLE, "inductor-loop: Triton without tl.dot"
    kind, path = role(name), split(name).path
    if kind in MATRIX_ROLES:
        rules, text = _RULES, name
    else:  # a fused kernel may be called a norm and still name its matrix instruction
        rules, text = _YES, "" if kind in HELPERS else path
    matched_rule = next((rule for rule, pattern in rules if pattern.search(text)), None)
    if matched_rule is not None:
        return _verdict(matched_rule, dtype)
    if kind not in MATRIX_ROLES:
        return NOT_APPLICABLE, f"{kind.value}: by its name"
    if path.startswith("at::native::"):
        return NOT_APPLICABLE, "torch: PyTorch's own kernel without a matrix product"
    return UNKNOWN, "no-rule: no rule knows this name"


def _verdict(rule: Rule, dtype: str | None) -> tuple[str, str]:
    text = f"{rule.name}: {rule.because}"
    if rule.name == "nvjet" and dtype == "float32":
        return UNKNOWN, f"{text}; float32 input, the name does not show TF32"
    if rule.verdict is not Verdict.IF_NARROW:
        return rule.verdict.value, text
    if dtype in HALF or dtype in NARROW or dtype == "tf32":
        return USED, f"{text}; likely, for {dtype} input"
    return UNKNOWN, f"{text}; input type {dtype or 'unknown'}"


def _by_device(value: str, rule: str, cc: tuple[int, int], dtype: str | None) -> tuple[str, str]:
    """Correct a verdict by the device: no Tensor Cores before Volta, no TF32 before Ampere, ..."""
    if cc < FIRST_TENSOR_CORES:
        return NOT_USED, f"device: compute capability {cc[0]}.{cc[1]} has no Tensor Cores"
    if value != UNKNOWN or dtype is None:
        return value, rule
    usable = "tf32" if dtype == "float32" else dtype
    if tensor_core_takes(cc, usable):
        return value, rule
    return NOT_USED, f"device: no Tensor Cores for {dtype} on {cc[0]}.{cc[1]}"
