"""Ranges that libraries and PyTorch push around their own work, by NVTX domain and by name.

The only list of them. They say nothing of the user's program: every other range is the user's.
"""

from __future__ import annotations

import re

_DOMAINS = frozenset(
    {
        *("nccl", "nvshmem", "mpi", "ucx", "ucc", "openshmem"),
        *("cccl", "thrust", "cub", "libcu++"),
        *("cublas", "cublaslt", "cudnn", "cufft", "curand", "cusolver", "cusparse", "cutensor"),
        *("nvfuser", "nvjpeg", "nvimagecodec", "dali", "libcudf", "libkvikio", "librmm", "rmm"),
        *("openacc", "cuda", "nvrtc", "numba"),
    }
)
"""NVTX domains, in lower case."""

_NAMES = re.compile(
    r"""
    (?:nccl|ncclDev|nvshmemx?|ucp|ucc|MPI|PMPI)_?[A-Z_]\w*$    # calls of communication libraries
    | (?:nccl|gloo|mpi|ucc|xccl)[ ]?:                          # torch.distributed's word for them
    | (?:nvshmem|nvte|cutensor|magma)_?\w+$
    | cu(?:blas|blasLt|dnn|fft|rand|solver|sparse|da)[A-Z_]\w*$
    | (?:cub|thrust|at_cuda_detail|raft|rmm)::
    | (?:aten|autograd|c10d|c10|prims|torch|inductor|functorch|profiler)::
    | (?:GpuLower|KernelExecutor|ExprEvalExecutor|ExecutorRunFusion|FusionExecutor(?:Cache)?
      |FusionKernelRuntime|FusionDefinition|ExpressionEvaluator|TransformReplay|PrecomputedValuess?
      |IrContainer|Fusion|SyncMap|executor_utils|fusion_executor|\w+\.cpp)(?:::|[ ]\w+$)  # nvFuser
    | (?:PyTorch[ ]Profiler|Iteration[ ]Start|Record[ ]Window|Activity[ ]Buffer)
    | (?:Optimizer\.(?:step|zero_grad|profile_hook)\#|enumerate\(DataLoader\)\#|enumerate\(\w+\)\#)
    | (?:DistributedDataParallel|FullyShardedDataParallel|DataParallel)\.forward$
    | (?:<forward[ ]op>|<backward[ ]op>|_grad_sum_to_size)$    # TorchScript's
    | (?:detach_?|resize_(?:as_)?|set_|_fw_primal|_make_dual|lift_fresh)$
    | (?:TorchDynamo|Torch-Compiled|Pregraph[ ]bytecode|AOTDispatcher|CompiledFunction
      |CompiledFxGraph|Inductor|CUDAGraph|cudagraph|CachingAutotuner|PyCodeCache|fx_codegen|_compile\.|compile_fx)
    | \#\#[ ]Call[ ]CompiledFxGraph
    | \[(?:pytorch|inductor|dynamo)\b
    | .*\(dynamo_timed\)$
    | .*\.<locals>\.\w+[ ]\(dynamo
    | \w*_compile(?:_inner)?$
    """,
    re.VERBOSE,
)


def is_library_domain(domain: str) -> bool:
    """Whether an NVTX domain is a library's."""
    return domain.casefold() in _DOMAINS


def is_library_range(name: str) -> bool:
    """Whether a library pushes a range of this name around its own work."""
    return _NAMES.match(name) is not None
