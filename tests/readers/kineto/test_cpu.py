"""Traces without GPU work: the CPU ops that do the work are the rows."""

import itertools
from pathlib import Path

import pytest

from pyprof import marker, schema
from pyprof.ops import registry
from pyprof.readers.kineto import cpu
from pyprof.readers.kineto.cpu import BOOKKEEPING, MOVES, WORKERS
from tests.readers.kineto_json import event, op, read, texts


def test_leaves(tmp_path: Path) -> None:
    """The innermost ops are rows of kind cpu, each with a call of its own at the same time."""
    events = [
        op("aten::linear", 0, 100, External_id=1),
        op("aten::relu", 5, 5, External_id=2),
        op("aten::addmm", 15, 80, External_id=3),
    ]
    capture = read(tmp_path, events)
    work = capture.activities.to_pylist()
    assert [row["name"] for row in work] == ["aten::relu", "aten::addmm"]
    assert {row["kind"] for row in work} == {schema.CPU}
    assert {(row["device"], row["stream"], row["pid"]) for row in work} == {(0, 1, 7)}
    calls = capture.calls.to_pylist()
    for key in ("start", "end", "corr", "name"):
        assert [row[key] for row in work] == [call[key] for call in calls]
    assert any("no GPU work was captured" in warning for warning in capture.warnings)


@pytest.mark.parametrize("copying", [1, 80])
def test_an_op_that_copies_before_it_works(tmp_path: Path, copying: float) -> None:
    """An op in which nothing but copies and fills happens is the row, and they are not."""
    events = [
        op("aten::addmm", 0, 100, External_id=1),
        op("aten::expand", 5, 5, External_id=2),
        op("aten::copy_", 15, copying, External_id=3),
    ]
    assert read(tmp_path, events).activities["name"].to_pylist() == ["aten::addmm"]


def test_an_op_with_a_kernel_of_its_own(tmp_path: Path) -> None:
    """Some compute by themselves, though they call what computes; layers put such around such."""
    events = [
        op("aten::mse_loss", 0, 100, External_id=1),
        op("aten::mse_loss", 5, 90, External_id=2),
        op("aten::mean", 20, 50, External_id=3),
        op("aten::sum", 25, 30, External_id=4),
        op("aten::stack_of_mine", 200, 50, External_id=5),
        op("aten::sum", 210, 30, External_id=6),
    ]
    work = read(tmp_path, events).activities.to_pylist()
    assert [(row["name"], row["start"]) for row in work] == [
        ("aten::mse_loss", 5_000),
        ("aten::sum", 210_000),
    ]


def test_what_no_formula_counts_as_work_is_no_row() -> None:
    """The reader and the formulas agree on which ops of ATen do nothing."""
    aten = pytest.importorskip("torch").ops.aten
    idle = {name for model in registry.models() if not model.work for name in model.names}
    idle -= {name for model in registry.models() if model.work for name in model.names}
    named = {name for name in idle if hasattr(aten, name)}
    assert {name for name in named if not cpu._is_idle(f"aten::{name}")} == set()
    assert not BOOKKEEPING & (MOVES | WORKERS)


def test_no_duration_decides(tmp_path: Path) -> None:
    """Which op does the work depends on what it calls, not on how long one call took."""
    events = [
        op("aten::conv2d", 0, 1000, External_id=1),
        op("aten::mkldnn_convolution", 10, 980, External_id=2),
        op("aten::conv2d", 2000, 10, External_id=3),
        op("aten::mkldnn_convolution", 2008, 1, External_id=4),
    ]
    names = read(tmp_path, events).activities["name"].to_pylist()
    assert names == ["aten::mkldnn_convolution"] * 2


def test_autograd_only_holds_ops(tmp_path: Path) -> None:
    """A node of the backward pass is never the row where an op is inside."""
    events = [
        op("autograd::engine::evaluate_function: MmBackward0", 0, 100, External_id=1),
        op("MmBackward0", 5, 90, External_id=2, Sequence_number=4, Fwd_thread_id=1),
        op("aten::mm", 80, 10, External_id=3),
    ]
    assert read(tmp_path, events).activities["name"].to_pylist() == ["aten::mm"]


@pytest.mark.parametrize(
    "name",
    ["torch::distributed::reducer::mul_out", "torch.distributed.ddp.reducer::copy_bucket_to_grad"],
)
def test_the_reducer_only_holds_ops(tmp_path: Path, name: str) -> None:
    """However long it takes by itself."""
    events = [op(name, 0, 100, External_id=1), op("aten::mul", 50, 10, External_id=2)]
    assert read(tmp_path, events).activities["name"].to_pylist() == ["aten::mul"]


def test_views_are_no_work(tmp_path: Path) -> None:
    """Views and engine nodes are no rows, also as leaves; a copy inside of one is."""
    events = [
        op("TBackward0", 0, 10, External_id=1, Sequence_number=4, Fwd_thread_id=1),
        op("aten::t", 2, 5, External_id=2),
        op("torch::autograd::AccumulateGrad", 20, 5, External_id=3),
        op("aten::reshape", 30, 20, External_id=4),
        op("aten::clone", 32, 16, External_id=5),
        op("aten::empty_like", 33, 2, External_id=6),
        op("aten::copy_", 36, 11, External_id=7),
    ]
    assert read(tmp_path, events).activities["name"].to_pylist() == ["aten::copy_"]


@pytest.mark.parametrize("name", ["aten::dropout", "aten::feature_dropout_", "aten::type_as"])
def test_what_gives_its_input_back_is_no_work(tmp_path: Path, name: str) -> None:
    """Dropout without training, a type that is the same; in training the ops inside are rows."""
    events = [
        op(name, 0, 10, External_id=1),
        op(name, 20, 10, External_id=2),
        op("aten::mul", 22, 5, External_id=3),
    ]
    assert read(tmp_path, events).activities["name"].to_pylist() == ["aten::mul"]


def test_user_functions(tmp_path: Path) -> None:
    """A user's function is a row only where no op is inside."""
    events = [
        op("MyFunction", 0, 100, External_id=1, Sequence_number=4, Fwd_thread_id=0),
        op("aten::mul", 2, 5, External_id=2),
        op("CompiledFunction", 200, 100, External_id=3, Sequence_number=5, Fwd_thread_id=0),
    ]
    names = read(tmp_path, events).activities["name"].to_pylist()
    assert names == ["aten::mul", "CompiledFunction"]


def test_a_question_is_no_work(tmp_path: Path) -> None:
    """A convolution that asks whether NNPACK is there still does the work itself."""
    events = [
        op("aten::_convolution", 0, 100, External_id=1),
        op("aten::_nnpack_available", 5, 80, External_id=2),
    ]
    assert read(tmp_path, events).activities["name"].to_pylist() == ["aten::_convolution"]


def test_compiled_kernels(tmp_path: Path) -> None:
    """A kernel that Inductor made for the CPU is a row; what Dynamo says of itself is none."""
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
    """No time is counted twice: rows are leaves or cover what is inside."""
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
