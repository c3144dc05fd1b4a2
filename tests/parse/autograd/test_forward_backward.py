"""Layer and line of work in a backward pass."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyprof.marker import Call, Tensor, encode_layer, encode_op, encode_trace
from pyprof.parse import parse_file
from tests.builders import Range, Work
from tests.parse.record_lines import around, parsed
from tests.readers.kineto_json import kernel, launch, op, trace_file

EVALUATE = "autograd::engine::evaluate_function: "
ACCUMULATE = (
    f"{EVALUATE}torch::autograd::AccumulateGrad",
    "torch::autograd::AccumulateGrad, op_id = 9",
)
MUL = encode_op(Call("torch", "mul", (Tensor((4,), "float16"),)))
CALLED, USED = encode_trace(["a.py:9"]), encode_trace(["a.py:1"])
FORWARD = around(encode_layer("net"), USED, MUL, "aten::mul, seq = 5", at=100)
NODE = around(f"{EVALUATE}MulBackward0, seq = 5", "MulBackward0, seq = 5", at=200, tid=12)


def backward(folder: Path, *ranges: Range, name: str = "gemm") -> dict[str, Any]:
    """Return the record of the kernel launched at 300 on the thread of the backward pass."""
    work = Work(name, call=(300, 310), tid=12)
    (line,) = parsed(folder, [*FORWARD, *ranges], work)
    return line


@pytest.mark.parametrize("seq", [5, 0])
def test_nodes_find_their_forward_op_and_accumulation_the_layer_of_the_node_before(
    tmp_path: Path, seq: int
) -> None:
    """The engine accumulates right after the node that made the gradient; the op is another."""
    engine, node = f"{EVALUATE}MulBackward0, seq = {seq}", f"MulBackward0, seq = {seq}"
    lines = parsed(
        tmp_path,
        [
            *around(encode_layer("net"), USED, MUL, f"aten::mul, seq = {seq}", at=100),
            *around(engine, node, at=300, tid=12),
            *around(*ACCUMULATE, at=400, tid=12),
            *around(engine, at=500, tid=12),
        ],
        *(Work(at=(9 * at, 9 * at + 1), call=(at, at + 10), tid=12) for at in (300, 400, 500)),
    )
    assert [(line["op"][-1], line.get("fwdOp", [])) for line in lines] == [
        ("MulBackward0", ["mul"]),
        ("AccumulateGrad", []),
        ("MulBackward0", ["mul"]),
    ]
    for line in lines:
        assert (line["dir"], line["fwdLayer"], line["fwdTrace"]) == ("bprop", ["net"], ["a.py:1"])


@pytest.mark.slow
@pytest.mark.parametrize("tid", [11, 13])
def test_a_node_of_another_thread_made_nothing_here(tmp_path: Path, tid: int) -> None:
    """Each thread of the engine has its own queue."""
    node = [replace(each, tid=tid) for each in NODE]
    line = backward(tmp_path, *node, *around(*ACCUMULATE, at=300, tid=12))
    assert not line.get("fwdLayer")


def test_a_collective_has_no_layer_of_a_parameter(tmp_path: Path) -> None:
    """It starts in the hook of one parameter, but reduces many."""
    ranges = [*NODE, *around(*ACCUMULATE, at=300, tid=12)]
    line = backward(tmp_path, *ranges, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)")
    assert (line["dir"], line.get("fwdLayer", [])) == ("comm", [])


@pytest.mark.parametrize(("own", "trace"), [((), []), ((encode_trace(["a.py:3"]),), ["a.py:3"])])
def test_the_line_of_the_forward_op_replaces_that_of_the_backward_call(
    tmp_path: Path, own: tuple[str, ...], trace: list[str]
) -> None:
    caller = (encode_layer("step"), CALLED, "MulBackward0, seq = 5")
    line = backward(tmp_path, *around(*caller, *own, MUL, at=300, tid=12))
    assert (line["trace"], line["layer"]) == (trace, [])
    assert (line["fwdTrace"], line["fwdLayer"]) == (["a.py:1"], ["net"])


@pytest.mark.parametrize(
    "reducer",
    ["torch.distributed.ddp.reducer::copy_bucket_to_grad", "torch::distributed::reducer::mul_out"],
)
def test_the_reducer_works_in_the_backward_pass(tmp_path: Path, reducer: str) -> None:
    """Without a known forward op, the line of the backward call is kept."""
    line = backward(
        tmp_path, *around(encode_layer("step"), CALLED, f"{reducer}, op_id = 1", at=300, tid=12)
    )
    assert (line["dir"], line["trace"], line["layer"]) == ("bprop", ["a.py:9"], ["step"])


CUSTOM = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"


@pytest.mark.slow
def test_a_node_without_a_known_forward_op_keeps_its_own_name(tmp_path: Path) -> None:
    """An op that made no node has the next one's number: it gives the layer, but not the op."""
    check = around(encode_layer("emb"), USED, "fbgemm::bounds_check_indices, seq = 6", at=150)
    for name in (CUSTOM, "MineBackward"):
        node = around(f"{EVALUATE}{name}, seq = 6", f"{name}, seq = 6", at=300, tid=12)
        line = backward(tmp_path, *check, *node)
        shown = name.removeprefix("torch::autograd::").removesuffix("Backward")
        assert (line["op"][0], line["dir"], line.get("fwdOp", [])) == (shown, "bprop", [])
        assert (line["fwdLayer"], line["fwdTrace"]) == (["emb"], ["a.py:1"])


@pytest.mark.parametrize(
    ("node", "forward"),
    [
        ("MineBackward", "Mine"),
        ("DiagonalBackward0_copy", "aten::diagonal_copy"),
        ("CopyBackwards", "aten::copy_"),
    ],
)
def test_a_node_finds_the_op_of_its_name(node: str, forward: str, tmp_path: Path) -> None:
    ranges = [
        *around(f"{forward}, seq = 6", at=150),
        *around(f"{EVALUATE}{node}, seq = 6", f"{node}, seq = 6", at=300, tid=12),
    ]
    assert backward(tmp_path, *ranges)["fwdOp"] == [forward.rpartition("::")[2]]


def test_a_compiled_graphs_backward_takes_no_op_of_its_forward(tmp_path: Path) -> None:
    """The whole graph is one autograd function, so no op or size inside corresponds."""
    sizes = "op_id = 1, sizes = [[9, 9]]"
    fused = encode_op(Call("cpp", "cpp_fused_gelu_0"))
    lines = parsed(
        tmp_path,
        [
            *around(
                encode_layer("net"),
                USED,
                f"CompiledFunction, seq = 7, {sizes}",
                "aten::mm, op_id = 2",
            ),
            *around(
                f"CompiledFunctionBackward, seq = 7, {sizes}", "aten::addmm, op_id = 2", at=300
            ),
            *around(f"CompiledFunctionBackward, seq = 7, {sizes}", fused, at=400),
        ],
        *(Work(at=(9 * at, 9 * at + 1), call=(at, at + 10)) for at in (100, 300, 400)),
    )
    ways = [(line["dir"], line["op"]) for line in lines]
    assert ways == [("fprop", ["mm"]), ("bprop", ["addmm"]), ("bprop", ["cpp_fused_gelu_0"])]
    assert all(line.get("fwdOp", []) == [] and line["fwdLayer"] == ["net"] for line in lines[1:])
    assert "sizes" not in lines[2]


def test_a_scripted_graphs_backward_takes_only_its_layer(tmp_path: Path) -> None:
    """Its layer is TorchScript's function, its direction that of the graph's node."""
    node = "torch::jit::(anonymous namespace)::DifferentiableGraphBackward, seq = 7"
    lines = parsed(
        tmp_path,
        [
            *around(
                "attend, op_id = 1, sizes = [[], [4, 8]]",
                "<forward op>, op_id = 2, sizes = [[4, 8]]",
                "aten::linear, seq = 6, op_id = 3",
            ),
            *around(
                f"{EVALUATE}{node}",
                node,
                "<backward op>, op_id = 5",
                "aten::matmul, op_id = 6",
                "aten::mm, op_id = 7",
                at=300,
            ),
        ],
        *(Work(at=(9 * at, 9 * at + 1), call=(at, at + 10)) for at in (100, 300)),
    )
    ways = [(line["dir"], line["op"], line["layer"]) for line in lines]
    assert ways == [("fprop", ["linear"], ["attend"]), ("bprop", ["matmul", "mm"], [])]


def test_a_compiled_backward_pass_has_a_direction_without_numbers(tmp_path: Path) -> None:
    """A range with sizes is one of PyTorch's own."""
    ranges = around("CompiledFunctionBackward, sizes = [[9, 9]]", MUL, at=300, tid=12)
    assert backward(tmp_path, *ranges)["dir"] == "bprop"


@pytest.mark.parametrize(("forward", "way"), [(1, "bprop"), (2, "fprop")])
def test_between_its_nodes_the_engine_adds_up_gradients(
    tmp_path: Path, forward: int, way: str
) -> None:
    """On its own thread; on the thread of the forward pass, such ops may be the script's."""
    events = [
        op("aten::mul", 0, 20, tid=forward, External_id=1, Sequence_number=5, Fwd_thread_id=0),
        op("MulBackward0", 100, 20, tid=2, External_id=2, Sequence_number=5, Fwd_thread_id=1),
        op("aten::add", 200, 20, tid=2, External_id=3),
        launch(7, 210, tid=2),
        kernel(7, 300),
    ]
    (row,) = parse_file(trace_file(tmp_path, events)).table().to_pylist()
    assert (row["dir"], row["op"]) == (way, ["add"])


FWD, BWD = 11, 99


def called(place: int, at: int, *, seq: int = 4, tid: int = FWD, pid: int = 1) -> list[Range]:
    """Write the forward call number `place` with its own layer, line and dtype."""
    call = Call("torch", "mm", (Tensor((place, 6), "float16"), Tensor((6, 2), "float16")))
    texts = (
        encode_layer(f"layer{place}"),
        encode_trace([f"net.py:{place}"]),
        encode_op(call),
        f"aten::mm, seq = {seq}, op_id = {place}",
    )
    return around(*texts, tid=tid, pid=pid, at=at)


def node(at: int, *, seq: int = 4, tid: int = BWD, pid: int = 1) -> list[Range]:
    texts = (
        "autograd::engine::evaluate_function: MmBackward0, op_id = 77",
        f"MmBackward0, seq = {seq}, op_id = 78",
    )
    return around(*texts, tid=tid, pid=pid, at=at)


def kernel_at(at: int, *, tid: int = BWD, pid: int = 1, device: int = 0) -> Work:
    """Launch a kernel inside the ranges at that time; it starts on the GPU 5,000 ns later."""
    span = (at + 5000, at + 5010)
    return Work(f"k{at}", at=span, call=(at, at + 10), tid=tid, pid=pid, device=device)


def places(folder: Path, ranges: list[Range], *work: Work) -> list[str | None]:
    lines = parsed(folder, ranges, *work)
    found = [line for line in lines if line["dir"] == "bprop"]
    return [layer[0] if (layer := line.get("fwdLayer")) else None for line in found]


def test_a_backward_kernel_inherits_from_its_forward_call(tmp_path: Path) -> None:
    ranges = called(3, 100) + node(1000)
    _, line = parsed(tmp_path, ranges, kernel_at(100, tid=FWD), kernel_at(1000))
    assert (line["dir"], line["fwdOp"], line["fwdMod"]) == ("bprop", ["mm"], ["torch"])
    assert (line["fwdLayer"], line["fwdTrace"]) == (["layer3"], ["net.py:3"])
    assert line["fwdMarker"][0].startswith("{'mod': 'torch', 'op': 'mm'")
    assert (line["sizes"], line["dtypes"]) == ([[3, 6], [6, 2]], ["float16", "float16"])
    assert line["marker"] == []  # its own texts are separate from its forward's


VIEW = around(encode_layer("view"), "aten::t, seq = 4, op_id = 2", tid=FWD, at=300)
PLACES: dict[str, tuple[list[Range], list[Work], list[str | None]]] = {
    # if numbers repeat, the latest forward call before the node counts, even without kernels
    "two iterations": (
        [*called(1, 100), *node(1000), *called(2, 2000), *node(3000)],
        [kernel_at(1000), kernel_at(3000)],
        ["layer1", "layer2"],
    ),
    # on a CPU the backward pass runs on its forward's thread: that counts, not the latest call
    "nodes on forward threads": (
        [*called(1, 100, tid=21), *called(2, 200, tid=22),
         *node(1000, tid=21), *node(2000, tid=22)],
        [kernel_at(1000, tid=21), kernel_at(2000, tid=22)],
        ["layer1", "layer2"],
    ),
    # DataParallel has a forward and a backward thread per device, with equal numbers
    "threads of two devices": (
        [*called(1, 100, tid=21), *called(2, 120, tid=22),
         *node(1000, tid=91), *node(1100, tid=92)],
        [kernel_at(100, tid=21, device=0), kernel_at(120, tid=22, device=1),
         kernel_at(1000, tid=91, device=0), kernel_at(1100, tid=92, device=1)],
        ["layer1", "layer2"],
    ),
    # nothing tells which thread's call is meant
    "threads that share a device": (
        [*called(1, 100, tid=21), *called(2, 120, tid=22),
         *node(1000, tid=91), *node(1100, tid=91)],
        [kernel_at(100, tid=21), kernel_at(120, tid=22),
         kernel_at(1000, tid=91), kernel_at(1100, tid=91)],
        [None, None],
    ),
    # as in DataParallel
    "a new thread in each iteration": (
        [*called(1, 100, tid=21), *node(1000), *called(2, 2000, tid=22), *node(3000)],
        [kernel_at(100, tid=21), kernel_at(1000), kernel_at(2000, tid=22), kernel_at(3000)],
        ["layer1", "layer2"],
    ),
    "equal numbers of processes": (
        [*called(1, 100, pid=1), *called(2, 110, pid=2),
         *node(1000, pid=1), *node(1100, pid=2), *node(1200, pid=3)],
        [kernel_at(1000, pid=1), kernel_at(1100, pid=2), kernel_at(1200, pid=3)],
        ["layer1", "layer2", None],
    ),
    "a number that no forward had": (
        [*called(1, 100, seq=4), *node(1000, seq=5)], [kernel_at(1000)], [None]
    ),
    # ops without a node have the next node's number: `t` before `mm` has that of mm
    "an op that has no node": (
        [*called(1, 100), *VIEW, *node(1000)], [kernel_at(1000)], ["layer1"]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "work", "expected"), PLACES.values(), ids=PLACES)
def test_each_node_finds_its_own_forward_call(
    ranges: list[Range], work: list[Work], expected: list[str | None], tmp_path: Path
) -> None:
    assert places(tmp_path, ranges, *work) == expected
