"""What a report knows of an op besides its arguments: the model, and the requests of its step."""

import csv
import io
import json
from pathlib import Path

import pytest

from pyprof import parse
from pyprof.parse import record_file
from tests.commands import run
from tests.readers.kineto_json import Event, event, kernel, launch, op, text

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
    """Write two steps, of 4 tokens and of 2, and attention between and behind them."""
    events = [
        _step(4, 10, 100), *_attention(1, 20), *_experts(2, 40),
        *_attention(4, 120),
        _step(2, 200, 50), *_attention(5, 210), *_attention(6, 300),
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(text(events))
    return path


def _config(folder: Path, **more: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(CONFIG | more))
    return path


def _rows(*arguments: str | Path) -> list[dict[str, str]]:
    done = run("prof", "-q", "--csv", "--raw", "-c", "kernel,flops,bytes,why", *arguments)
    assert (done.code, done.stderr) == (0, "")
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_each_call_is_of_its_own_step(trace: Path) -> None:
    """Half of the squares of its tokens, 4 operations a score, element and head; none outside."""
    rows = [row for row in _rows(trace) if "attention" in row["Kernel"]]
    each = 4 * HEADS * WIDTH // 2
    assert [row["FLOPs"] for row in rows] == [str(16 * each), "", str(4 * each), ""]
    assert rows[0]["Why"] == "requests of the step's range, all keys seen"
    assert rows[1]["Why"] == "lengths of the requests are in no range around the step"


@pytest.mark.parametrize("name", ["net.dict", "net.parquet"])
def test_records_keep_the_step(name: str, trace: Path, tmp_path: Path) -> None:
    """What was parsed costs the same, and rows outside any step have none."""
    target = tmp_path / name
    assert run("parse", "-q", trace, "-o", target).code == 0
    assert _rows(target) == _rows(trace)
    steps = record_file.load(str(target)).arrow("servingStep").to_pylist()
    assert steps == [STEP.format(4, 16)] * 3 + [None] + [STEP.format(2, 4), None]


def test_a_model_supplies_what_no_trace_holds(trace: Path, tmp_path: Path) -> None:
    """FLOPs of both products, 2 to 1 at any time; weights stored as the kernels' names say."""
    moe = [row for row in _rows(trace) if "matmul" in row["Kernel"]]
    assert {row["FLOPs"] for row in moe} == {""}
    assert {row["Why"] for row in moe} == {
        "widths of the experts' weights not recorded: give --model-config"
    }
    rows = _rows("--model-config", _config(tmp_path), trace)
    moe = [row for row in rows if "matmul" in row["Kernel"]]
    flops = 2 * 4 * 2 * 3 * 96 * 64
    assert [int(row["FLOPs"]) for row in moe] == [flops * 2 // 3, flops // 3]
    weights = 8 * 3 * 96 * 64 * 17 // 32
    assert sum(int(row["Bytes"]) for row in moe) == weights + 2 * (2 * 4 * 96 + 4 * 8)
    assert {row["Why"] for row in moe} == {
        "widths of --model-config: hidden 96, inside an expert 64"
    }


def test_a_rank_with_half_of_the_heads_has_half_of_the_experts(trace: Path, tmp_path: Path) -> None:
    """Four of eight heads: each layer is divided in two; `why` says so."""
    heads = {"num_attention_heads": 2 * HEADS, "head_dim": WIDTH}
    rows = _rows("--model-config", _config(tmp_path, **heads), trace)
    moe = [row for row in rows if "matmul" in row["Kernel"]]
    assert sum(int(row["FLOPs"]) for row in moe) == 2 * 4 * 2 * 3 * 96 * 64 // 2
    assert moe[0]["Why"].endswith("1/2 of it on this rank, as of the heads")
    odd = _config(tmp_path, num_attention_heads=6, head_dim=WIDTH)
    same = [row for row in _rows("--model-config", odd, trace) if "matmul" in row["Kernel"]]
    assert sum(int(row["FLOPs"]) for row in same) == 2 * 4 * 2 * 3 * 96 * 64


def test_another_model_is_warned_of(trace: Path, tmp_path: Path) -> None:
    """Once, and its cost stays unknown, with the same words."""
    config = _config(tmp_path, hidden_size=4096)
    done = run("prof", "--csv", "--raw", "-c", "flops,why", "--model-config", config, trace)
    words = "--model-config contradicts the capture: hidden_size 4096, recorded activations of 96"
    assert (done.code, done.stderr.count(words)) == (
        0,
        2,
    )  # as a warning, and among what is unknown
    assert done.stdout.count(words) == 2


@pytest.mark.slow
@pytest.mark.parametrize("command", ["prof", "summary", "report", "roofline", "export"])
def test_every_report_takes_a_model(command: str, trace: Path, tmp_path: Path) -> None:
    """One place reads the option; a folder stands for its config.json."""
    _config(tmp_path)
    names = {"prof": "a.csv", "summary": "a.txt", "report": "a.html", "roofline": "a.svg"}
    target = tmp_path / names.get(command, "a.csv")
    peaks = ("--peak-flops", "1P", "--peak-bandwidth", "4T")
    done = run(command, "-q", "--model-config", tmp_path, *peaks, "-o", target, trace)
    assert (done.code, done.stderr, target.exists()) == (0, "", True)


def test_comparisons_and_lines_take_a_model_too(tmp_path: Path) -> None:
    """FLOPs can be compared where they are known: exit code 1 says that they are not."""
    config, experts = _config(tmp_path), tmp_path / "experts.json"
    experts.write_text(text(_experts(2, 40)))
    compared = ("diff", "-q", "--fail-if", "flops>0%")
    assert run(*compared, experts, experts).code == 1
    assert run(*compared, "--model-config", config, experts, experts).code == 0
    for command in (("lines", experts), ("diff", experts, experts)):
        assert run(*command, "-q", "--model-config", config).code == 0
        done = run(*command, "--model-config", tmp_path / "none.json")
        assert (done.code, "give a model's config.json" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (None, "No such file or directory; give a model's config.json"),
        ("{", "is not a model configuration: it is not JSON"),
        ("[1]", "is not a model configuration: it is not a JSON object"),
        ("\xff\x00", "is not a model configuration: it is not JSON"),
        (
            '{"hidden_size": "wide"}',
            "is not a model configuration: hidden_size is not a size: 'wide'",
        ),
        ("[" * 100_000, "is not a model configuration: it is nested too deeply"),
        ("{}", "is not a model configuration: it has no size of a model, such as hidden_size"),
    ],
)
def test_a_bad_configuration_ends_in_one_line(
    written: str | None, why: str, trace: Path, tmp_path: Path
) -> None:
    """Exit code 1, and nothing is written."""
    config, target = tmp_path / "model.json", tmp_path / "net.csv"
    if written is not None:
        config.write_text(written, "latin-1")
    done = run("prof", "--model-config", config, "-o", target, trace)
    assert (done.code, done.stdout, target.exists()) == (1, "", False)
    assert done.stderr.startswith(f"pyprof: {config}")
    assert (why in done.stderr, done.stderr.count("\n")) == (True, 1)


def test_captures_without_such_ranges_have_no_such_column(tmp_path: Path) -> None:
    """Nothing is stored for those who serve nothing."""
    path = tmp_path / "trace.json"
    path.write_text(text([*_attention(1, 20)]))
    assert "servingStep" not in parse.parse_file(path).columns


WINDOWED = {"num_hidden_layers": 2, "sliding_window": 3, "head_dim": WIDTH}
TYPES = ["sliding_attention", "full_attention"]


@pytest.mark.parametrize(("calls", "known"), [(2, [False, True]), (3, [False] * 3)])
def test_the_nth_attention_of_a_step_is_that_of_the_nth_layer(
    tmp_path: Path, calls: int, known: list[bool]
) -> None:
    """So the types of layers say which sees all keys; a step of other calls leaves it open."""
    step = STEP.replace("_1(", "_2(").format(4, 8)
    events = [event("user_annotation", step, 10, 200)]
    for at in range(calls):
        events += _attention(1 + at, 20 + 20 * at)
    path = tmp_path / "trace.json"
    path.write_text(text(events))
    config = _config(tmp_path, layer_types=TYPES, **WINDOWED)
    rows = _rows(path, "--model-config", config)
    assert [row["FLOPs"] != "" for row in rows] == known
    config = _config(tmp_path, **WINDOWED)
    reasons = [row["Why"] for row in _rows(path, "--model-config", config)]
    assert all("window of 3 keys not stated" in reason for reason in reasons)


def test_a_row_above_the_peak_refutes_that_all_keys_are_seen(tmp_path: Path) -> None:
    """Of two layers that would cost the same one took an hundredth of the time: it has a window."""
    tokens, heads, width = 8192, 64, 64
    q = [tokens, heads, width]
    events = [event("user_annotation", STEP.format(tokens, tokens**2), 10, 300)]
    for corr, ts, dur in ((1, 20, 4000), (2, 60, 40)):
        events += [
            op("vllm::unified_attention_with_output", ts, 8, Input_Dims=[q, q, q, q],
               Input_type=["c10::BFloat16"] * 4, External_id=corr),
            launch(corr, ts + 2),
            kernel(corr, 1000 + ts * 100, dur, name="kernel_unified_attention_2d"),
        ]  # fmt: skip
    devices = [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0}]
    path = tmp_path / "trace.json"
    path.write_text(text(events, deviceProperties=devices))
    slow, fast = _rows(path)
    assert int(slow["FLOPs"]) == 2 * 2 * heads * tokens**2 // 2 * width
    assert (fast["FLOPs"], fast["Bytes"]) == ("", "")
    assert "above the device's peak" in fast["Why"]
