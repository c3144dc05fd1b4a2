"""Classifies the texts of ranges by their form, and recognizes those of libraries.

The names and NVTX domains of libraries are listed here alone: every other range is the user's.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pyprof.marker.model import CLOSURE, NODE, STEP_OF, Kind
from pyprof.marker.user_ranges import STEP_END, is_named_module, is_step

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
    | .*(?:\(dynamo_timed\)$|_data:[ ].*\bcompile_id=)
    | .*\.<locals>\.\w+[ ]\(dynamo
    | \w*_compile(?:_inner)?$
    """,
    re.VERBOSE,
)


def is_library_domain(domain: str) -> bool:
    """Whether an NVTX domain is a library's."""
    return domain.casefold() in _DOMAINS


OWN_NAMES = r"record_param_comms|CompiledFunctionBackward|PythonDispatchMode|PythonSubclass"
"""Names of PyTorch's own ranges of no particular form, known even without a number."""
_SEQ = re.compile(r", (?:seq|op_id|sizes) = ")
_BARE_SEQ = re.compile(
    rf"(?:aten|autograd|c10d|prims|quantized|torchvision)::\S+$|{NODE}$"
    rf"|(?:{OWN_NAMES})$|autograd::engine::evaluate_function: \S+$"
)
_TORCH_NAME = re.compile(
    r"[\w.]+(?:::[\w.~]+)+(?:<.*>)?$"  # aten::add
    rf"|autograd::engine::evaluate_function: .|{NODE}$|nccl:\w+$|(?:{OWN_NAMES})$"
)

CUT_OP = re.compile(r"""\{['"]mod['"]: ['"]([^'"]*)['"], ['"]op['"]: ['"]([^'"]*)['"]""")
"""Finds the names in an op marker, even if the rest of it is missing."""

NOT_OPS = frozenset({"__getattr__", "__torch_function__", "__torch_dispatch__", "__getattribute__"})
"""Never ops, though old instrumentation wrapped them and left markers of them."""


@lru_cache(maxsize=1 << 16)
def classify(text: str) -> Kind:
    """Return the kind of a text. Never raises."""
    if text.startswith("{"):
        return _classify_dict(text)
    if text.startswith("layer:"):
        return Kind.LAYER
    if text.startswith((STEP_OF, "Optimizer.zero_grad#", CLOSURE)):
        return Kind.OPTIMIZER
    if _SEQ.search(text):
        return Kind.SEQ if _is_torch_range(text) else _classify_name(text.split(", ", 1)[0])
    return Kind.SEQ if _BARE_SEQ.match(text) else _classify_name(text)


def _classify_name(name: str) -> Kind:
    if not name.strip() or name == STEP_END or (_NAMES.match(name) is not None):
        return Kind.CONTEXT
    return Kind.STEP if is_step(name) else Kind.USER


def _is_torch_range(text: str) -> bool:
    """Whether it is an op or autograd node, not a `record_function` of the user or a library.

    emit_nvtx numbers both. A user's range has no sequence number and no namespace; nor has a
    function of TorchScript, whose range has its arguments: the ops are inside. (Ops had no
    namespace while ranges had no ids.) A user's range called `Backward` has none either: nodes of
    autograd have a number, or a name of a certain form.
    """
    name = text.split(", ", 1)[0]
    if name.startswith("FSDP::"):  # ranges of FSDP look like ops of a namespace
        return False
    if ", seq = " in text or _TORCH_NAME.match(name) is not None:
        return True
    return ", sizes = " in text and ", op_id = " not in text


def _classify_dict(text: str) -> Kind:
    head = text[:20].replace('"', "'")
    if head.startswith("{'traceMarker'"):
        return Kind.TRACE
    if not head.startswith("{'mod'"):
        return Kind.USER if is_named_module(text) else Kind.CONTEXT
    if CUT_OP.match(text):
        return Kind.OP
    return Kind.MODULE if "strRepr" in text else Kind.CONTEXT


def without_sizes(text: str) -> str:
    """Cut an op's sizes and what follows, which do not matter for its kind."""
    sizes = text.find(_SIZES)
    head = text[: sizes + len(_SIZES)]
    return text if sizes < 0 or ", op_id = " not in head else head


_SIZES = ", sizes = "


def layer_name(text: str) -> str:
    """Return the name in a `layer:` text: up to the next colon, as the original had it.

    `layer::` precedes a name that contains colons.
    """
    name = text.removeprefix(WHOLE_LAYER)
    return name if name != text else text.split(":", 2)[1]


WHOLE_LAYER = "layer::"
"""Precedes a layer's name that contains colons."""


def plain_layer(text: str) -> str:
    """Write a layer text as if its name had no colons; any other text unchanged."""
    return text.replace(WHOLE_LAYER, "layer:", 1) if text.startswith(WHOLE_LAYER) else text
