"""TraceLens's figures for a ViT on an H100, and for steps of vLLM and SGLang on an MI300X.

Each row of its tables of ops is compared with these formulas.
"""

import ast
import csv

import pytest

from pyprof import marker, ops
from pyprof.marker import Call, Tensor, serving_steps
from pyprof.ops import dtypes
from pyprof.ops.examples import bf16
from pyprof.ops.model_config import ModelConfig
from pyprof.ops.work import CallContext, tensor_bytes
from tests.conftest import CAPTURES
from tests.known import known

VIT, VLLM = "kineto-h100-vit-inference", "kineto-mi300x-vllm-piecewise-graph"
# the names of the steps in these captures; none serves in the first
STEPS = {
    VIT: "",
    VLLM: (
        "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
        "_generation_37(sq37sk34489sqsq37sqsk34489)"
    ),
    "kineto-mi300x-sglang-decode-graph": (
        "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"
    ),
}
MIB = 1 << 20
GPT_OSS = ModelConfig(hidden=2880, expert_intermediate=2880, experts=32, experts_per_token=4)
PRODUCTS = {"rocm_unquantized_gemm", "gemm_a16w16", "mm", "addmm"}
NORMS = {"rmsnorm2d_fwd_with_add_ck", "rms_norm", "rmsnorm", "add_rmsnorm"}
pytestmark = pytest.mark.skipif(
    not all((CAPTURES / capture).exists() for capture in STEPS),
    reason="the shared captures are absent",
)


def _table(capture: str) -> list[dict[str, str]]:
    """Read the rows of a capture's table that are of ops with recorded arguments."""
    path = CAPTURES / capture / "tracelens_unified_perf_summary.csv"
    with path.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["Input Dims"]]


def _rows() -> list[tuple[dict[str, str], Call, ops.Cost]]:
    return [
        (row, call, ops.cost(call, context=CallContext(batch=serving_steps.read_requests(step))))
        for capture, step in STEPS.items()
        for row in _table(capture)
        if not row["name"].startswith("pseudo_op::")
        for call in [_call(row)]
    ]


def _call(row: dict[str, str]) -> Call:
    sizes, strides = ast.literal_eval(row["Input Dims"]), ast.literal_eval(row["Input Strides"])
    text = marker.encode_seq(
        row["name"].partition("->")[0],
        sizes=_lists(sizes),
        dtypes=_types(ast.literal_eval(row["Input type"])),
        strides=_lists(strides),
        inputs=list(ast.literal_eval(row["Concrete Inputs"])),
    )
    return known(marker.decode_seq(text).call)


def _types(given: object) -> object:
    if isinstance(given, tuple):
        return [_types(item) for item in given]
    return dtypes.canonical(str(given)) or ""


def _lists(given: object) -> object:
    return [_lists(item) for item in given] if isinstance(given, tuple) else given


def _flops_apart(call: Call, cost: ops.Cost) -> int:
    """Return how much more TraceLens counts, each time for a reason of its own."""
    x = next(value for value in call.args if isinstance(value, Tensor))
    if call.op in PRODUCTS:  # the addition of a bias
        bias = call.args[0] if call.op == "addmm" else (*call.args[2:], None)[0]
        added = isinstance(bias, Tensor) and bool(bias.shape)
        return added * int(str(cost.params["M"])) * int(str(cost.params["N"]))
    if call.op in NORMS:  # a mean's division and a root in each row
        return 2 * x.shape[0]
    if call.op == "layer_norm":  # 5 an element and a few a channel; here 8 (see docs/numbers.md)
        return (5 - 8) * x.numel + 6 * x.shape[-1]
    if call.op == "copy_":  # an operation an element, where nothing is computed
        return x.numel
    if call.op == "silu_and_mul":  # 5 an element; here a sigmoid costs 20, silu 21, the product 1
        return (5 - 22) * x.numel
    return 0


def test_flops_equal_those_of_tracelens() -> None:
    """To the last digit, except where we count differently on purpose."""
    compared = set()
    for row, call, cost in _rows():
        if row["GFLOPS"] and not row["name"].startswith("triton"):
            assert cost.flops is not None, (call, cost.reason)
            theirs = round(float(row["GFLOPS"]) * 1e9)
            assert cost.flops + _flops_apart(call, cost) == theirs, (call, row["GFLOPS"])
            compared.add(call.op)
    assert compared > PRODUCTS | NORMS | {
        *("unified_attention_with_output", "silu_and_mul", "rotary_embedding", "store_cache"),
        *("attention_paged_attention_ragged", "_scaled_dot_product_flash_attention"),
        *("convolution", "add", "layer_norm"),
    }


def _bytes_apart(call: Call) -> int:
    """Return how much more is counted here, each time for a reason of its own."""
    tensors = [value for value in call.args if isinstance(value, Tensor)]
    if call.op == "rotary_embedding":  # positions, and the rows of sines and cosines
        return tensor_bytes(tensors[0]) + tensors[0].numel * tensors[-1].shape[-1] * 2
    if call.op == "store_cache":  # where each token goes
        return tensor_bytes(tensors[-1])
    if call.op == "convolution":  # the bias, given, which TraceLens says is absent
        return tensor_bytes(tensors[-1])
    if call.op == "layer_norm":  # two statistics for each row, where it has two for each channel
        return 2 * 4 * (tensors[0].numel // tensors[0].shape[-1] - tensors[0].shape[-1])
    return tensors[0].numel * 4 if call.op == "cumsum" else 0  # int32 sums up in int64


def test_bytes_equal_those_of_tracelens() -> None:
    """To the byte, except for what it omits."""
    for row, call, cost in _rows():
        if row["Data Moved (MB)"] and not row["name"].startswith("triton"):
            theirs = round(float(row["Data Moved (MB)"]) * MIB)
            assert known(cost.bytes) - _bytes_apart(call) == theirs, (call, row["Data Moved (MB)"])


def test_ops_that_tracelens_does_not_model_have_a_cost() -> None:
    """Unless it is in no argument: which rows are picked, the types of a list's tensors."""
    missing = [(call.op, cost) for row, call, cost in _rows() if not row["GFLOPS"]]
    unknown = {name for name, cost in missing if cost.bytes is None}
    assert unknown <= {"index", "_foreach_copy_", "cat", "triton_poi_fused_0"}
    of_vit = {
        name: (cost.flops, cost.bytes, cost.reason)
        for name, cost in missing
        if name in ("gelu", "tanh", "cat")
    }
    assert of_vit == {
        "gelu": (24 * 4 * 197 * 3072, 2 * 2 * 4 * 197 * 3072, ""),
        "tanh": (20 * 4 * 768, 2 * 2 * 4 * 768, ""),
        "cat": (0, None, "unknown dtype"),
    }


def test_experts_differ_from_tracelens_by_padding_and_scales() -> None:
    """It uses the padded width for both, and no scales; the configuration says 2880.

    It also counts bytes that one product writes and the next reads.
    """
    theirs = {row["name"]: row for row in _table(VLLM)}
    up, down = (theirs[f"pseudo_op::moe_triton_unfused_{name}"] for name in ("up", "down"))
    tokens, gates = bf16(8192, 3072), bf16(8192, 32)
    call = Call("vllm", "moe_forward", (tokens, gates))
    ours = ops.cost(call, context=CallContext(model=GPT_OSS, weights="mxfp4"))
    padded = ModelConfig(hidden=3072, expert_intermediate=3072, experts=32, experts_per_token=4)
    wide = ops.cost(call, context=CallContext(model=padded, weights="mxfp4"))
    assert ours.flops is not None
    assert wide.flops == round(sum(float(row["GFLOPS"]) for row in (up, down)) * 1e9)
    assert ours.flops * 3072**2 == wide.flops * 2880**2
    between = 8192 * 4 * 3072 * 2  # bfloat16
    moved = sum(float(row["Data Moved (MB)"]) for row in (up, down)) * MIB - 2 * between
    scales, routed = 32 * 3 * 3072**2 // 32, 8192 * 32 * 2
    assert wide.bytes == moved + scales + routed
