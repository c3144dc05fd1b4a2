"""Traces without GPU work: the rows are the CPU ops that do the work."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from pyprof import marker, parse, schema
from pyprof.errors import CaptureError
from pyprof.ops import registry
from pyprof.readers.kineto import cpu
from pyprof.readers.kineto.cpu import BOOKKEEPING, MOVES, WORKERS
from tests.readers.kineto_calls import Called, call, events
from tests.readers.kineto_json import Event, event, op, read, texts, trace_file

X = [64, 64]


def _work(capture: schema.Capture) -> list[str]:
    names: list[str] = capture.activities["name"].to_pylist()
    return names


def _read(
    folder: Path, *calls: Called, clock: Callable[[str], float] = lambda _: 10
) -> schema.Capture:
    return read(folder, events(calls, clock))


def test_an_op_contains_none_that_begins_after_it_in_a_range_that_outlasts_it(
    tmp_path: Path,
) -> None:
    """As gloo's range of a send, which begins in the op and lasts until it is waited for."""
    sent = [op("c10d::send", 10, 8), event("user_annotation", "gloo:send", 12, 90)]
    assert _work(read(tmp_path, [*sent, op("aten::mm", 30, 20)])) == ["c10d::send", "aten::mm"]


def test_the_innermost_ops_are_rows(tmp_path: Path) -> None:
    capture = _read(tmp_path, call("linear", [X], call("relu", [X]), call("addmm", [X])))
    work = capture.activities.to_pylist()
    assert _work(capture) == ["aten::relu", "aten::addmm"]
    assert {row["kind"] for row in work} == {schema.CPU}
    assert {(row["device"], row["stream"], row["pid"]) for row in work} == {(0, 1, 7)}
    calls = capture.calls.to_pylist()
    for key in ("start", "end", "corr", "name"):
        assert [row[key] for row in work] == [call[key] for call in calls]
    assert any("no GPU work was captured" in warning for warning in capture.warnings)


MUL = call("mul", [X])
COPIED = call("clone", [X], call("empty_like", [X]), call("copy_", [X]))
ENGINE = "autograd::engine::evaluate_function: MmBackward0"
MM_NODE = call("MmBackward0", [X], call("mm", [X]), seq=4, forward=1)
T_NODE = call("TBackward0", [X], call("t", [X]), seq=4, forward=1)
ACCUMULATE = call("torch::autograd::AccumulateGrad", [X])
CLAMPED = call("relu_", [X], call("clamp_min_", [X]))
ROWS = {
    "a copy before the work": (
        [call("addmm", [X], call("expand", [X]), call("copy_", [X]))], "addmm"),
    # as Transformer's fast path calls it on a CPU
    "a product with its activation": (
        [call("_addmm_activation", [X, X, X], call("copy_", [X, X]), CLAMPED)],
        "_addmm_activation"),
    "a convolution in a convolution": (
        [call("conv2d", [X], call("mkldnn_convolution", [X]))], "mkldnn_convolution"),
    "a check for NNPACK": (
        [call("_convolution", [X], call("_nnpack_available", [[]]))], "_convolution"),
    "a backward node": ([call(ENGINE, [], MM_NODE)], "mm"),
    "the reducer": ([call("torch::distributed::reducer::mul_out", [X], MUL)], "mul"),
    "the reducer of torch 1": (
        [call("torch.distributed.ddp.reducer::copy_bucket_to_grad", [X], MUL)], "mul"),
    "what describes nested tensors": (
        [call("_nested_view_from_jagged", [X]), call("_nested_tensor_size", [X]), MUL], "mul"),
    "views": ([T_NODE, ACCUMULATE, call("reshape", [X], COPIED)], "copy_"),
    **{
        f"{name}, with work in training": ([call(name, [X]), call(name, [X], MUL)], "mul")
        for name in ("dropout", "feature_dropout_", "type_as")
    },
    "a library's op with its derivative in Python": (
        [Called("vision::roi", [X], (
            call("GeneratedBackwardFor_vision_roi_default", [X], call("zero_", [X]), seq=4),))],
        "GeneratedBackwardFor_vision_roi_default"),
    "a user's function around an op": ([Called("MyFunction", [X], (MUL,), seq=4)], "mul"),
    "what keeps a checkpoint's inputs": (
        [Called("_NoopSaveInputs", [X], (call("empty", [[]]),), seq=4), MUL], "mul"),
    "a user's function alone": ([Called("CompiledFunction", [X], seq=5)], "CompiledFunction"),
}  # fmt: skip


@pytest.mark.parametrize("ours", [1, 1000])
@pytest.mark.parametrize(("calls", "row"), ROWS.values(), ids=ROWS)
def test_the_op_that_works_is_the_row(
    tmp_path: Path, calls: list[Called], row: str, ours: float
) -> None:
    """However long it takes."""
    capture = _read(tmp_path, *calls, clock=lambda name: ours if name.endswith(row) else 50)
    assert [name.removeprefix("aten::") for name in _work(capture)] == [row]


def test_an_op_with_a_kernel_of_its_own(tmp_path: Path) -> None:
    """Some ops compute and call others that compute; layers wrap such ops."""
    own = call("mse_loss", [X], call("mse_loss", [X], call("mean", [X], call("sum", [X]))))
    work = _read(tmp_path, own, call("stack_of_mine", [X], call("sum", [X]))).activities.to_pylist()
    assert [(row["name"], row["start"]) for row in work] == [
        ("aten::mse_loss", 10_000),
        ("aten::sum", 91_000),
    ]


def test_ops_without_work_are_not_rows() -> None:
    """The reader and the formulas agree on which ATen ops do nothing."""
    aten = pytest.importorskip("torch").ops.aten
    idle = {name for model in registry.models() if not model.work for name in model.names}
    idle -= {name for model in registry.models() if model.work for name in model.names}
    named = {name for name in idle if hasattr(aten, name)}
    assert {name for name in named if not cpu._is_idle(f"aten::{name}")} == set()
    assert not BOOKKEEPING & (MOVES | WORKERS)


def test_inductors_cpu_kernels_are_rows(tmp_path: Path) -> None:
    events = [
        op("Torch-Compiled Region: 0/0", 0, 100, External_id=1),
        op("CompiledFunction", 10, 80, External_id=2, Sequence_number=5, Fwd_thread_id=0),
        op("graph_0_cpp_fused_gelu_0", 20, 10, External_id=3),
        op("TorchDynamo Cache Lookup", 200, 10, External_id=4),
    ]
    capture = read(tmp_path, events)
    assert capture.activities["name"].to_pylist() == ["graph_0_cpp_fused_gelu_0"]
    (call,) = filter(None, map(marker.decode_op, texts(capture)))
    assert call == marker.Call("cpp", "graph_0_cpp_fused_gelu_0")


def test_rows_of_a_thread_do_not_overlap(tmp_path: Path) -> None:
    events = [
        op("aten::a", 0, 100, External_id=1),
        op("aten::b", 10, 20, External_id=2),
        op("aten::c", 12, 2, External_id=3),
        op("aten::d", 40, 50, External_id=4),
        event("user_annotation", "note", 41, 40),
        op("aten::e", 45, 2, External_id=6),
    ]
    work = read(tmp_path, events).activities.to_pylist()
    for before, after in itertools.pairwise(work):
        assert before["end"] <= after["start"]


REAL_MM = call("mm", [X, X], call("resolve_conj", [X]))
EMPTY = call("empty_strided", [[], []])
DETACH = call("detach", [X])
EMPTY_ALONE = call("empty", [[]])
NEW_EMPTY = call("new_empty", [X], EMPTY_ALONE)
PERMUTED = call("empty_permuted", [[]], EMPTY_ALONE, call("as_strided", [X]))


def _mode(*inside: Called, kind: str = "PythonDispatchMode") -> Called:
    return Called(kind, [X], inside)


FAKE = {
    # what FakeTensorMode runs for a new combination of arguments, and for one that it knows
    "fake": call("matmul", [X, X], call("mm", [X, X], _mode(call("relu", [X]), DETACH, EMPTY))),
    "fake again": call("matmul", [X, X], call("mm", [X, X], _mode(EMPTY, DETACH))),
    # the same on its tensors outside of it
    "fake outside": call(
        "mm", [X, X], _mode(call("mm", [X, X], _mode(EMPTY, DETACH)), kind="PythonSubclass")
    ),
    # the meta device
    "product": call("linear", [X, X], call("addmm", [X, X], call("mm", [X, X], NEW_EMPTY))),
    "random": call("randn", [[]], call("prims::normal", [[]], EMPTY)),
    "in place": call("uniform_", [X], call("prims::uniform", [X], EMPTY), call("copy_", [X, X])),
    "convolution": call("convolution_backward", [X, X], NEW_EMPTY, NEW_EMPTY),
    "lookup": call("embedding", [X, X], NEW_EMPTY),
    "ones": call("ones", [[]], EMPTY_ALONE),
    "zeros": call("new_zeros", [X], call("full", [[]], EMPTY_ALONE)),
    "by reference": call("lerp_", [X, X], call("lerp", [X, X], PERMUTED)),
    "filled": call("full_like", [X], call("empty_like", [X], PERMUTED), call("fill_", [X])),
    "copied": call(
        "contiguous",
        [X],
        call("clone", [X], call("empty_like", [X], PERMUTED), call("copy_", [X, X])),
    ),
}


@pytest.mark.parametrize("fake", FAKE.values(), ids=FAKE)
def test_ops_on_tensors_without_data_are_not_rows(tmp_path: Path, fake: Called) -> None:
    capture = _read(tmp_path, fake, call("linear", [X, X], REAL_MM))
    assert _work(capture) == ["aten::mm"]
    assert capture.traced_ops >= 1
    assert capture.activities["start"].to_pylist()[0] > 50_000


@pytest.mark.parametrize(
    "real",
    [
        call("matmul", [X, X], call("mm", [X, X], _mode(REAL_MM))),  # FlopCounterMode
        call("mm", [X, X], _mode(REAL_MM, DETACH)),  # selective checkpointing keeps the result
        call("mm", [X, X], _mode(REAL_MM, call("empty_strided", [[]], _mode(EMPTY, DETACH)))),
        call("mm", [X, X], _mode(REAL_MM, kind="PythonSubclass")),
        call("torch::mul", [X, X], call("prims::mul", [X, X], REAL_MM)),
    ],
    ids=["mode", "mode that keeps", "make_fx", "subclass", "reference"],
)
def test_real_work_under_a_dispatch_mode_stays(tmp_path: Path, real: Called) -> None:
    capture = _read(tmp_path, real)
    assert (_work(capture), capture.traced_ops) == (["aten::mm"], 0)
    assert not any("left out" in warning for warning in capture.warnings)


@pytest.mark.parametrize(
    ("real", "row"),
    [
        (call("zeros", [[]], EMPTY_ALONE, call("zero_", [X])), "zero_"),
        (call("full", [[]], EMPTY_ALONE, call("fill_", [X])), "fill_"),
        (call("embedding", [X, X], call("index_select", [X, X], EMPTY_ALONE)), "index_select"),
        (call("contiguous", [X], call("clone", [X], call("empty_like", [X], EMPTY_ALONE),
                                      call("copy_", [X, X]))), "copy_"),
        (call("linalg_qr", [X], NEW_EMPTY), "linalg_qr"),
        # the step counter of AdamW, whose parameters are on the meta device
        (call("add_", [[], []], call("to", [[]], call("_to_copy", [[]], EMPTY,
                                                      call("copy_", [[], []])))), "add_"),
        (call("mul_", [X, []]), "mul_"),
    ],
)  # fmt: skip
def test_real_work_between_ops_without_data_stays(tmp_path: Path, real: Called, row: str) -> None:
    """An op whose events are the same on either device is a row: it may be real."""
    meta = call("addcmul_", [X, X, X], call("addcmul", [X, X, X], PERMUTED))
    capture = _read(tmp_path, meta, real, meta)
    assert (_work(capture), capture.traced_ops) == ([f"aten::{row}"], 2)


def test_a_product_with_zeros_of_forward_mode_is_not_a_row(tmp_path: Path) -> None:
    """The zeros have no data; the real product and the op around both are unchanged."""
    zeros = call("_efficientzerotensor", [[]])
    product = call("mul", [X, X], call("prims::mul", [X, X], PERMUTED), zeros)
    dual = call("linear", [X, X], REAL_MM, call("mul", [X, X], zeros, call("mul", [X, X], product)))
    capture = _read(tmp_path, dual)
    assert (_work(capture), capture.traced_ops) == (["aten::mm"], 1)


def test_a_sum_with_zeros_of_forward_mode_is_a_copy(tmp_path: Path) -> None:
    """The meta device tells the shape; then the other operand is copied, and that takes time."""
    unreal = call(
        "to", [X], call("_to_copy", [X], call("empty_strided", []), call("copy_", [X, X]))
    )
    copied = call("_to_copy", [X], call("empty_strided", []), call("copy_", [X, X]))
    shape = call("prims::add", [X, X], PERMUTED)
    inner = call("add", [X, X], unreal, call("expand", [X]), shape, call("expand", [X]), copied)
    zeros = call("_efficientzerotensor", [[]])
    capture = _read(tmp_path, call("mul", [X, X], zeros, call("add", [X, X], inner)))
    assert (_work(capture), capture.traced_ops) == (["aten::copy_"], 2)
    copies, shapes = (
        [range_["start"] for range_ in capture.ranges.to_pylist() if name in range_["text"]]
        for name in ("aten::copy_", "prims::add")
    )
    assert copies[0] < shapes[0] < copies[1]
    assert capture.activities["start"].to_pylist() == copies[1:]


def test_an_op_with_a_saved_result_is_not_a_row(tmp_path: Path) -> None:
    """Selective checkpointing returns the saved result, and nothing runs."""
    assert _work(_read(tmp_path, call("addmm", [X, X], DETACH, _mode()), REAL_MM)) == ["aten::mm"]


def _compiled() -> list[Event]:
    """torch.compile of a product: traced once with real names and sizes, then run."""
    compiling = event("cpu_op", "bytecode_tracing (dynamo_timed)", 0, 1000)
    return [compiling, *events([call("mm", [X, X])]),
            *(each | {"ts": each["ts"] + 2000} for each in events([REAL_MM]))]  # fmt: skip


def test_compilation_is_not_work(tmp_path: Path) -> None:
    """Ranges of torch.compile separate it from the run."""
    capture = read(tmp_path, _compiled())
    assert capture.activities["start"].to_pylist() == [2_000_000]
    (warning,) = (each for each in capture.warnings if "left out" in each)
    assert "1 CPU ops that gave shapes alone" in warning


def test_a_capture_of_tracing_alone_says_so(tmp_path: Path) -> None:
    path = trace_file(tmp_path, _compiled()[:2])
    with pytest.raises(CaptureError, match=r"only 1 CPU ops that gave shapes alone.*real tensors"):
        parse.parse_file(path)


CHECKPOINTED = [4, 6]


def _hooks() -> Called:
    return call("detach", [CHECKPOINTED])


def _node(number: int, *inside: Called) -> Called:
    return call("MulBackward0", [CHECKPOINTED], *inside, seq=number, forward=1)


def _stopped(folder: Path, *calls: Called) -> list[str]:
    decoded = map(marker.statement, texts(read(folder, events(calls))))
    return [found.name for found in decoded if found.is_stopped]


def test_each_checkpoint_stops_its_own_forward_pass(tmp_path: Path) -> None:
    forward = call("mul", [CHECKPOINTED, CHECKPOINTED], _hooks(), seq=3)
    nodes = [
        _node(
            at,
            call("sin", [CHECKPOINTED], _hooks(), seq=at + 10),
            call(last, [CHECKPOINTED], seq=at + 11),
        )
        for at, last in ((1, "cos"), (2, "gelu"))
    ]
    assert _stopped(tmp_path, forward, *nodes) == ["aten::cos", "aten::gelu"]


def test_calls_around_a_stopped_op_are_stopped_too_but_no_view(tmp_path: Path) -> None:
    last = call("linear", [CHECKPOINTED], call("addmm", [CHECKPOINTED], _hooks(), seq=12), seq=12)
    assert _stopped(tmp_path, _node(1, last)) == ["aten::linear", "aten::addmm"]
    ops = call("sin", [CHECKPOINTED], _hooks(), seq=2), call("t", [CHECKPOINTED], seq=3)
    assert not _stopped(tmp_path, _node(1, *ops))
