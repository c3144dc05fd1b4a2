"""Advice on many small kernels: optimizers, element-wise chains, recomputed forward work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.loops import taken_ns
from pyprof.analysis.advice.registry import KERNELS, NODES, OPS, PEAKS, rule
from pyprof.analysis.attention_calls import attention_calls, dtype_of, fused_ns, suits
from pyprof.analysis.library import is_compiled
from pyprof.analysis.pointwise_chains import chain_ns, pointwise_chains
from pyprof.gpu.kernel_dtypes import HALF
from pyprof.gpu.role_rules import Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Int64Array, Mask


@rule(
    "one kernel takes many parameters: foreach, fused",
    "gradients are clipped, which no constructor of an optimizer changes",
    "on a CPU, an optimizer that has no fused form there",
    about="fusion",
    needs=(NODES,),
)
def unfused_optimizer(context: RuleContext) -> Advice | None:
    """Find element-wise work of the optimizer on one parameter after the other."""
    # a marker names clip_grad_norm_ or its kin, and hides its frames; without markers the stack
    # has them
    clips = context.op.matches(lambda op: op.startswith(("clip_grad", "get_total_norm")))
    clips |= context.table.records.dictionary("trace").matches(
        lambda frames: any("clip_grad.py" in each for each in frames or ())
    )
    rows, won = _find_fusible(context, context.is_one("dir", "optim") & ~clips)
    on_cpu = context.kind(schema.CPU).any()
    several = "calls several ops" if on_cpu else "launches several kernels"
    return context.advice(
        f"the optimizer {several} per parameter",
        "fused=True in the constructor of torch.optim's Adam, AdamW, SGD or Adagrad"
        if on_cpu
        else "fused=True (or foreach=True) in torch.optim's constructors",
        rows,
        context.most(rows, won),
    )


_FUSED_ON_CPU = frozenset({"Adam.step", "AdamW.step", "SGD.step", "Adagrad.step"})


def _find_fusible(context: RuleContext, wanted: Mask) -> tuple[Int64Array, NDArray[np.float64]]:
    """Find rows in runs of at least two, and what fusing each could save.

    A run is consecutive element-wise work of one size on one stream. One kernel that reads and
    writes once takes about as long as the longest of them: the time of the others is saved. On a
    CPU, ops that are not in place are saved, too: most of their time goes into new memory; and one
    call takes all parameters, so that what calling each op took is saved.
    """
    pointwise = context.role(Role.ELEMENTWISE, Role.OPTIMIZER)
    names = (*context.calls.around, *context.op.values)
    if (steps := {name for name in names if name.endswith(".step")}) and steps <= _FUSED_ON_CPU:
        pointwise |= context.kind(schema.CPU) & context.family("pointwise")
    single = wanted & pointwise & ~_find_multi_tensor(context)
    order, one_stream = context.by_stream
    size, single = context.elements[order], single[order]
    same = one_stream & (size[1:] == size[:-1]) & (size[1:] > 0) & single[1:] & single[:-1]
    run = np.cumsum(np.concatenate([[True], ~same])[: len(order)]) - 1
    inside = (np.bincount(run) > 1)[run]
    rows, run = order[inside], run[inside]
    ns = taken_ns(context)[rows] if context.cpus else context.ns[rows]
    kernel = context.table.records.dictionary("kLongName")
    out_of_place = context.kind(schema.CPU) & ~kernel.matches(lambda name: name.endswith("_"))
    longest = np.zeros(int(run.max(initial=-1)) + 1)
    np.maximum.at(longest, run, np.where(out_of_place[rows], 0, context.ns[rows]))
    total = np.bincount(run, weights=ns)
    return rows, ns * (1 - longest[run] / np.maximum(total[run], 1))


def _find_multi_tensor(context: RuleContext) -> Mask:
    """Find kernels that work on many tensors at once, or are fused already."""
    fused = ("multi_tensor", "fused", "foreach", "triton_")
    name = context.table.records.dictionary("kLongName")
    return name.matches(lambda text: any(part in text.lower() for part in fused))


_OF_MANY = ("AccumulateGrad", "_foreach_")
"""Within the names of ops on lists of unrelated tensors."""


@rule(
    "one op after another on different tensors: a loop, AccumulateGrad, foreach, DDP",
    "products, or other kernels that are not fused, between them",
    "one kernel of the chain's inputs and outputs would take as long",
    about="fusion",
    needs=(NODES,),
)
def unfused_pointwise(context: RuleContext) -> Advice | None:
    """Find chains of point-wise kernels, norms, reductions and copies, outside the optimizer."""
    of_many = context.op.matches(lambda op: any(part in op for part in _OF_MANY))
    wanted = context.chosen & ~of_many & ~_find_multi_tensor(context)
    rows, chain = pointwise_chains(context, wanted)
    ns, moved = context.ns[rows], context.table.costs.bytes[rows].astype(float)
    fused = chain_ns(ns, np.where(moved >= 0, moved, np.nan), chain, context.bandwidth[rows])
    won = ns * (1 - fused / np.maximum(np.bincount(chain, ns), 1))[chain]
    gains = won > 0
    what = "ops" if context.kind(schema.CPU).any() else "kernels"
    return context.advice(
        f"consecutive point-wise {what}, norms and copies each move their tensors",
        "let torch.compile have these ops, too (TORCH_LOGS=graph_breaks says why it left them), or"
        " use a fused op (bias + GELU, norm + residual)"
        if is_compiled(context.table)
        else "fuse element-wise ops by torch.compile, or use a fused op (bias + GELU, norm +"
        " residual)",
        rows[gains],
        context.predicted(
            rows[gains],
            won[gains],
            "--fuse pointwise",
            "model = torch.compile(model)",
            sized=context.sized(rows),
        ),
        elsewhere="fuse element-wise kernels into one (CuPy: @cupy.fuse; JAX: jax.jit)",
    )


@rule(
    "a router of experts, or another softmax that no product of its sizes follows",
    "fewer than 64 queries, or heads narrower than 32: fused kernels were no faster there",
    "attention is fused already",
    about="fusion",
    needs=(KERNELS, NODES, PEAKS),
)
def eager_attention(context: RuleContext) -> Advice | None:
    """Find attention in separate kernels: two products, and everything between them.

    In float32 fused kernels are no faster, so the advice includes a change of type.
    """
    calls = [call for call in attention_calls(context) if suits(call)]
    if not calls:
        return None
    dtypes = [dtype_of(context, call) for call in calls]
    on_cpu = bool(context.cpus) and not context.devices
    what = "ops" if on_cpu else "kernels"
    casts = any(dtype not in HALF for dtype in dtypes) and not on_cpu
    softmaxes = [call.softmax for call in calls]
    half = "bfloat16" if context.device_has("bfloat16")[softmaxes].all() else "float16"
    fused = [
        # a CPU's peaks are unknown: the gain is less than all of the time
        0.0 if on_cpu else fused_ns(context, call, dtype if dtype in HALF else half)
        for call, dtype in zip(calls, dtypes, strict=True)
    ]
    rows = np.concatenate([np.array(call.rows, np.int64) for call in calls])
    call_of = np.repeat(np.arange(len(calls)), [len(call.rows) for call in calls])
    now = np.bincount(call_of, context.ns[rows])
    won = context.ns[rows] * (1 - np.array(fused) / np.maximum(now, 1))[call_of]
    code = "torch.nn.functional.scaled_dot_product_attention(q, k, v)"
    autocast = f"with torch.autocast('cuda', torch.{half}): "
    if {context.op.at(row) for row in softmaxes} == {"scaled_dot_product_attention"}:
        action, code = _FELL_BACK, f"with {_FLASH}: {code}"
    elif casts:
        action = f"call {code}, in {half}: fused kernels are no faster in float32"
    else:
        action = f"call {code}"
    return context.advice(
        f"attention runs as separate {what}: products, softmax and what is between them",
        action,
        rows,
        context.predicted(rows, won, "--fuse attention", autocast * casts + code, sized=True),
        elsewhere="use a fused attention kernel, in half precision",
    )


_FLASH = "torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION)"
_FELL_BACK = (
    "scaled_dot_product_attention took no fused kernel: pass q, k and v with 4 dimensions and in"
    " one dtype; on a GPU in half precision, with is_causal=True in place of a mask; on a CPU with"
    f" dropout_p=0; under {_FLASH} it says what it refuses"
)


@rule(
    "an op that a backward node calls for itself, in no module's forward",
    about="recomputation",
    needs=(OPS,),
)
def recomputation(context: RuleContext) -> Advice | None:
    """Find activation checkpointing: forward ops that the backward pass calls again."""
    rows = np.flatnonzero(context.chosen & (context.table.records.numpy("recomputed") == 1))
    return context.advice(
        "the backward pass repeats forward work (activation checkpointing)",
        "if memory allows, checkpoint fewer layers, or only cheap ops (selective checkpointing)",
        rows,
        context.most(rows, context.ns[rows]),
    )
