"""Files of other profilers are refused by name, with a command that makes a readable one."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pyprof.readers.refusals import describe
from tests.builders import table, write_tables
from tests.commands import refused


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _message(number: int, content: bytes) -> bytes:
    """Write a field of a protocol buffer, up to 16 KiB."""
    length = len(content)
    return bytes([number << 3 | 2, length & 0x7F | 0x80, length >> 7]) + content


XPLANE = _message(1, b"\x08\x01\x12\x0d/device:GPU:0" + bytes(200)) * 2
PERFETTO = _message(1, b"\x40\x80\x80\x01\x50\x01" + bytes(200)) * 2
PROTON: list[dict[str, Any]] = [
    {"children": [], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0}},
    {"CUDA": {}},
]
JAX = [  # like a trace of torch.profiler, but it shows the same work on several tracks
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
    {"ph": "X", "name": "fusion.1", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0},
]
TENSORFLOW = [
    {**JAX[0], "args": {"name": "/job:localhost/replica:0/task:0/device:GPU:0 Compute"}},
    {**JAX[1], "cat": "Op", "args": {"name": "MatMul", "op": "MatMul"}},
]
PADDLE = [{**JAX[1], "cat": "Kernel", "name": "gemm[0.002 ms]", "args": {"correlation id": 5}}]
FILES = {
    # what it is: (its name, its content, words of the message)
    "rocprofv3's JSON": (
        "x_results.json",
        _json({"rocprofiler-sdk-tool": [{"metadata": {"pid": 1}}]}),
        ["rocprofv3's JSON", "rocprofv3 --output-format rocpd"],
    ),
    "rocprofv3's CSV": (
        "x_kernel_trace.csv",
        b'"Kind","Agent_Id","Queue_Id","Kernel_Name"\n',
        ["rocprofv3's CSV", "rocprofv3 --output-format rocpd"],
    ),
    "xplane": ("host.xplane.pb", XPLANE, ["XSpace", "XProf", "pyprof capture"]),
    "xplane under another name": ("profile", XPLANE, ["XSpace"]),
    "pftrace": ("x_results.pftrace", PERFETTO, ["Perfetto", "--output-format rocpd"]),
    "ROCm Systems' Perfetto output": (
        "perfetto-trace-1.proto",
        PERFETTO,
        ["Perfetto", "ROCPROFSYS_USE_ROCPD=ON"],
    ),
    "Proton": ("proton.hatchet", _json(PROTON), ["Proton", "proton-viewer"]),
    "JAX": (
        "x.trace.json",
        _json({"displayTimeUnit": "ns", "traceEvents": JAX}),
        ["JAX, TensorFlow or XLA", "XProf"],
    ),
    "TensorFlow 1": (
        "timeline.json",
        _json({"traceEvents": TENSORFLOW}),
        ["JAX, TensorFlow or XLA"],
    ),
    "Paddle": (
        "worker.pb.paddle_trace.json",
        _json({"schemaVersion": "1.0.1", "span_indx": "0", "traceEvents": PADDLE}),
        ["Paddle", "nsys profile"],
    ),
    "qdstrm": ("x.qdstrm", b"\x01\x02\xff\xfe" * 9, ["QdstrmImporter -i"]),
    "Nsight Compute's report": ("x.ncu-rep", b"NVR\0\x01", ["ncu --import FILE --csv --page raw"]),
    "a table in Parquet": ("x.parquet", b"PAR1" + bytes(99), ["Parquet", "nsys export"]),
    "a table in Arrow": ("x.arrow", b"ARROW1\0\0" + bytes(99), ["Arrow", "nsys export"]),
    "a stream of tables in Arrow": ("x.arrows", b"\xff" * 4 + bytes(99), ["Arrow", "nsys export"]),
    "Nsight Systems' JSON": ("x.json", b'{"Type":48,"TraceProcessEvent":{}}\n', ["nsys export"]),
    "nsys stats": ("x.csv", b"Time (%),Total Time (ns),Instances\n", ["nsys stats"]),
    "nvprof's text": ("x.txt", b"==7== NVPROF is profiling process 7\n", ["nvprof -o net.sql"]),
    "an execution trace": (
        "et.json",
        b'{\n  "schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [',
        ["execution trace", "export_chrome_trace"],
    ),
    "torch.profiler's table": (
        "x.txt",
        b"-----  -----\n  Name    Self CPU %\n",
        ["sums of torch.profiler", "export_chrome_trace"],
    ),
    "torch.profiler's stacks": (
        "x.txt",
        b"net.py(3): main;net.py(9): forward;aten::mm 1234\n",
        ["sums of torch.profiler"],
    ),
    "a compressed trace": ("x.json.zst", b"\x28\xb5\x2f\xfd" + bytes(9), ["unpack it"]),
    "a tar": ("traces.tar", b"net.json".ljust(257, b"\0") + b"ustar", ["unpack it"]),
    "a pointer of Git LFS": (
        "x.sqlite",
        b"version https://git-lfs.github.com/spec/v1\n",
        ["git lfs pull"],
    ),
    "a packed database": (
        "net.sqlite.gz",
        gzip.compress(b"SQLite format 3\0" + bytes(99)),
        ["gunzip FILE"],
    ),
}


@pytest.mark.parametrize(("name", "content", "words"), FILES.values(), ids=FILES)
def test_a_file_of_another_tool_is_named_with_a_command(
    name: str, content: bytes, words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    said = refused("parse", path)
    for word in words:
        assert word in said


DATABASES = {
    "nsys's, in part": (
        ["CUPTI_ACTIVITY_KIND_KERNEL", "META_DATA_EXPORT"],
        ["StringIds", "export"],
    ),
    "Ascend's": (["TASK", "STRING_IDS", "CANN_API"], ["Ascend", "torch_npu.profiler", "analyse("]),
    "Ascend's, ops only": (["PYTORCH_API"], ["Ascend", "trace_view.json"]),
    "rocmProfileData's": (["rocpd_api", "rocpd_op", "rocpd_string"], ["rocmProfileData"]),
}


@pytest.mark.parametrize(("tables", "words"), DATABASES.values(), ids=DATABASES)
def test_a_database_of_another_tool_is_named(
    tables: list[str], words: list[str], tmp_path: Path
) -> None:
    path = write_tables(tmp_path / "x.db", {name: table(("id",), (1,)) for name in tables})
    said = refused("summary", path)
    for word in words:
        assert word in said


@pytest.mark.parametrize("content", ["é".encode() * 9, b"\x0a\x0b report", b"[1, 2]", b"Kind,of\n"])
def test_texts_of_any_kind_are_text_files(content: bytes, tmp_path: Path) -> None:
    assert "a text file" in describe(tmp_path / "x", content)
