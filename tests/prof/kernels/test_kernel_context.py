"""Ranges around kernels: equal contexts are one."""

from pathlib import Path

from pyprof.answers.remedies import explained
from pyprof.marker import encode_layer, encode_trace
from pyprof.parse import parse_file
from pyprof.prof.calls.op_choice import UNLAUNCHED, choose
from pyprof.prof.kernels.kernel_context import KernelContext, distinct_contexts
from tests.builders import Range, Work, nsys_db
from tests.parse.record_lines import MM, around

BACKWARD = "MmBackward0, seq = 9, op_id = 5, sizes = [[4, 2]]"


def _contexts(folder: Path, *ranges: Range) -> list[KernelContext]:
    """Return the context of each kernel, launched at 100, 200 and so on."""
    work = [Work(at=(at + 900, at + 950), call=(at, at + 10)) for at in range(100, 500, 100)]
    contexts = distinct_contexts(parse_file(nsys_db(folder / "net.sqlite", work, ranges)))
    assert len({*contexts.values}) == len(contexts.values) == len({*contexts.index.tolist()})
    return [contexts.at(row) for row in range(len(work))]


def test_kernels_inside_equal_ranges_share_a_context(tmp_path: Path) -> None:
    """Sequence numbers aside. A layer alone is not an op; outside ranges there is no context."""
    first, again, layer, outside = _contexts(
        tmp_path,
        *around(MM, "aten::mm, seq = 7, op_id = 1, sizes = [[4, 6], [6, 2]]", at=100),
        *around(MM, "aten::mm, seq = 8, op_id = 2, sizes = [[4, 6], [6, 2]]", at=200),
        *around(encode_layer("net"), at=300),
    )
    assert first is again
    assert [said.call and said.call.op for said in first.statements] == ["mm", "mm"]
    assert first.order == (0, 1)
    assert (first.in_range, layer.in_range, outside.in_range) == (False, True, False)
    assert layer.statements == outside.statements == ()


def test_a_kernel_without_a_launch_has_another_reason_than_one_without_a_marker(
    tmp_path: Path,
) -> None:
    """Other ranges, or pyprof.init(), would not help: nothing tells what was around it."""
    path = nsys_db(tmp_path / "net.sqlite", [Work(), Work(at=(2000, 2100), call=(1500, 1600))])
    contexts = distinct_contexts(parse_file(path))
    reasons = [choose(contexts.at(row)).reason for row in range(2)]
    assert reasons == [UNLAUNCHED, "no marker"]
    assert explained(UNLAUNCHED)[1].startswith("begin the capture earlier, or record API calls")
    assert "ncu cannot, so give its CSV --with such a capture" in explained(UNLAUNCHED)[1]


def test_a_kernel_that_a_script_launches_itself_needs_a_marker_of_its_own(tmp_path: Path) -> None:
    launched, called = _contexts(
        tmp_path,
        *around(encode_layer("net"), encode_trace(["layers.py:55"]), at=100),
        *around(encode_trace(["layers.py:56"]), MM, at=200),
    )[:2]
    reason = choose(launched).reason
    assert reason == "launched in no op"
    assert "pyprof.wrap" in explained(reason)[1]
    assert not called.in_frames


def test_positions_of_markers_and_ranges_are_outermost_first(tmp_path: Path) -> None:
    inside = _contexts(tmp_path, *around("aten::linear, op_id = 3", MM, "aten::mm, op_id = 4"))[0]
    names = [inside.statements[place].call for place in inside.order]
    assert [call and call.op for call in names] == ["linear", "mm", "mm"]
    assert inside.order == (1, 0, 2)


def test_a_backward_kernel_knows_what_its_forward_call_said(tmp_path: Path) -> None:
    forward, backward, *_ = _contexts(
        tmp_path,
        *around(MM, "aten::mm, seq = 9, op_id = 1, sizes = [[4, 6], [6, 2]]", at=100),
        *around(BACKWARD, at=200),
    )
    assert (forward.backward, backward.backward) == (False, True)
    assert not forward.fwd_markers
    assert [said.call and said.call.op for said in backward.fwd_markers] == ["mm"]
