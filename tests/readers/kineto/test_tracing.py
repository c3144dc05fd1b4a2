"""Ops that gave shapes alone: under torch.compile's tracing and on tensors without data."""

from pathlib import Path

import pytest

from pyprof import parse, schema
from pyprof.errors import CaptureError
from tests.readers.kineto_calls import Called, call, events
from tests.readers.kineto_json import Event, event, read, text

X = [64, 64]
REAL_MM = call("mm", [X, X], call("resolve_conj", [X]))
EMPTY = call("empty_strided", [[], []])
DETACH = call("detach", [X])
EMPTY_ALONE = call("empty", [[]])
NEW_EMPTY = call("new_empty", [X], EMPTY_ALONE)
PERMUTED = call("empty_permuted", [[]], EMPTY_ALONE, call("as_strided", [X]))


def _mode(*inside: Called, kind: str = "PythonDispatchMode") -> Called:
    return Called(kind, [X], inside)


def _work(capture: schema.Capture) -> list[str]:
    names: list[str] = capture.activities["name"].to_pylist()
    return names


def _read(folder: Path, *calls: Called) -> schema.Capture:
    return read(folder, events(calls))


@pytest.mark.parametrize(
    "fake",
    [
        # what FakeTensorMode runs for a new combination of arguments, and for one that it knows
        call("matmul", [X, X], call("mm", [X, X], _mode(call("relu", [X]), DETACH, EMPTY))),
        call("matmul", [X, X], call("mm", [X, X], _mode(EMPTY, DETACH))),
        # the same on its tensors outside of it
        call("mm", [X, X], _mode(call("mm", [X, X], _mode(EMPTY, DETACH)), kind="PythonSubclass")),
        # the meta device
        call("linear", [X, X], call("addmm", [X, X], call("mm", [X, X], NEW_EMPTY))),
        call("randn", [[]], call("prims::normal", [[]], EMPTY)),
        call("uniform_", [X], call("prims::uniform", [X], EMPTY), call("copy_", [X, X])),
        call("convolution_backward", [X, X], NEW_EMPTY, NEW_EMPTY),
        call("embedding", [X, X], NEW_EMPTY),
        call("ones", [[]], EMPTY_ALONE),
        call("new_zeros", [X], call("full", [[]], EMPTY_ALONE)),
        call("lerp_", [X, X], call("lerp", [X, X], PERMUTED)),
        call("full_like", [X], call("empty_like", [X], PERMUTED), call("fill_", [X])),
        call(
            "contiguous",
            [X],
            call("clone", [X], call("empty_like", [X], PERMUTED), call("copy_", [X, X])),
        ),
    ],
    ids=[
        "fake",
        "fake again",
        "fake outside",
        "product",
        "random",
        "in place",
        "convolution",
        "lookup",
        "ones",
        "zeros",
        "by reference",
        "filled",
        "copied",
    ],
)
def test_ops_on_tensors_without_data_are_no_rows(tmp_path: Path, fake: Called) -> None:
    """Nor is what is around or inside of them; they are counted, and real ones stay."""
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
def test_real_work_under_a_mode_of_dispatch_stays(tmp_path: Path, real: Called) -> None:
    """Once: the op that the mode called again."""
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
    """An op that leaves the same in the trace of either device is a row: it may be real."""
    meta = call("addcmul_", [X, X, X], call("addcmul", [X, X, X], PERMUTED))
    capture = _read(tmp_path, meta, real, meta)
    assert (_work(capture), capture.traced_ops) == ([f"aten::{row}"], 2)


def test_an_op_whose_result_a_mode_had_kept_is_no_row(tmp_path: Path) -> None:
    """Selective checkpointing hands it over, and nothing runs."""
    assert _work(_read(tmp_path, call("addmm", [X, X], DETACH, _mode()), REAL_MM)) == ["aten::mm"]


def _compiled() -> list[Event]:
    """torch.compile of a product: traced once with real names and sizes, then run."""
    compiling = event("cpu_op", "bytecode_tracing (dynamo_timed)", 0, 1000)
    return [compiling, *events([call("mm", [X, X])]),
            *(each | {"ts": each["ts"] + 2000} for each in events([REAL_MM]))]  # fmt: skip


def test_what_torch_compile_does_before_a_model_runs_is_no_work(tmp_path: Path) -> None:
    """Its own ranges tell it apart from the run."""
    capture = read(tmp_path, _compiled())
    assert capture.activities["start"].to_pylist() == [2_000_000]
    (warning,) = (each for each in capture.warnings if "left out" in each)
    assert "1 CPU ops that gave shapes alone" in warning


def test_a_capture_of_tracing_alone_says_so(tmp_path: Path) -> None:
    """Rather than that no op was recorded."""
    path = tmp_path / "trace.json"
    path.write_text(text(_compiled()[:2]))
    with pytest.raises(CaptureError, match=r"only 1 CPU ops that gave shapes alone.*real tensors"):
        parse.parse_file(path)
