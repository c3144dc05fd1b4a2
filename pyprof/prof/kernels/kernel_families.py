"""The family of each row's work, in words: from its op, else from its kernel's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.kernel_names import by_name, split
from pyprof.gpu.kernel_roles import role
from pyprof.gpu.role_rules import Role
from pyprof.ops.registry import OTHER
from pyprof.prof.calls.attributed_call import family
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.prof.table import Table

GEMM, CONV, ATTENTION, MOE, NORM = "GEMM", "convolution", "attention", "MoE", "norm"
LINEAR_ATTENTION = "linear attention"
ELEMENTWISE, REDUCTION, EMBEDDING = "element-wise", "reduction", "embedding"
COMM, COPY, FILL, TRITON = "communication", "copy", "fill", "Triton"
MULTI_TENSOR, STATE_SPACE = "multi-tensor", "state space"

OF_OPS: Mapping[str, str] = {
    "gemm": GEMM,
    "conv": CONV,
    "attention": ATTENTION,
    "moe": MOE,
    "rnn": "RNN",
    "ssm": STATE_SPACE,
    "norm": NORM,
    "softmax": "softmax",
    "loss": "loss",
    "pointwise": ELEMENTWISE,
    "quantization": "quantization",
    "reduction": REDUCTION,
    "scan": REDUCTION,
    "pool": "pooling",
    "resample": "resampling",
    "embedding": EMBEDDING,
    "index": "indexing",
    "distance": "distances",
    "fft": "FFT",
    "linalg": "linear algebra",
    "random": "random",
    "optimizer": MULTI_TENSOR,
    "comm": COMM,
    "copy": COPY,
    "fill": FILL,
}
"""Words for families of ops; for the others (views, fused ops) the kernel's name is better."""

OF_ROLES: Mapping[Role, str] = {
    Role.GEMM: GEMM,
    Role.SPLITK: GEMM,
    Role.CONV: CONV,
    Role.ATTENTION: ATTENTION,
    Role.LINEAR_ATTENTION: LINEAR_ATTENTION,
    Role.RNN: "RNN",
    Role.NORM: NORM,
    Role.SOFTMAX: "softmax",
    Role.LOSS: "loss",
    Role.POOL: "pooling",
    Role.ELEMENTWISE: ELEMENTWISE,
    Role.REDUCE: REDUCTION,
    Role.INDEX: "indexing",
    Role.RANDOM: "random",
    Role.OPTIMIZER: MULTI_TENSOR,
    Role.COMM: COMM,
    Role.LAYOUT: COPY,
    Role.COPY: COPY,
    Role.MEMCPY: COPY,
    Role.FILL: FILL,
    Role.MEMSET: FILL,
    Role.TRITON: TRITON,
}

_WORDS = {
    MOE: (
        r"(?:^|_|::|f)moe(?:_|::|[A-Z]|$)|expert|matmul_ogs|routing|matmul_scatter"
        r"|topk_?gating|expandInputRows|do(?:Gated)?ActivationKernel|row_id_map_pass"
        r"|shuffle_mul_sum|router_gemm|deepseek_v3_topk|compute\w*Strides"
        # TransformerEngine's; TensorRT-LLM's products of a batch that routing decides
        r"|^_(?:un)?permute_kernel$|^bmm_\w+_dynB"
    ),
    STATE_SPACE: r"chunk_(?:scan|state)_|bmm_chunk_|state_passing_|selective_s|_ssu_|causal_conv1d",
    # what prepares attention, or adds its parts up
    ATTENTION: (
        r"(?:^|_|::)flash(?!_?infer)|FlashAttn|splitkv|fmha|merge_attn|MergeState"
        r"|mla_combine|MlaReduction|AttentionSum|_fwd_kernel_stage2|^reduce_segments"
        r"|indexer|mqa_logits"
    ),
    ELEMENTWISE: r"rotary|(?:^|_)rope(?:_|$)|silu|gelu|act_and_mul|swiglu|geglu|MLARope",
    EMBEDDING: r"embedding",
}
"""Families in a kernel's name that are more exact than its role; the first match counts."""
_PATTERNS = [(word, re.compile(each, re.IGNORECASE)) for word, each in _WORDS.items()]


@by_name
def family_of_kernel(name: str) -> str:
    """Name the family of a kernel, or copy, by its full name; `other` if it shows none."""
    kind = role(name)
    if kind not in (Role.COMM, Role.MEMCPY, Role.MEMSET, Role.COPY):
        path = split(name).path
        said = next((word for word, pattern in _PATTERNS if pattern.search(path)), None)
        beside = said == ELEMENTWISE and kind in (Role.GEMM, Role.CONV, Role.ATTENTION)
        inductor = kind is Role.TRITON and path.startswith("triton_")
        if said is not None and not beside and not inductor:
            return said
    kinds = (Role.ELEMENTWISE, Role.LAYOUT, Role.INDEX, Role.OTHER)
    if kind in kinds and _QUANTIZES.search(split(name).path):
        return "quantization"
    return OF_ROLES.get(kind, OTHER)


_QUANTIZES = re.compile(
    r"[qQ]uant(?:ize)?(?:_|$|[A-Z])|scaled_fp8|per_token_group|to_fp4|cast_transpose"
    r"|block_scaled_\w*cast"
)
"""Words for quantization; also in the names of norms and products, which do more than that."""


def families(table: Table) -> DictionaryColumn:
    """Family of each row: communication by kernel name, else that of its op, else by name."""
    of_work = table.costs.work.map(lambda work: OF_OPS.get(family(work)))
    of_name = table.records.dictionary("kLongName").map(family_of_kernel)
    first, index = combinations(of_work.index, of_name.index)
    both = ((of_work.at(row), of_name.at(row)) for row in first.tolist())
    family_names = [name if name == COMM else op or name for op, name in both]
    return DictionaryColumn(np.asarray(index), family_names)
