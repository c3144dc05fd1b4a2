"""Record columns from the ranges around a launch."""

from pathlib import Path

import pytest

from pyprof.marker import Call, Opaque, encode_layer, encode_module, encode_op, encode_trace
from tests.builders import Range, Work, nsys_db
from tests.commands import printed, run
from tests.parse.record_lines import LINEAR, MM, around, parsed

LEAK = "{'mod': 'torch', 'op': '__getattr__', 'args': [{'name': '', 'type': 'str', 'value': 'a'}]}"
TRACE = encode_trace(
    [
        "/app/train.py:10",
        "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1736",
        "/home/me/torch/nn/net.py:7",  # a checkout of the user's that is called torch
        "/venv/lib/python3.12/site-packages/torch/nn/functional.py:2",
    ]
)


def test_each_kind_of_text_goes_to_its_own_key(tmp_path: Path) -> None:
    module = encode_module("Linear", "in=6")
    texts = (encode_layer("net"), encode_layer("net.fc"), module, TRACE, LINEAR, MM, "mm, seq = 7")
    (line,) = parsed(tmp_path, around(*texts))
    assert line["layer"] == ["net", "net.fc"]
    assert line["reprMarkers"] == [module]
    assert line["trace"] == ["/app/train.py:10", "/home/me/torch/nn/net.py:7"]
    assert line["marker"] == [LINEAR, MM]
    assert (line["mod"], line["op"]) == (["torch.nn.functional", "torch"], ["linear", "mm"])
    assert (line["seqMarker"], line["seqId"]) == (["mm, seq = 7"], [7])
    assert (line["sizes"], line["dtypes"]) == ([[4, 6], [6, 2]], ["float16", "float16"])
    assert (line["dir"], line["tid"], line["launch"]) == ("fprop", 11, [100, 110])


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (encode_op(Call("torch", "ones", ((2, 3),), {"device": Opaque("device")})), []),
        (encode_op(Call("torch", "stack", (Opaque("MyTensors"),))), None),
        (encode_op(Call("torch", "ones", (2, 3)))[:-20], None),
        (encode_op(Call("cpp", "cpp_fused_add_0")), None),
    ],
)
def test_ops_without_tensors_have_no_sizes_and_others_unknown_ones(
    tmp_path: Path, text: str, sizes: list[list[int]] | None
) -> None:
    """An op that takes no tensor has no sizes; one that may have some, unknown ones."""
    (line,) = parsed(tmp_path, around("Whole, seq = 3, sizes = [[9, 9]]", text))
    assert line.get("sizes") == sizes


@pytest.mark.parametrize("text", ["ncclAllReduce", "train_step", LEAK])
def test_ranges_of_others_are_never_ops(text: str, tmp_path: Path) -> None:
    (line,) = parsed(tmp_path, around(text))
    assert (line["op"], line["mod"], line["marker"], line["seqMarker"]) == ([], [], [], [])
    assert line["dir"] == ""
    (inside,) = parsed(tmp_path, around(MM, text))
    assert inside["op"] == ["mm"]


_NN = "/usr/lib/python3/site-packages/torch/nn"


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((MM,), "fprop"),
        (("aten::mm, seq = 3, op_id = 4",), "fprop"),
        (("aten::mm",), "fprop"),
        (("MmBackward, seq = 3",), "bprop"),
        (("MmBackward0, seq = 3, op_id = 9",), "bprop"),
        (("SumBackward1, seq = 3, op_id = 9",), "bprop"),
        (("MyFnBackward, seq = 3, op_id = 9",), "bprop"),
        (("autograd::engine::evaluate_function: MulBackward0, op_id = 3", "aten::mul"), "bprop"),
        (("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",), "bprop"),
        (("Optimizer.step#SGD.step", "aten::add_"), "optim"),
        ((encode_op(Call("torch.optim", "step", ())), MM), "optim"),
        (("Optimizer.zero_grad#SGD.zero_grad",), "optim"),
        (("aten::_foreach_norm, op_id = 4",), "optim"),
        (("aten::_foreach_norm, op_id = 4", "aten::linalg_vector_norm, op_id = 5"), "optim"),
        (("aten::_amp_foreach_non_finite_check_and_unscale_, op_id = 4",), "optim"),
        (("aten::_foreach_copy_, op_id = 4",), "fprop"),
        (("MyFnBackward, seq = 3", "aten::_foreach_mul_, op_id = 4"), "bprop"),
        ((encode_op(Call("torch.nn.utils", "clip_grad_norm_", ())), MM), "optim"),
        ((encode_trace([f"{_NN}/utils/clip_grad.py:9"]), "aten::mul, op_id = 4"), "optim"),
        ((encode_trace([f"{_NN}/init.py:9"]), "aten::uniform_, op_id = 4"), ""),
        ((encode_trace([f"{_NN}/init.py:9"]), MM), ""),
        ((encode_trace(["my/nn/init.py:9"]), MM), "fprop"),
        ((encode_trace(["my/nn/init.py:9"]), "aten::uniform_, op_id = 4"), ""),
        ((encode_trace([f"{_NN}/utils/parametrizations.py:9"]), MM), "fprop"),
        (("Optimizer.step#SGD.step", "Optimizer.closure#", MM), "fprop"),
        (("train_step",), ""),
        ((), ""),
        (("SumBackward1, seq = 3, op_id = 9", "Optimizer.step#SGD.step"), "bprop"),
    ],
)
def test_the_direction_follows_from_the_ranges(
    texts: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    """Bprop inside any backward node, optim inside an optimizer, fprop inside an op, else empty.

    Clipping gradients is part of the update; initial values of parameters are of no pass.
    """
    (line,) = parsed(tmp_path, around(*texts))
    assert line["dir"] == expected


@pytest.mark.parametrize(
    ("around_loss", "rest"), [("## backward ##", "bprop"), ("Optimizer.step#LBFGS.step", "optim")]
)
def test_a_loss_is_forward_work_although_it_is_computed_in_a_range_of_another_pass(
    around_loss: str, rest: str, tmp_path: Path
) -> None:
    """Its backward pass shows it; an op without one is taken for a part of the range's pass."""
    ranges = [
        *around(around_loss, "aten::nll_loss, seq = 7, op_id = 3"),
        *around(around_loss, "aten::ones_like, seq = 8, op_id = 4", at=200),
        *around("NllLossBackward0, seq = 7, op_id = 5", at=300),
    ]
    launches = [Work(at=(at + 20, at + 30), call=(at, at + 10)) for at in (100, 200, 300)]
    ways = [line["dir"] for line in parsed(tmp_path, ranges, *launches)]
    assert ways == ["fprop", rest, "bprop"]


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (("aten::clamp, op_id = 5",), "optim"),
        (("aten::clamp, seq = 7, op_id = 5",), "fprop"),
        ((MM,), "fprop"),
        (("aten::clamp",), "fprop"),
    ],
)
def test_ops_without_gradients_within_an_update_are_part_of_it(
    tmp_path: Path, between: tuple[str, ...], expected: str
) -> None:
    """The norm of all gradients is computed before they are scaled; no stack is needed.

    Ops between two updates are not part of one: they may be an evaluation.
    """
    ranges = [
        *around("aten::_foreach_norm, op_id = 4"),
        *around(*between, at=200),
        *around("Optimizer.step#SGD.step", "aten::_foreach_mul_, op_id = 6", at=300),
        *around(*between, at=400),
        *around("Optimizer.zero_grad#SGD.zero_grad", "aten::_foreach_zero_, op_id = 7", at=500),
    ]
    times = (100, 200, 300, 400, 500)
    launches = [Work(at=(at + 20, at + 30), call=(at, at + 10)) for at in times]
    ways = [line["dir"] for line in parsed(tmp_path, ranges, *launches)]
    assert ways == ["optim", expected, "optim", "fprop", "optim"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", "ncclKernel_Broadcast"]
)
def test_nccl_kernels_are_communication_wherever_they_run(name: str, tmp_path: Path) -> None:
    """Even inside a backward node: the name decides."""
    (line,) = parsed(tmp_path, around("MmBackward0, seq = 1"), Work(name, call=(100, 110)))
    assert line["dir"] == "comm"


@pytest.mark.parametrize("kind", ["memcpy", "memset"])
def test_copies_and_sets_are_copies_wherever_they_run(kind: str, tmp_path: Path) -> None:
    (line,) = parsed(tmp_path, around(MM), Work(kind=kind, call=(100, 110), bytes=64))
    assert (line["dir"], line["kind"], line["bytes"], line["op"]) == ("copy", kind, 64, ["mm"])


def test_a_kernel_without_a_launch_is_kept_with_fewer_keys(tmp_path: Path) -> None:
    (line,) = parsed(tmp_path, around(MM), Work("edge"))
    assert not {"launch", "tid", "opId"} & set(line)
    assert (line["op"], line["layer"], line["trace"], line["dir"]) == ([], [], [], "")


def test_a_range_counts_on_its_own_thread_and_process_only(tmp_path: Path) -> None:
    ranges = around(MM, tid=12) + around(LINEAR, pid=2)
    (line,) = parsed(tmp_path, ranges)
    assert line["op"] == []
    work = Work("kernel", call=(100, 110), tid=11, pid=2)
    (line,) = parsed(tmp_path, ranges, work)
    assert line["op"] == ["linear"]


def test_a_leaked_op_does_not_claim_what_came_after_it(tmp_path: Path) -> None:
    """An op that was never closed, while one inside it was, is dropped; open layers stay."""
    ranges = [Range(encode_layer("net"), (1, None)), Range(LINEAR, (5, None)), Range(MM, (95, 115))]
    work = [Work("inside", call=(100, 110)), Work("after", at=(2000, 2100), call=(200, 210))]
    inside, after = parsed(tmp_path, ranges, *work)
    assert (inside["op"], inside["layer"]) == (["mm"], ["net"])
    assert (after["op"], after["layer"]) == ([], ["net"])


def test_an_op_cut_off_by_the_end_of_the_capture_counts(tmp_path: Path) -> None:
    """It is open, but nothing follows it, so its kernels are its own."""
    (line,) = parsed(tmp_path, [Range(MM, (90, None))])
    assert line["op"] == ["mm"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [2**63, -(2**63) - 1, 10**40])
def test_sizes_beyond_an_int64_are_unknown(size: int, tmp_path: Path) -> None:
    texts = (
        f"aten::mm, seq = 4, op_id = 7, sizes = [[{size}, 6], [6, 2]]",
        (
            f"{{'mod': 'torch', 'op': 'mm', 'args': [{{'name': '', 'type': 'tensor', "
            f"'shape': ({size}, 6), 'dtype': 'float16', 'stride': ({size}, 1)}}]}}"
        ),
    )
    for text in texts:
        path = nsys_db(tmp_path / "net.sqlite", [Work(call=(5, 6))], [Range(text, (1, 9))])
        assert '"op": ["mm"]' in printed("parse", path)
        assert run("prof", path).code == 0
