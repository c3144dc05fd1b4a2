"""Real nsys, which captures ranges without a GPU: its file holds what LeNet emits."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pyprof import marker
from tests import damage
from tests.known import known

NSYS = shutil.which("nsys")
LENET = Path(__file__).parents[2] / "examples" / "lenet.py"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NSYS is None, reason="nsys is not installed")]


class Range(NamedTuple):
    """A range of the capture, with the texts that it is in, outermost first."""

    text: str
    inside: tuple[str, ...]


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> list[Range]:
    """Capture one process of the example; return its ranges in order of their start."""
    net = tmp_path_factory.mktemp("nsys") / "net"
    command: list[str | Path] = [
        "nsys", "profile", "-t", "nvtx", "-s", "none", "--cpuctxsw=none", "-f", "true",
        "-o", net, "--export", "sqlite", sys.executable, LENET, "--steps", "1",
    ]  # fmt: skip
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "End of file" not in done.stderr:  # a busy nsys missed its agent
            break
    assert done.returncode == 0, done.stdout + done.stderr
    query = """SELECT start, end, coalesce(text, value), globalTid
               FROM NVTX_EVENTS LEFT JOIN StringIds ON textId = id
               WHERE eventType = 59 ORDER BY globalTid, start, end DESC"""
    return list(nested(damage.query(net.with_suffix(".sqlite"), query)))


def nested(rows: list[tuple[int, int, str, int]]) -> Iterator[Range]:
    open_ranges: list[tuple[int, int, str, int]] = []
    for row in rows:
        start, end, text, thread = row
        assert end is not None, f"never closed: {text}"
        while open_ranges and (open_ranges[-1][1] <= start or open_ranges[-1][3] != thread):
            open_ranges.pop()
        assert not open_ranges or end <= open_ranges[-1][1], f"cut: {text}"
        yield Range(text, tuple(other[2] for other in open_ranges))
        open_ranges.append(row)


def line_of(source: str) -> str:
    lines = LENET.read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if source in line]
    return f"{LENET}:{number}"


def layers(found: Range) -> list[str]:
    return [marker.layer_name(t) for t in found.inside if marker.classify(t) is marker.Kind.LAYER]


def lines(found: Range) -> tuple[str, ...]:
    traces = [t for t in found.inside if marker.classify(t) is marker.Kind.TRACE]
    return marker.decode_trace(traces[-1]) if traces else ()


def outermost_ops(ranges: list[Range]) -> list[tuple[Range, marker.Call]]:
    found = []
    for each in ranges:
        if marker.classify(each.text) is marker.Kind.OP:
            call = known(marker.decode_op(each.text))
            assert call.whole
            if not [t for t in each.inside if marker.classify(t) is marker.Kind.OP]:
                found.append((each, call))
    return found


def f32(*shape: int) -> marker.Tensor:
    return marker.Tensor(shape, "float32")


FORWARD = [
    # op, layers, arguments that matter, where it is called
    ("conv2d", ["LeNet", "conv1"], (f32(16, 1, 32, 32), f32(6, 1, 5, 5)), "F.relu(self.conv1"),
    ("relu", ["LeNet"], (f32(16, 6, 28, 28),), "F.relu(self.conv1"),
    ("max_pool2d", ["LeNet"], (f32(16, 6, 28, 28), (2, 2)), "F.relu(self.conv1"),
    ("conv2d", ["LeNet", "conv2"], (f32(16, 6, 14, 14), f32(16, 6, 5, 5)), "F.relu(self.conv2"),
    ("relu", ["LeNet"], (f32(16, 16, 10, 10),), "F.relu(self.conv2"),
    ("max_pool2d", ["LeNet"], (f32(16, 16, 10, 10), 2), "F.relu(self.conv2"),
    ("flatten", ["LeNet"], (f32(16, 16, 5, 5), 1), "x.flatten"),
    ("linear", ["LeNet", "fc1"], (f32(16, 400), f32(120, 400)), "self.fc1(x)"),
    ("relu", ["LeNet"], (f32(16, 120),), "self.fc1(x)"),
    ("linear", ["LeNet", "fc2"], (f32(16, 120), f32(84, 120)), "self.fc2(x)"),
    ("relu", ["LeNet"], (f32(16, 84),), "self.fc2(x)"),
    ("linear", ["LeNet", "fc3"], (f32(16, 84), f32(10, 84)), "self.fc3(x)"),
    ("cross_entropy", ["CrossEntropyLoss"],
     (f32(16, 10), marker.Tensor((16,), "int64")), "criterion(model"),
]  # fmt: skip


def test_the_forward_pass_is_there_op_by_op(ranges: list[Range]) -> None:
    ops = outermost_ops(ranges)
    starts = [i for i, (_, call) in enumerate(ops) if call.op == "conv2d" and call.args[0] == f32(16, 1, 32, 32)]  # fmt: skip # noqa: E501
    assert len(starts) == 2
    for start in starts:
        for (found, call), (op, path, args, source) in zip(ops[start:], FORWARD, strict=False):
            assert (call.op, layers(found)) == (op, path)
            assert call.args[: len(args)] == args
            assert lines(found)[-1] == line_of(source)


def test_the_optimizer_steps_are_there(ranges: list[Range]) -> None:
    steps = [pair for pair in outermost_ops(ranges) if pair[1].op == "step"]
    assert [(call.mod, call.op) for _, call in steps] == [("SGD", "step")] * 2
    assert all(lines(found)[-1] == line_of("optimizer.step()") for found, _ in steps)
    (updates,) = {
        sum(1 for each in ranges if steps[0][0].text in each.inside and "'add_'" in each.text)
    }
    assert updates >= 10


def test_the_backward_pass_has_markers_of_python_calls_only(ranges: list[Range]) -> None:
    """With the line of the call; nodes inside are not Python's, but emit_nvtx names them."""
    line = line_of("loss.backward()")
    assert {call.op for found, call in outermost_ops(ranges) if lines(found)[-1] == line} == {
        "ones_like"
    }


def test_traces_begin_with_the_script(ranges: list[Range]) -> None:
    last = line_of("    main()")
    assert {lines(found)[0] for found, _ in outermost_ops(ranges)} == {last}
