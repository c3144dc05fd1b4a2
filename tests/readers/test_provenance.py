"""torch.compile's records about its kernels next to a trace: lines and ops, in each form."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyprof.arrays import MISSING
from pyprof.parse import parse_file
from pyprof.prof.table import Table
from pyprof.records.records import Records
from tests.readers.kineto_json import Event, kernel, launch, op, trace_file

_POINTWISE, _NAMELESS = "triton_poi_fused_add_relu_0", "triton_poi_fused_0"
_STACKS = "inductor_provenance_tracking_kernel_stack_traces"


def _stack(*lines: int, file: str = "/net/block.py") -> str:
    return "".join(f'  File "{file}", line {line}, in block\n    y = x + 1\n' for line in lines)


def _trace(folder: Path, *names: str) -> Path:
    """Write a trace of generated kernels, launched one after the other."""
    tensors = {"Input Dims": [[64, 64], [64, 64], []], "Input type": ["float", "float", "Scalar"]}
    numbers = {"Concrete Inputs": ["", "", "4096"], "kernel_backend": "triton", "num_warps": 4}
    events: list[Event] = []
    for n, name in enumerate(names):
        at = 100.0 * n
        events += [
            op(name, at, 50, **tensors, **numbers),
            launch(n + 1, at + 10),
            kernel(n + 1, at + 20, name=name),
        ]
    return trace_file(folder, events)


def _write(folder: Path, form: str, stacks: dict[str, list[str]]) -> None:
    if form == "log":
        record = f'V1122 {{"artifact": {{"name": "{_STACKS}", "encoding": "json"}}}}\n'
        payload = f"\t{json.dumps(stacks)}\n"
        (folder / "dedicated_log_torch_trace_x.log").write_text(f"a line\n{record}{payload}more\n")
    elif form == "information":
        content = {name: {"stack_traces": texts} for name, texts in stacks.items()}
        (folder / "kernel_information.json").write_text(json.dumps(content))
    else:
        (folder / f"{_STACKS}_12.json").write_text(json.dumps(stacks))


def _traces(records: Records) -> list[tuple[str, ...]]:
    return [tuple(line["trace"]) for line in records.table().to_pylist()]


@pytest.mark.parametrize("form", ["file", "log", "information"])
def test_the_line_is_that_of_the_op(form: str, tmp_path: Path) -> None:
    """Of several ops, the last: it makes what the kernel writes."""
    path = _trace(tmp_path, _POINTWISE)
    _write(tmp_path, form, {f"{_POINTWISE}:1": [_stack(3), _stack(9, 5)]})
    assert _traces(parse_file(path)) == [("/net/block.py:9", "/net/block.py:5")]


def test_without_files_lines_are_unknown(tmp_path: Path) -> None:
    path = _trace(tmp_path, _POINTWISE)
    assert _traces(parse_file(path)) == [()]
    _write(tmp_path, "file", {"triton_poi_fused_mul_9:1": [_stack(3)]})
    assert _traces(parse_file(path)) == [()]


def test_without_generated_kernels_no_file_is_read(tmp_path: Path) -> None:
    """Logs can be large, or unreadable."""
    path = _trace(tmp_path, "aten::relu")
    (tmp_path / f"{_STACKS}.json").write_text("{")
    assert parse_file(path).warnings == ()


def test_uses_that_disagree_keep_what_they_share(tmp_path: Path) -> None:
    """Inductor uses one kernel for equal code of several lines."""
    path = _trace(tmp_path, _POINTWISE)
    both = {f"{_POINTWISE}:1": [_stack(3, 7)], f"{_POINTWISE}:4": [_stack(3, 8)]}
    _write(tmp_path, "file", both)
    assert _traces(parse_file(path)) == [("/net/block.py:3",)]
    _write(tmp_path, "log", {f"{_POINTWISE}:1": ["add"]})
    assert _traces(parse_file(path)) == [("/net/block.py:3",)], "this one states none"
    _write(tmp_path, "log", {f"{_POINTWISE}:1": [_stack(40)]})
    assert _traces(parse_file(path)) == [()]


def test_a_kernel_named_by_number_has_the_ops_of_its_nodes(tmp_path: Path) -> None:
    path = _trace(tmp_path, _NAMELESS)
    assert Table(parse_file(path)).costs.flops.tolist() == [MISSING]
    nodes = {"cppCodeToPost": {f"{_NAMELESS}:2": ["add", "relu", "add_1"]}, "version": 2.0}
    (tmp_path / "inductor_provenance_tracking_node_mappings_3.json").write_text(json.dumps(nodes))
    costs = Table(parse_file(path)).costs
    assert costs.flops.tolist() == [3 * 64 * 64]
    assert costs.bytes.tolist() == [2 * 64 * 64 * 4]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "7", '{"a": 7}', '{"a": [7, null]}', '{"a": {"stack_traces": 7}}',
                '{"triton_poi_fused_add_relu_0:1": ["no frame"]}', "[" * 100_000],
)  # fmt: skip
def test_damaged_files_change_nothing(content: str, tmp_path: Path) -> None:
    path = _trace(tmp_path, _POINTWISE)
    name = f"{_STACKS}.json"
    (tmp_path / name).write_text(content)
    records = parse_file(path)
    assert _traces(records) == [()]
    broken = content in {"", "{", "[" * 100_000}
    assert [name in warning for warning in records.warnings] == [True] * broken


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[" * 100_000, "damaged JSON"),
        ('{"a": %s' % ("1" * 5000), "damaged JSON"),
        (f'{{"{_POINTWISE}:1": ["  File \\"a\\ud800.py\\", line 3, in f"]}}', "damaged JSON"),
        (None, "it has more than 64 MiB"),
    ],
)  # fmt: skip
def test_the_reason_for_ignoring_a_file_is_short(
    content: str | None, why: str, tmp_path: Path
) -> None:
    path = _trace(tmp_path, _POINTWISE)
    beside = tmp_path / f"{_STACKS}.json"
    beside.write_text(content or "")
    if content is None:
        with beside.open("r+b") as file:
            file.truncate((64 << 20) + 1)
    records = parse_file(path)
    assert records.warnings == (f"{beside.name} is not used: {why}",)
    assert _traces(records) == [()]


def test_of_a_long_stack_the_innermost_frames_stay(tmp_path: Path) -> None:
    path = _trace(tmp_path, _POINTWISE)
    _write(tmp_path, "file", {f"{_POINTWISE}:1": [_stack(*range(1, 2000))]})
    (trace,) = _traces(parse_file(path))
    assert (len(trace), trace[-1]) == (512, "/net/block.py:1999")


@pytest.mark.long
def test_torchs_own_log_has_the_lines_of_a_compiled_function(tmp_path: Path) -> None:
    """TORCH_TRACE names its folder."""
    pytest.importorskip("torch")
    script = tmp_path / "net.py"
    script.write_text(
        "import torch\n"
        "from torch.profiler import profile\n"
        "def block(x):\n"
        "    y = torch.relu(x) + 1\n"
        "    return torch.softmax(y @ y, 0)\n"
        "net = torch.compile(block)\n"
        "x = torch.randn(64, 64)\n"
        "net(x)\n"
        "with profile(record_shapes=True) as profiler:\n"
        "    net(x)\n"
        f"profiler.export_chrome_trace({str(tmp_path / 'trace.json')!r})\n"
    )
    said = {
        "INDUCTOR_PROVENANCE": "1",
        "TORCH_TRACE": str(tmp_path),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",
    }
    subprocess.run([sys.executable, script], check=True, env={**os.environ, **said})
    rows = parse_file(tmp_path / "trace.json").table().to_pylist()
    lines = {row["op"][-1]: row["trace"][-1:] for row in rows if row["op"]}
    of_kernels = {name: trace for name, trace in lines.items() if "_fused_" in name}
    assert [f"{script}:4"] in of_kernels.values()
    assert [f"{script}:5"] in of_kernels.values()
