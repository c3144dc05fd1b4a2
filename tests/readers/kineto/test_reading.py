"""Traces of torch.profiler: three generations of names, the same tables."""

from pathlib import Path
from typing import Any

import pytest

from pyprof import marker, schema
from pyprof.errors import CaptureError
from pyprof.readers.kineto.file import stream
from tests.known import known
from tests.readers.kineto_json import event, kernel, launch, op, read, read_text, text, texts

NAMED = {"External_id": 3, "Sequence_number": 5, "Fwd_thread_id": 0, "Input_Dims": [[4, 8], [8, 2]],
         "Input_type": ["c10::Half", "c10::Half"]}  # fmt: skip


def modern() -> list[dict[str, Any]]:
    """Return a matrix product as torch 2 writes it."""
    more = {"Input_Strides": [[8, 1], [2, 1]], "Concrete_Inputs": ["", ""]}
    return [op("aten::mm", 10, 20, **NAMED, **more), launch(90, 12), kernel(90, 25)]


def of_2021() -> list[dict[str, Any]]:
    """Return the same as torch 1.9 to 1.12 write it."""
    return [
        event("Operator", "aten::mm", 10, 20, tid="1", **NAMED),
        launch(90, 12, tid="1") | {"cat": "Runtime"},
        kernel(90, 25) | {"cat": "Kernel", "tid": "stream 7"},
    ]


def of_18() -> list[dict[str, Any]]:
    """Return the same as torch 1.8 writes it: `Input dims`."""
    args = {"External id": "3", "Input dims": [[4, 8], [8, 2]]}
    return [{**event("Operator", "aten::mm", 10, 20), "args": args}, *of_2021()[1:]]


@pytest.mark.parametrize("events", [modern(), of_2021(), of_18()], ids=["2.x", "1.9", "1.8"])
def test_every_generation_gives_the_same_tables(
    tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    capture = read(tmp_path, events)
    (work,) = capture.activities.to_pylist()
    assert (work["start"], work["end"], work["pid"], work["corr"]) == (25_000, 30_000, 7, 90)
    assert [work[f"grid_{axis}"] for axis in "xyz"] == [4, 2, 1]
    assert (work["kind"], work["stream"], work["regs"], work["smem"]) == (0, 7, 32, 2048)
    (call,) = capture.calls.to_pylist()
    assert (call["start"], call["end"], call["corr"], call["thread"]) == (12_000, 13_000, 90, 0)
    assert capture.threads.to_pylist() == [{"pid": 7, "tid": 1}]
    (written,) = texts(capture)
    found = marker.decode_seq(written)
    assert (found.name, found.op_id) == ("aten::mm", 3)
    tensors = [value for value in known(found.call).args if isinstance(value, marker.Tensor)]
    assert [value.shape for value in tensors] == [(4, 8), (8, 2)]
    if events == modern():
        assert found.seq == 5
        assert [(value.dtype, value.stride) for value in tensors] == [
            ("float16", (8, 1)),
            ("float16", (2, 1)),
        ]


def test_times_are_absolute_and_exact(tmp_path: Path) -> None:
    """They count from the base that the trace states, to the ns, wherever it is stated."""
    capture = read(tmp_path, [kernel(1, 1414456661417.544, 0.001)], baseTimeNanoseconds=10**18)
    (work,) = capture.activities.to_pylist()
    assert (work["start"], work["end"]) == (1001414456661417544, 1001414456661417545)


def test_ops_end_even_before_the_base_of_the_trace(tmp_path: Path) -> None:
    """Times below 0 are not a sign of ranges that were open when the trace ended."""
    work = [op("aten::mm", -30, 20), op("aten::add", -5, -1), kernel(1, 5)]
    ranges = read(tmp_path, work, baseTimeNanoseconds=10**18).ranges
    assert ranges["end"].to_pylist() == [10**18 - 10_000, None]


@pytest.mark.parametrize("are_late", [[False, True], [True, False], [True, False, True]])
def test_clocks_that_are_years_apart(
    are_late: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces merged from several ranks: some have times of 16 digits."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", 1 << 17)
    starts_ns = [
        (1752825289650539500 if is_late else 500) + 1000 * number
        for is_late in are_late
        for number in range(600)  # more than a block
    ]
    kernels = [kernel(n, start / 1000, 0.5) for n, start in enumerate(starts_ns, 1)]
    work = read(tmp_path, kernels).activities
    assert work.column("end").null_count == 0
    assert sorted(work["start"].to_pylist()) == sorted(starts_ns)


def test_copies_and_fills_have_the_names_of_other_profilers(tmp_path: Path) -> None:
    names = {
        "Memcpy HtoD (Pageable -> Device)": "[CUDA memcpy HtoD]",
        "Memcpy DtoD (Device -> Device)": "[CUDA memcpy DtoD]",
        "CopyDeviceToHost": "[CUDA memcpy DtoH]",
        "Memcpy M2D (MEMORY -> DEVICE)": "[CUDA memcpy HtoD]",
        "Memcpy D2H (DEVICE -> HOST)": "[CUDA memcpy DtoH]",
        "Memcpy S2D (SHARED -> DEVICE)": "[CUDA memcpy]",
    }
    events = [event("gpu_memcpy", name, 1, 1, pid=0, device=0, bytes=64) for name in names]
    events.append(event("gpu_memset", "Memset (Device)", 1, 1, pid=0, device=0, bytes=8))
    work = read(tmp_path, events).activities
    assert work["name"].to_pylist() == [*names.values(), "[CUDA memset]"]
    assert work["kind"].to_pylist() == [schema.MEMCPY] * 6 + [schema.MEMSET]
    assert work["bytes"].to_pylist() == [64] * 6 + [8]


def test_kernel_without_launch(tmp_path: Path) -> None:
    capture = read(tmp_path, [*modern(), kernel(12, 1)])
    assert sorted(capture.activities["corr"].to_pylist()) == [12, 90]
    assert any("1 of 2 kernels and copies have no launch" in w for w in capture.warnings)


@pytest.mark.parametrize("calls", [[], [launch(12, 12)]], ids=["no calls", "no ids"])
def test_kernels_without_any_link_were_not_launched_before_the_trace(
    calls: list[dict[str, Any]], tmp_path: Path
) -> None:
    unlinked = {**kernel(12, 15), "args": {"device": 0, "stream": 7}}
    (said,) = read(tmp_path, [op("aten::mm", 10, 20), *calls, unlinked]).warnings
    assert "no kernel or copy has the correlation id of an API call in the trace" in said


def test_a_launch_that_a_truncated_trace_lost_was_not_before_it(tmp_path: Path) -> None:
    """A trace lists a kernel before its launch."""
    events = [*modern(), kernel(12, 1), kernel(13, 5)]
    said = " ".join(read_text(tmp_path, text(events)[:-9]).warnings)
    assert "1 of 2 kernels and copies have no launch in this part of the trace" in said
    assert "warm-up" not in said


def test_launches_of_amd(tmp_path: Path) -> None:
    """Calls have the shared memory; hipExtModuleLaunchKernel has its grid in threads."""
    names = ("hipExtLaunchKernel", "hipExtModuleLaunchKernel")
    calls = [launch(corr, 1, name=name) for corr, name in enumerate(names, 1)]
    for call in calls:
        call["args"]["shared memory"] = 512
    kernels = [kernel(corr, 5, name=str(corr)) for corr in (2, 1)]
    for each in kernels:
        each["args"] |= {"grid": [1280, 4, 1], "block": [256, 2, 1]}
        del each["args"]["shared memory"]
    rows = read(tmp_path, [*calls, *kernels, kernel(9, 5)]).activities.to_pylist()
    assert [row["smem"] for row in rows] == [512, 512, 2048]
    grids = [tuple(row[f"grid_{axis}"] for axis in "xyz") for row in rows]
    assert grids == [(5, 2, 1), (1280, 4, 1), (4, 2, 1)]


def test_process_of_a_kernel_alone(tmp_path: Path) -> None:
    """If the trace has no event of a process, its metadata still names the process."""
    labels = [
        {"ph": "M", "name": "process_labels", "ts": 1, "pid": pid, "args": {"labels": label}}
        for pid, label in ((0, "GPU 0"), (4711, "CPU"))
    ]
    assert read(tmp_path, [*labels, kernel(1, 5)]).activities["pid"].to_pylist() == [4711]
    assert read(tmp_path, [kernel(1, 5)]).activities["pid"].to_pylist() == [None]


def test_process_of_merged_traces(tmp_path: Path) -> None:
    """It is that of the launch, if not two ranks, which count their launches alike, have its id."""
    calls = [launch(1, 1), launch(1, 2) | {"pid": 8}, launch(2, 3), launch(3, 4) | {"pid": 8}]
    capture = read(tmp_path, [*calls, *(kernel(corr, 10 * corr) for corr in (1, 2, 3))])
    assert capture.activities["pid"].to_pylist() == [None, 7, 8]
    assert "1 of 3 kernels and copies share their correlation id" in capture.warnings[0]


@pytest.mark.parametrize("rank", [3, 2**62, -1, "first", None, 2.5])
def test_rank_and_devices(rank: object, tmp_path: Path) -> None:
    """From the header, unless invalid; a single device is the one in use, whatever its number."""
    work = kernel(1, 5)
    work["args"]["device"] = 2
    gpu = {"id": 0, "name": "MI300X", "numSms": 304, "computeMajor": 9, "computeMinor": 4}
    capture = read(tmp_path, [work], distributedInfo={"rank": rank}, deviceProperties=[gpu])
    assert capture.activities["rank"].to_pylist() == [3 if rank == 3 else None]
    (device,) = capture.devices.to_pylist()
    assert (device["device"], device["name"], device["sm_count"]) == (2, "MI300X", 304)
    assert device["memory_bytes"] is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("A", "A"), {0: "A", 1: "A", 5: "A", 7: "A"}), (("A", "B"), {0: "A", 1: "B"})],
)
def test_a_device_under_another_number(
    names: tuple[str, str], expected: dict[int, str], tmp_path: Path
) -> None:
    """It is taken to be like the described ones if they are all alike, else unknown."""
    events = [{**kernel(corr, 9), "args": {"device": corr, "correlation": corr}} for corr in (5, 7)]
    listed = [{"id": number, "name": name, "numSms": 8} for number, name in enumerate(names)]
    devices = read(tmp_path, events, deviceProperties=listed).devices.to_pylist()
    assert {device["device"]: device["name"] for device in devices} == expected


def test_triton_kernel(tmp_path: Path) -> None:
    types = {"Input_type": ["c10::BFloat16", "Scalar"], "Concrete_Inputs": ["", "32"]}
    sizes = {"Input_Dims": [[8, 4], []], "Input_Strides": [[4, 1], []]}
    source = {"kernel_backend": "triton", "kernel_file": "/cache/xy.py"}
    given = op("triton_poi_fused_add_0", 1, 9, **sizes, **types, **source)
    (written,) = texts(read(tmp_path, [given, kernel(1, 5)]))
    args = (marker.Tensor((8, 4), "bfloat16", (4, 1)), 32)
    expected = marker.Call("triton", given["name"], args, {"kernel_file": "/cache/xy.py"})
    assert marker.decode_op(written) == expected


def test_collective(tmp_path: Path) -> None:
    counts = {"In_msg_nelems": 100, "Out_msg_nelems": 100, "Group_size": 4, "dtype": "Float"}
    given = op("record_param_comms", 1, 9, Collective_name="allreduce", **counts)
    (written,) = texts(read(tmp_path, [given, kernel(1, 5)]))
    found = known(marker.decode_op(written))
    assert (found.mod, found.op) == ("c10d", "allreduce")
    assert found.args == (marker.Tensor((100,), "float32"),)
    assert found.kwargs == {"out_numel": 100, "group_size": 4}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{}", "no list of traceEvents"),
        ('{"schemaVersion": 1}', "no list of traceEvents"),
        ('{"traceEvents": []}', "no GPU work and no ops.*on_trace_ready"),
        ('{"traceEvents": [{"ph": "X", "cat": "other", "ts": 1, "name": "a"}]}', "no GPU work"),
        ('{"traceEvents": [1, null, [2], {"ph": "X"}]}', "no GPU work"),
        ('{"traceEvents": [{"ph": "B", "cat": "kernel", "ts": 1, "name": "a"}]}', "B and E"),
        ('{"traceEvents": [{"ph": "B", "cat": "cpu_op", "ts": 1, "name": "a"}]}', "B and E"),
    ],
)
def test_a_trace_without_content_is_refused(tmp_path: Path, written: str, said: str) -> None:

    with pytest.raises(CaptureError, match=said) as caught:
        read_text(tmp_path, written)
    assert "trace.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pairs_that_were_added_to_a_trace_are_left_out(tmp_path: Path) -> None:
    begin, end = ({**event("user_annotation", "mine", 1, 0), "ph": phase} for phase in "BE")
    assert read(tmp_path, [begin, end, launch(1, 5), kernel(1, 20)]).activities.num_rows == 1


def test_values_of_wrong_types_are_unknown(tmp_path: Path) -> None:
    work = kernel(1, 5)
    wrong = {"correlation": "x", "registers per thread": 2**40, "grid": [1], "stream": 2**70}
    work["args"] |= wrong
    (row,) = read(tmp_path, [work]).activities.to_pylist()
    assert [row[key] for key in ("corr", "regs", "grid_y", "stream")] == [None] * 4
    assert (row["name"], row["smem"], row["grid_x"]) == ("gemm", 2048, 1)


A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB"}


def test_ops_of_a_trace_that_may_be_cut_before_its_kernels_are_not_cpu_work(tmp_path: Path) -> None:
    """torch.profiler writes GPU work last, so most of a truncated trace has none."""
    ops = [op("aten::mm", 10 * n, 5, External_id=n) for n in range(1, 9)]
    cut = read_text(tmp_path, text(ops, deviceProperties=[A100])[:-9])
    assert (cut.activities.num_rows, cut.warnings) == (0, (schema.TRUNCATED,))
    unlisted = read_text(tmp_path, text(ops, deviceProperties=[])[:-9])
    assert unlisted.activities.num_rows
    assert "if their tensors were on a GPU" in unlisted.warnings[-1]
    with pytest.raises(CaptureError, match="truncated before any GPU work"):
        read_text(tmp_path, '{"schemaVersion": 1, "traceEvents": [')


def test_ops_on_a_machine_with_a_gpu_may_have_run_there(tmp_path: Path) -> None:
    """A trace recorded with ProfilerActivity.CPU alone does not show where its tensors were."""
    cpu = [op("aten::mm", 1, 5)]
    both = [*cpu, launch(1, 8, name="cudaDeviceSynchronize")]
    for events, listed, warned in ((cpu, [], False), (cpu, [A100], True), (both, [A100], False)):
        capture = read(tmp_path, events, deviceProperties=listed)
        assert ("ProfilerActivity.CUDA" in " ".join(capture.warnings)) is warned


def test_ops_of_apples_gpu_only_have_the_time_of_launching(tmp_path: Path) -> None:
    names = ("_mps_convolution", "_lstm_mps", "_scaled_dot_product_attention_math_for_mps", "mm")
    for name in names:
        (said,) = read(tmp_path, [op(f"aten::{name}", 1, 5)]).warnings
        assert ("Apple's GPU (MPS)" in said) is ("mps" in name)
