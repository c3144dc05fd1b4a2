"""Backward kernels find the forward call that made their node."""

from pathlib import Path

import pytest

from pyprof.marker import Call, Tensor, encode_layer, encode_op, encode_trace
from tests.builders import Range, Work
from tests.parse.record_lines import around, parsed

FWD, BWD = 11, 99


def forward(place: int, at: int, *, seq: int = 4, tid: int = FWD, pid: int = 1) -> list[Range]:
    """Write the forward call number `place` with its own layer, line and dtype."""
    call = Call("torch", "mm", (Tensor((place, 6), "float16"), Tensor((6, 2), "float16")))
    texts = (
        encode_layer(f"layer{place}"),
        encode_trace([f"net.py:{place}"]),
        encode_op(call),
        f"aten::mm, seq = {seq}, op_id = {place}",
    )
    return around(*texts, tid=tid, pid=pid, at=at)


def backward(at: int, *, seq: int = 4, tid: int = BWD, pid: int = 1) -> list[Range]:
    texts = (
        "autograd::engine::evaluate_function: MmBackward0, op_id = 77",
        f"MmBackward0, seq = {seq}, op_id = 78",
    )
    return around(*texts, tid=tid, pid=pid, at=at)


def kernel(at: int, *, tid: int = BWD, pid: int = 1, device: int = 0) -> Work:
    """Launch a kernel inside the ranges at that time; it starts on the GPU 5,000 ns later."""
    span = (at + 5000, at + 5010)
    return Work(f"k{at}", at=span, call=(at, at + 10), tid=tid, pid=pid, device=device)


def places(folder: Path, ranges: list[Range], *work: Work) -> list[str | None]:
    lines = parsed(folder, ranges, *work)
    found = [line for line in lines if line["dir"] == "bprop"]
    return [layer[0] if (layer := line.get("fwdLayer")) else None for line in found]


def test_a_backward_kernel_inherits_from_its_forward_call(tmp_path: Path) -> None:
    ranges = forward(3, 100) + backward(1000)
    _, line = parsed(tmp_path, ranges, kernel(100, tid=FWD), kernel(1000))
    assert (line["dir"], line["fwdOp"], line["fwdMod"]) == ("bprop", ["mm"], ["torch"])
    assert (line["fwdLayer"], line["fwdTrace"]) == (["layer3"], ["net.py:3"])
    assert line["fwdMarker"][0].startswith("{'mod': 'torch', 'op': 'mm'")
    assert (line["sizes"], line["dtypes"]) == ([[3, 6], [6, 2]], ["float16", "float16"])
    assert line["marker"] == []  # its own texts are separate from its forward's


VIEW = around(encode_layer("view"), "aten::t, seq = 4, op_id = 2", tid=FWD, at=300)
PLACES: dict[str, tuple[list[Range], list[Work], list[str | None]]] = {
    # if numbers repeat, the latest forward call before the node counts, even without kernels
    "two iterations": (
        [*forward(1, 100), *backward(1000), *forward(2, 2000), *backward(3000)],
        [kernel(1000), kernel(3000)],
        ["layer1", "layer2"],
    ),
    # on a CPU the backward pass runs on its forward's thread: that counts, not the latest call
    "nodes on forward threads": (
        [*forward(1, 100, tid=21), *forward(2, 200, tid=22),
         *backward(1000, tid=21), *backward(2000, tid=22)],
        [kernel(1000, tid=21), kernel(2000, tid=22)],
        ["layer1", "layer2"],
    ),
    # DataParallel has a forward and a backward thread per device, with equal numbers
    "threads of two devices": (
        [*forward(1, 100, tid=21), *forward(2, 120, tid=22),
         *backward(1000, tid=91), *backward(1100, tid=92)],
        [kernel(100, tid=21, device=0), kernel(120, tid=22, device=1),
         kernel(1000, tid=91, device=0), kernel(1100, tid=92, device=1)],
        ["layer1", "layer2"],
    ),
    "equal numbers of processes": (
        [*forward(1, 100, pid=1), *forward(2, 110, pid=2),
         *backward(1000, pid=1), *backward(1100, pid=2), *backward(1200, pid=3)],
        [kernel(1000, pid=1), kernel(1100, pid=2), kernel(1200, pid=3)],
        ["layer1", "layer2", None],
    ),
    "a number that no forward had": (
        [*forward(1, 100, seq=4), *backward(1000, seq=5)], [kernel(1000)], [None]
    ),
    # ops without a node have the next node's number: `t` before `mm` has that of mm
    "an op that has no node": (
        [*forward(1, 100), *VIEW, *backward(1000)], [kernel(1000)], ["layer1"]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "work", "expected"), PLACES.values(), ids=PLACES)
def test_each_node_finds_its_own_forward_call(
    ranges: list[Range], work: list[Work], expected: list[str | None], tmp_path: Path
) -> None:
    assert places(tmp_path, ranges, *work) == expected
