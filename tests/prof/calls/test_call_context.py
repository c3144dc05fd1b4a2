"""Context of an op besides its arguments: the model, and the requests of its step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyprof
from pyprof import parse
from pyprof.marker import encode_seq
from pyprof.parse import record_file
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.readers.kineto_json import Event, event, kernel, launch, op, text, trace_file

if TYPE_CHECKING:
    import pandas as pd


MOE = "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1"
STEP = "execute_4_context_1(sq{0}sk{0}sqsq{1}sqsk{1})_generation_0(sq0sk0sqsq0sqsk0)"
CONFIG = {
    "hidden_size": 96, "intermediate_size": 64, "num_local_experts": 8, "num_experts_per_tok": 2
}  # fmt: skip
HEADS, WIDTH = 4, 16


def _attention(corr: int, ts: float) -> list[Event]:
    """Write attention of 4 tokens, and its kernel."""
    q = [4, HEADS, WIDTH]
    return [
        op("vllm::unified_attention_with_output", ts, 8, Input_Dims=[q, q, q, q, [], [], []],
           Input_type=["c10::BFloat16"] * 4 + [""] * 3, Concrete_Inputs=[""] * 7,
           External_id=corr),
        launch(corr, ts + 2),
        kernel(corr, ts + 1000, name="kernel_unified_attention_2d"),
    ]  # fmt: skip


def _experts(corr: int, ts: float) -> list[Event]:
    """Write a layer of experts of 4 tokens, 96 wide, and its two products."""
    given = ["c10::BFloat16", "c10::BFloat16", "", ""]
    return [
        op("vllm::moe_forward", ts, 8, Input_Dims=[[4, 96], [4, 8], [], []], Input_type=given,
           Concrete_Inputs=[""] * 4, External_id=corr),
        *(launch(corr + at, ts + 2 + 2 * at) for at in range(2)),
        kernel(corr, ts + 1000, 5, name=f"{MOE}_swiglu"),
        kernel(corr + 1, ts + 1010, 3, name=MOE),
    ]  # fmt: skip


def _step(tokens: int, ts: float, dur: float) -> Event:
    return event("user_annotation", STEP.format(tokens, tokens**2), ts, dur)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Write two steps, of 4 tokens and of 2, and attention between and after them."""
    events = [
        _step(4, 10, 100), *_attention(1, 20), *_experts(2, 40),
        *_attention(4, 120),
        _step(2, 200, 50), *_attention(5, 210), *_attention(6, 300),
    ]  # fmt: skip
    return trace_file(tmp_path, events)


def _config(folder: Path, **more: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG | more))
    return path


def _rows(*arguments: str | Path) -> list[dict[str, str]]:
    return run("prof", "-q", "--csv", "--raw", "-c", "kernel,flops,bytes,why", *arguments).rows


def test_each_call_takes_the_tokens_of_its_own_step(trace: Path) -> None:
    """Half of the squared token count, 4 FLOPs per score, element and head; else unknown."""
    rows = [row for row in _rows(trace) if "attention" in row["Kernel"]]
    each = 4 * HEADS * WIDTH // 2
    assert [row["FLOPs"] for row in rows] == [str(16 * each), "", str(4 * each), ""]
    assert rows[0]["Why"] == "requests of the step's range, all keys seen"
    assert rows[1]["Why"] == "lengths of the requests are in no range around the step"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["net.dict", "net.parquet"])
def test_records_keep_the_step(name: str, trace: Path, tmp_path: Path) -> None:
    target = tmp_path / name
    assert run("parse", "-q", trace, "-o", target).code == 0
    assert _rows(target) == _rows(trace)
    steps = record_file.load(str(target)).arrow("servingStep").to_pylist()
    assert steps == [STEP.format(4, 16)] * 3 + [None] + [STEP.format(2, 4), None]


def test_a_model_supplies_what_no_trace_holds(trace: Path, tmp_path: Path) -> None:
    """Both products, always in the ratio 2 to 1; weights of the type in the kernel's name."""
    moe = [row for row in _rows(trace) if "matmul" in row["Kernel"]]
    assert {row["FLOPs"] for row in moe} == {""}
    assert {row["Why"] for row in moe} == {
        "widths of the experts' weights not recorded: give --with config.json"
    }
    rows = _rows("--with", _config(tmp_path), trace)
    moe = [row for row in rows if "matmul" in row["Kernel"]]
    flops = 2 * 4 * 2 * 3 * 96 * 64
    assert [int(row["FLOPs"]) for row in moe] == [flops * 2 // 3, flops // 3]
    weights = 8 * 3 * 96 * 64 * 17 // 32
    assert sum(int(row["Bytes"]) for row in moe) == weights + 2 * (2 * 4 * 96 + 4 * 8)
    assert {row["Why"] for row in moe} == {"widths of config.json: hidden 96, inside an expert 64"}


def test_a_rank_with_half_of_the_heads_has_half_of_the_experts(trace: Path, tmp_path: Path) -> None:
    """Four of eight heads mean tensor parallelism of 2 in each layer; `why` says so."""
    heads = {"num_attention_heads": 2 * HEADS, "head_dim": WIDTH}
    rows = _rows("--with", _config(tmp_path, **heads), trace)
    moe = [row for row in rows if "matmul" in row["Kernel"]]
    assert sum(int(row["FLOPs"]) for row in moe) == 2 * 4 * 2 * 3 * 96 * 64 // 2
    assert moe[0]["Why"].endswith("1/2 of it on this rank, as for the heads")
    odd = _config(tmp_path, num_attention_heads=6, head_dim=WIDTH)
    same = [row for row in _rows("--with", odd, trace) if "matmul" in row["Kernel"]]
    assert sum(int(row["FLOPs"]) for row in same) == 2 * 4 * 2 * 3 * 96 * 64


def test_a_model_that_does_not_fit_is_warned_of(trace: Path, tmp_path: Path) -> None:
    """Once; costs stay unknown, with the same reasons as without a model."""
    config = _config(tmp_path, hidden_size=4096)
    done = run("prof", "--csv", "--raw", "-c", "flops,why", "--with", config, trace)
    words = "config.json contradicts the capture: hidden_size 4096, recorded activations of 96"
    assert done.code == 0
    assert done.stderr.count(words) == 2  # as a warning, and among what is unknown
    assert done.stdout.count(words) == 2


@pytest.mark.slow
@pytest.mark.parametrize("command", ["prof", "summary", "report", "roofline", "export"])
def test_every_report_takes_a_model(command: str, trace: Path, tmp_path: Path) -> None:
    _config(tmp_path)
    names = {"prof": "a.csv", "summary": "a.txt", "report": "a.html", "roofline": "a.svg"}
    target = tmp_path / names.get(command, "a.csv")
    peaks = ("--gpu", "flops=1P,bandwidth=4T")
    done = run(command, "-q", "--with", tmp_path, *peaks, "-o", target, trace)
    assert (done.code, done.stderr, target.exists()) == (0, "", True)


@pytest.mark.slow
def test_comparisons_and_lines_take_a_model_too(tmp_path: Path) -> None:
    """FLOPs can be compared only where they are known: otherwise exit code 1."""
    config, experts = _config(tmp_path), tmp_path / "experts.json"
    experts.write_text(text(_experts(2, 40)))
    compared = ("diff", "-q", "--fail-if", "flops>0%")
    assert run(*compared, experts, experts).code == 1
    assert run(*compared, "--with", config, experts, experts).code == 0
    for command in (("lines", experts), ("diff", experts, experts)):
        assert run(*command, "-q", "--with", config).code == 0
        done = run(*command, "--with", tmp_path / "none.json")
        assert (done.code, "no such file; check the path" in done.stderr) == (1, True)


def test_captures_without_serving_steps_have_no_step_column(tmp_path: Path) -> None:
    assert "servingStep" not in parse.parse_file(trace_file(tmp_path, _attention(1, 20))).columns


WINDOWED = {"num_hidden_layers": 2, "sliding_window": 3, "head_dim": WIDTH}
TYPES = ["sliding_attention", "full_attention"]


@pytest.mark.parametrize(("calls", "known"), [(2, [False, True]), (3, [False] * 3)])
def test_the_nth_attention_of_a_step_is_that_of_the_nth_layer(
    tmp_path: Path, calls: int, known: list[bool]
) -> None:
    """So config.json says which calls see all keys, unless a step has more or fewer calls."""
    step = STEP.replace("_1(", "_2(").format(4, 8)
    events = [event("user_annotation", step, 10, 200)]
    for at in range(calls):
        events += _attention(1 + at, 20 + 20 * at)
    path = trace_file(tmp_path, events)
    config = _config(tmp_path, layer_types=TYPES, **WINDOWED)
    rows = _rows(path, "--with", config)
    assert [row["FLOPs"] != "" for row in rows] == known
    config = _config(tmp_path, **WINDOWED)
    reasons = [row["Why"] for row in _rows(path, "--with", config)]
    assert all("window of 3 keys not stated" in reason for reason in reasons)


def test_a_row_above_the_peak_refutes_that_all_keys_are_seen(tmp_path: Path) -> None:
    """Both would take 1.8 ms at the peak; one of them took 1.2 ms: it has a window."""
    tokens, heads, width = 8192, 64, 64
    q = [tokens, heads, width]
    events = [event("user_annotation", STEP.format(tokens, tokens**2), 10, 300)]
    for corr, ts, dur in ((1, 20, 4000), (2, 60, 1200)):
        events += [
            op("vllm::unified_attention_with_output", ts, 8, Input_Dims=[q, q, q, q],
               Input_type=["c10::BFloat16"] * 4, External_id=corr),
            launch(corr, ts + 2),
            kernel(corr, 1000 + ts * 100, dur, name="kernel_unified_attention_2d"),
        ]  # fmt: skip
    devices = [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0}]
    slow, fast = _rows(trace_file(tmp_path, events, deviceProperties=devices))
    assert int(slow["FLOPs"]) == 2 * 2 * heads * tokens**2 // 2 * width
    assert (fast["FLOPs"], fast["Bytes"]) == ("", "")
    assert "above the device's peak" in fast["Why"]


X, W, OUT = [2, 4, 8, 8], [6, 4, 3, 3], [2, 6, 4, 4]
CONV = "sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16"


def _forward_flops(folder: Path, *nodes: tuple[int, list[int]]) -> object:
    """Load a convolution of unknown stride, and a node per sequence number and gradient's size."""
    forward = encode_seq("aten::cudnn_convolution", seq=5, op_id=1, sizes=[X, W, [], [], []])
    ranges, work = [Range(forward, (0, 100))], [Work(CONV, (1000, 1100), (10, 20))]
    for at, (seq, size) in enumerate(nodes, 1):
        text = encode_seq("ConvolutionBackward0", seq=seq, op_id=2, sizes=[size])
        ranges.append(Range(text, (200 * at, 200 * at + 100)))
        work.append(Work(CONV, (1000 + 200 * at, 1100 + 200 * at), (200 * at + 10, 200 * at + 20)))
    rows = pyprof.load(nsys_db(folder / "net.sqlite", work, ranges))
    assert rows.dir.tolist() == ["fprop", *["bprop"] * len(nodes)]
    return None if rows.flops.isna()[0] else int(rows.flops[0])


@pytest.mark.parametrize(
    ("nodes", "flops"),
    [
        ([(5, OUT)], 2 * (6 * 4 * 3 * 3) * 2 * 4 * 4),
        ([(5, OUT), (6, [2, 6, 8, 8])], 2 * (6 * 4 * 3 * 3) * 2 * 4 * 4),
        ([], None),
        ([(6, OUT)], None),  # another op's
        ([(5, OUT), (5, [2, 6, 8, 8])], None),  # two say different things
        ([(5, [2, 6, 16])], None),  # no image
        ([(5, [3, 6, 4, 4])], None),  # another batch
    ],
)
def test_a_convolution_of_unknown_stride(
    tmp_path: Path, nodes: list[tuple[int, list[int]]], flops: int | None
) -> None:
    """2 FLOPs per filter element and output position, if a backward node shows the positions."""
    assert _forward_flops(tmp_path, *nodes) == flops


SAID = {"Process Group Name": "1", "Group size": 4}


def _collective_rows(
    folder: Path, name: str, given: int, got: int, dtype: str = "BFloat16"
) -> pd.DataFrame:
    """Load two kernels of a collective that moves so many elements."""
    said = {**SAID, "Collective name": name, "In msg nelems": given, "Out msg nelems": got}
    events = [op("c10d::allreduce_", 10, 9, External_id=1)]
    for corr in (1, 2):
        found = kernel(corr, 100 * corr, name=f"ncclDevKernel_{name}_Sum_bf16_RING_LL(void)")
        found["args"] |= {**said, "dtype": dtype}
        events += [launch(corr, 10 + 2 * corr), found]
    rows: pd.DataFrame = pyprof.load(trace_file(folder, events))
    return rows


@pytest.mark.parametrize(
    ("name", "given", "got", "moved"),
    [
        ("allreduce", 100, 100, 400),
        ("_allgather_base", 100, 400, 1000),
        ("_reduce_scatter_base", 400, 100, 1000),
        ("broadcast", 100, 100, 200),
        ("all_to_allv", 100, 100, 400),
        ("all_to_allv", 0, 100, 200),  # a rank that sends nothing
    ],
)
def test_amounts_in_a_text_stand_in_for_shapes(
    name: str, given: int, got: int, moved: int, tmp_path: Path
) -> None:
    """Each kernel on its own: the amounts that it reads and writes, at 2 bytes per element."""
    rows = _collective_rows(tmp_path, name, given, got)
    assert rows.bytes.tolist() == [moved, moved]
    assert rows.flops.tolist() == [0, 0]
    assert all("bus_bytes" in text for text in rows.params)


@pytest.mark.parametrize(("name", "dtype"), [("wait", "BFloat16"), ("allreduce", "Odd")])
def test_texts_without_amounts_stay_unknown(name: str, dtype: str, tmp_path: Path) -> None:
    """A name alone is not a size, and an unknown type has no width."""
    assert _collective_rows(tmp_path, name, 100, 100, dtype).bytes.isna().all()


@pytest.mark.parametrize("written", ["5", "[]", "{", '"allreduce"', "[" * 9999])
def test_damaged_texts_leave_the_cost_unknown(written: str, tmp_path: Path) -> None:
    events = [launch(1, 10), kernel(1, 100, name="ncclDevKernel_AllReduce_Sum")]
    path = tmp_path / "net.dict"
    assert run("parse", trace_file(tmp_path, events), "-o", path).code == 0
    path.write_text(json.dumps(json.loads(path.read_text()) | {"collective": written}))
    assert pyprof.load(path)["bytes"].isna().tolist() == [True]
