"""The whole output of `pyprof summary`, and that it adds up."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from pyprof.analysis.time.idle import CAUSES
from pyprof.inputs import source
from pyprof.marker import Call, encode_layer, encode_op, encode_trace
from tests.analysis.answered import answered
from tests.analysis.captures import training, write_dict
from tests.builders import Range as NsysRange
from tests.builders import Work as NsysWork
from tests.builders import nsys_db
from tests.commands import misused, run
from tests.commands.test_prof import MM
from tests.golden import check

REAL = {
    "a100-markers": "nsys2024.2-a100-pyprof-markers/net.sqlite",
    "v100-apex": "nvprof-v100-apex/net.sql",
    "v100-apex-dict": "nvprof-v100-apex/net.dict",
    "h100x2-fsdp": "nsys2026.2-h100x2-fsdp/net.sqlite",
    "a100-cudagraph": "nsys2024.6-a100-cudagraph/net.sqlite",
    "h100-vit": "kineto-h100-vit-inference/trace.json.gz",
    "v100-resnet-ddp": "kineto-v100-resnet-ddp/trace.json.gz",
    "v100-resnet50": "kineto-v100-resnet50-2021/trace.json.gz",
}


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return an nsys capture of five steps of two kernels."""
    begins = range(0, 500_000, 100_000)
    work = [
        NsysWork(name, (at + lead, at + lead + 20_000), call=(at + lead - 8000, at + lead - 3000))
        for at in begins
        for name, lead in (("volta_sgemm_128x64_nn", 10_000), ("add", 50_000))
    ]
    ranges = [NsysRange(f"step {n}", (at, at + 99_000)) for n, at in enumerate(begins)]
    ranges += [NsysRange("layer:net", (at + 1000, at + 80_000)) for at in begins]
    return nsys_db(tmp_path / "net.sqlite", work, ranges)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["op", "layer", "line"])
def test_the_whole_summary_of_a_small_capture_is_as_expected(by: str, tmp_path: Path) -> None:
    done = run("summary", "--by", by, write_dict(tmp_path / "net.dict", training(4)))
    assert (done.code, done.stderr) == (0, "")
    check(f"summary-small-{by}", done.stdout)


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_whole_summary_of_a_real_capture_is_as_expected(name: str, captures: Path) -> None:
    done = run("summary", "-q", captures / REAL[name])
    assert (done.code, done.stderr) == (0, "")
    check(f"summary-{name}", done.stdout)


@pytest.mark.slow
def test_chosen_steps_alone_are_shown(net: Path) -> None:
    loaded = source.load(str(net))
    found = answered(loaded, "3:")
    assert found.devices is not None
    assert (found.steps.first, found.steps.last, found.steps.are_chosen) == (3, 4, True)
    assert sum(part.time_ns for part in found.parts) == found.devices[0].busy_ns == 80_000
    assert "shown: 3 to 4" in run("summary", "-q", "--steps", "3:", net).stdout
    assert "shown: 3; a step" in run("summary", "-q", "--steps", "3", net).stdout


@pytest.mark.slow
def test_the_modelled_share_is_that_of_the_chosen_steps(net: Path) -> None:
    unknown = {"--steps=0:": "unknown for 10 rows", "--steps=3": "unknown for 2 rows"}
    for option, expected in unknown.items():
        assert expected in run("summary", "-q", option, net).stdout


@pytest.mark.parametrize("text", ["9:", "x"])
def test_a_missing_step_is_a_usage_error(text: str, net: Path) -> None:
    assert "--steps" in misused("summary", "-q", "--steps", text, net)


@pytest.mark.slow
def test_quiet_leaves_out_warnings(captures: Path) -> None:
    path = captures / REAL["a100-cudagraph"]
    assert "CUDA graph launches" in run("summary", path).stderr
    assert run("summary", "-q", path).stderr == ""


def test_every_cause_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "summary.md").read_text("utf-8")
    table = page.partition("| cause |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| (\w+) \|", table, re.MULTILINE) == list(CAUSES)


def test_windows_are_listed_and_pauses_do_not_count(tmp_path: Path) -> None:
    work = [
        NsysWork(at=(1000, 1250), call=(900, 910)),
        NsysWork(kind="none", api="cudaProfilerStop_v4000", call=(1290, 1300)),
        NsysWork(kind="none", api="cudaProfilerStart_v4000", call=(8_000_000, 8_000_050)),
        NsysWork(at=(8_000_100, 8_000_200), call=(8_000_060, 8_000_070)),
        NsysWork(at=(8_000_350, 8_000_500), call=(8_000_110, 8_000_120)),
    ]
    net = nsys_db(tmp_path / "net.sqlite", work)
    found = answered(source.load(str(net)))
    assert found.devices is not None
    (device,) = found.devices
    assert (device.windows, device.paused_ns) == (2, 8_000_100 - 1250)
    assert (device.span_ns, device.busy_ns, device.idle_ns) == (650, 500, 150)
    assert "Windows   2; 8.00 ms between them left out" in run("summary", net).stdout


@pytest.mark.slow
def test_times_per_step_are_means_of_one_set_of_steps(tmp_path: Path) -> None:
    found = answered(source.load(str(_net_with_warm_up(tmp_path / "net.sqlite"))))
    assert (found.steps.warm_up_count, found.steps.averaged_count) == (1, 4)
    assert found.steps.mean_ns == 1_000_000
    assert sum(op.step_ns or 0 for op in found.ops) == pytest.approx(10_000)
    assert sum(op.time_ns for op in found.ops) == 5 * 10_000 + 3_000_000
    assert found.layers[0].step_ns == pytest.approx(10_000)
    said = run("summary", "-q", tmp_path / "net.sqlite").stdout
    assert "a step takes 1.00 ms, the mean of 4" in " ".join(said.split())
    assert [line.split()[2] for line in said.splitlines() if line.startswith("mm ")] == ["10.0"]
    assert "A step is the mean of 4; shares and calls include work outside them." in said


def _net_with_warm_up(path: Path) -> Path:
    """Make a capture of five steps with 10 us of work each; the first has 3 ms more."""
    marks, work, at = [], [], 0
    for step in range(5):
        length = 1_000_000 if step else 4_000_000
        marks += [NsysRange(f"step {step}", (at, at + length)), NsysRange(MM, (at + 10, at + 100))]
        if not step:
            work.append(NsysWork("gemm", at=(at + 500, at + 3_000_500), call=(at + 15, at + 18)))
        end = at + length
        work.append(NsysWork("gemm", at=(end - 10_000, end), call=(at + 20, at + 30)))
        at = end
    return nsys_db(path, work, marks)


@pytest.mark.slow
def test_times_per_step_of_ranks_are_added(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        _net_with_warm_up(folder / f"net.rank{rank}.sqlite")
    said = run("summary", "-q", folder).stdout
    assert [line.split()[2] for line in said.splitlines() if line.startswith("mm ")] == ["20.0"]
    assert "Times are of all 2 GPUs together." in said


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("by", ["op", "layer", "line", "host"])
def test_lines_of_built_summaries_are_100_characters_at_most(by: str, tmp_path: Path) -> None:
    names = [f"a_rather_long_name_of_a_layer_{n}" * (1 + n % 3) for n in range(30)]
    ranges = [
        NsysRange(encode_layer(".".join(names[: n + 1])), (1 + n, 9000 - n)) for n in range(30)
    ]
    trace = encode_trace([f"/home/{'folder/' * 20}file_of_a_long_name.py:12345"])
    ranges += [NsysRange(trace, (40, 8000)), NsysRange(MM, (50, 7000))]
    long_op = encode_op(Call("torch", "an_op_of_a_long_name" * 4, ()))
    ranges += [NsysRange(long_op, (60, 6000))]
    work = [
        NsysWork(f"ncclDevKernel_AllReduce_{n}" if n % 2 else "gemm", device=n % 5,
             at=(2 * 10**9 * n + 10**9, 2 * 10**9 * (n + 1) + 10**9),
             call=(100 + 20 * n, 110 + 20 * n))
        for n in range(20)
    ]  # fmt: skip
    for devices in (1, 2, 4, 5):
        path = tmp_path / f"{devices}.sqlite"
        nsys_db(path, [one for one in work if one.device < devices], ranges)
        said = run("summary", "--by", by, path).stdout
        assert max(map(len, said.splitlines())) <= 100


def test_one_word_for_each_direction(tmp_path: Path) -> None:
    """Tables for people say forward and backward; fprop and bprop are for files."""
    net = _net_with_warm_up(tmp_path / "net.sqlite")
    for by in ("op", "layer", "line"):
        said = run("summary", "-qv", "--by", by, net).stdout
        assert "forward" in said
        assert "prop" not in said


def test_the_trend_of_steps_is_drawn_and_the_slowest_are_named(tmp_path: Path) -> None:
    ends = [0, 1000, 2000, 6000, 7000]
    work = [
        NsysWork(f"k{n}", (b - 100, b), (a + 10, a + 20)) for n, (a, b) in enumerate(pairwise(ends))
    ]
    texts = ["step[EXTEND bs=2 toks=64]", *(f"step[DECODE bs={n}]" for n in (1, 2, 3))]
    ranges = [NsysRange(t, (a, b - 1)) for t, (a, b) in zip(texts, pairwise(ends), strict=True)]
    said = run("summary", "-qv", nsys_db(tmp_path / "a.sqlite", work, ranges)).stdout
    assert "Trend     \u2581\u2583\u2588\u2583 100 ns to 4.00 us\n" in said
    assert "Slowest   steps 2 (4.00 us, decode of 2 tokens), 1 (1.00 us, decode of 1" in said
    phases = [
        line.split() for line in said.splitlines() if line.startswith(("decode ", "prefill "))
    ]
    assert ["decode", "3", "0.002", "2", "1,000,000", "-"] in phases
    assert max(map(len, said.splitlines())) <= 100


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["kernel=add", "step=2", "sil>1e9"])
def test_a_summary_of_chosen_rows(condition: str, net: Path) -> None:
    done = run("summary", "--where", condition, net)
    rows = run("prof", "--csv", "-c", "sil", "--where", condition, net).stdout.split()[1:]
    share = f"{100 * sum(int(row.strip(chr(34))) for row in rows) / 200_000:.1f}"
    assert f"Where     {condition}: {len(rows)} of 10 rows, {share} % of GPU time" in done.stdout
    assert "idle" not in done.stdout
    assert "MFU  " not in done.stdout
    assert ("Op " in done.stdout) == bool(rows)


def test_two_captures_add_up(net: Path, tmp_path: Path) -> None:
    (tmp_path / "ranks").mkdir()
    for rank in range(2):
        (tmp_path / "ranks" / f"rank{rank}.sqlite").write_bytes(net.read_bytes())
    done = run("summary", "--where", "kernel=add", tmp_path / "ranks")
    assert "kernel=add: 10 of 20 rows, 50.0 %" in done.stdout
