"""Layers of start/end ranges, which cross threads."""

from pathlib import Path

import pytest

from pyprof.marker import encode_layer
from pyprof.parse import assemble, parse_file
from tests.builders import LAYOUTS, Range, Work, nsys_db
from tests.parse.record_lines import LINEAR, MM, around, parsed
from tests.readers.kineto_json import event, kernel, launch, op, text


def test_start_end_ranges_are_not_ops_and_cross_threads(tmp_path: Path) -> None:
    """EventType 60 does not nest: an op text is context, and so is a library's call or a step."""
    free = [encode_layer("request"), "decoder", "ncclAllReduce", "iteration 3"]
    ranges = [Range(text, (n, 500), style=60, end_tid=12) for n, text in enumerate(free)]
    ranges.append(Range(LINEAR, (60, 105), style=60, end_tid=12))  # ends within the launch
    (line,) = parsed(tmp_path, [*ranges, *around("attention", MM)])
    assert (line["op"], line["layer"]) == (["mm"], ["request", "decoder", "attention"])


def test_of_too_many_open_start_end_ranges_the_last_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assemble, "_MAX_NAMES", 2)
    monkeypatch.setattr(assemble, "_MIN_NAMES", 2)
    ranges = [Range(f"layer:l{n}", (n, 100 + n), style=60, end_tid=11) for n in range(4)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", [Work(call=(50, 51))], ranges))
    assert found.arrow("layer").to_pylist() == [["l2", "l3"]]
    assert "1 row nested in more than 2 ranges" in found.warnings[-1]


ENGINE = "autograd::engine::evaluate_function: MmBackward0, op_id = 9"
NODE = "MmBackward0, seq = 7, op_id = 10"


@pytest.mark.parametrize(
    ("texts", "layer", "direction"),
    [
        (["model (forward)", "layer_3", "attention"], None, "fprop"),
        # a step is a layer only where nothing smaller is, without its number, or all would differ
        (["iteration 12", "attention"], ["attention"], ""),
        (["iteration 12"], ["iteration"], ""),
        (["ProfilerStep#3"], [], ""),
        (["Backward"], None, "bprop"),
        (["Backward, op_id = 3"], ["Backward"], "bprop"),
        (["lossBackward"], None, "bprop"),
    ],
    ids=str,
)
def test_ranges_of_the_user_are_layers_and_no_ops(
    texts: list[str], layer: list[str] | None, direction: str, tmp_path: Path
) -> None:
    """For kernels without an op, too; their direction follows from a name, if any."""
    (line,) = parsed(tmp_path, around(*texts))
    expected = texts if layer is None else layer
    assert (line["layer"], line["op"], line["dir"]) == (expected, [], direction)


def test_paths_in_numbered_steps_are_formatted_once(tmp_path: Path) -> None:
    """A capture of many steps has as many paths as one of few."""
    work = [Work(call=(1000 * n + 100, 1000 * n + 110)) for n in range(9)]
    ranges = [r for n in range(9) for r in around(f"step {n}", "attention", at=1000 * n + 100)]
    records = parse_file(nsys_db(tmp_path / "a.sqlite", work, ranges))
    layers = records.dictionary("layer")
    assert [layers.at(row) for row in range(9)] == [["attention"]] * 9
    assert len({*layers.index.tolist()}) == 1


@pytest.mark.parametrize("layout", ["2024.6", "registered strings", "_V2 tables"])
def test_ranges_in_the_domain_of_a_library_are_not_layers(tmp_path: Path, layout: str) -> None:
    ranges = [
        Range("CCCL", (0, 0), style=75, domain=1),
        Range("my app", (0, 0), style=75, domain=2),
        Range("CCCL", (0, 0), style=75, domain=2, pid=2),
        Range("solver", (80, 130), domain=2),
        Range("reduce", (90, 120), domain=1),
    ]
    path = nsys_db(tmp_path / "a.sqlite", (Work(call=(100, 110)),), ranges, LAYOUTS[layout])
    assert parse_file(path).arrow("layer").to_pylist() == [["solver"]]


@pytest.mark.slow
def test_a_thread_without_names_is_in_the_range_around_the_backward_pass(tmp_path: Path) -> None:
    """Without autograd's ranges, only time shows it: the caller waits while PyTorch's thread works.

    Not if two threads may be the caller, nor for a thread with ranges of its own.
    """
    engine = Work("gemm", call=(402, 408), tid=12)
    step = [*around("forward"), Range("training", (1, 990)), Range("backward", (400, 500))]
    (line,) = parsed(tmp_path, step, engine)
    assert (line["layer"], line["dir"]) == (["training", "backward"], "bprop")
    (line,) = parsed(tmp_path, [*step, Range("backward", (300, 600), tid=13)], engine)
    assert (line["layer"], line["dir"]) == ([], "")
    (line,) = parsed(tmp_path, [*step, Range("loader", (1, 2), tid=12)], engine)
    assert (line["layer"], line["dir"]) == ([], "")
    (line,) = parsed(tmp_path, [*step[:2], Range("backward", (400, 500), pid=2)], engine)
    assert (line["layer"], line["dir"]) == ([], "")


def test_autograds_thread_is_in_the_range_in_which_its_caller_waits(tmp_path: Path) -> None:
    """Whatever its name: autograd's own ranges show who its caller is."""
    engine = around(ENGINE, NODE, "aten::mm, op_id = 11", at=400, tid=12)
    step = [Range("training", (1, 990)), Range("loss and grads", (300, 500))]
    work = Work("gemm", call=(402, 408), tid=12)
    (line,) = parsed(tmp_path, [*step, *engine], work)
    assert (line["layer"], line["dir"]) == (["training", "loss and grads"], "bprop")
    (line,) = parsed(tmp_path, [*step, *engine, Range("loader", (390, 500), tid=13)], work)
    assert line["layer"] == []


def test_a_thread_that_runs_forward_ops_too_is_not_autograds(tmp_path: Path) -> None:
    """It may be a script's own, such as a pipeline stage."""
    both = [*around(ENGINE, NODE, at=400, tid=12), *around("aten::mm, op_id = 1", at=600, tid=12)]
    work = Work("gemm", call=(402, 408), tid=12)
    (line,) = parsed(tmp_path, [Range("stage 1", (1, 990)), *both], work)
    assert line["layer"] == []


def test_a_trace_names_the_thread_that_autograd_works_for(tmp_path: Path) -> None:
    """torch.profiler numbers the forward threads; other threads may have ranges, too."""
    path = tmp_path / "trace.json"
    forward = op("aten::mm", 10, 20, External_id=1, Sequence_number=7, Fwd_thread_id=0)
    node = {"Sequence_number": 7, "Fwd_thread_id": 1}
    path.write_text(text([
        forward,
        event("user_annotation", "loss", 100, 200),
        event("user_annotation", "loader", 100, 200, tid=3),
        op(ENGINE.split(",", maxsplit=1)[0], 110, 90, tid=2, External_id=2, **node),
        op("MmBackward0", 111, 80, tid=2, External_id=3, **node),
        launch(5, 150, tid=2), kernel(5, 300),
    ]))  # fmt: skip
    records = parse_file(path)
    assert records.arrow("layer").to_pylist() == [["loss"]]
    assert records.arrow("fwdOp").to_pylist() == [["mm"]]


@pytest.mark.slow
def test_a_checkpoints_recomputed_forward_is_backward(tmp_path: Path) -> None:
    again = "torch.utils.checkpoint.CheckpointFunctionBackward, seq = 9"
    (line,) = parsed(tmp_path, around("step", again, "forward", MM))
    assert (line["dir"], line["recomputed"]) == ("bprop", 1)
    (line,) = parsed(tmp_path, around("optimizer_step", MM))
    assert line["dir"] == "optim"


@pytest.mark.parametrize(
    "name",
    ["kineto-h100-transformer-user-ranges/trace.json.gz", "nsys2024.6-a100-user-ranges/net.sqlite"],
)
def test_all_work_of_captures_with_user_ranges_is_in_one(captures: Path, name: str) -> None:
    layers = parse_file(captures / name).dictionary("layer")
    assert all(layers.at(row) for row in range(len(layers)))
    names = {part for path in layers.values for part in path}
    assert {"Self-Attention", "Add & Norm 1"} <= names or "computing attention scores" in names
