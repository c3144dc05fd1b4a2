"""CPU or GPU: every command says whose time it shows."""

import re
from pathlib import Path

import pytest

from pyprof.prof.coverage import Coverage
from pyprof.prof.processor import processor, word
from pyprof.records.merging import merge_sums
from tests.commands import run
from tests.readers.kineto_json import kernel, launch, op, text

_SAYS = re.compile(r"GPU (?:time|activities|busy|idle|profile|work,)|of GPU|GPU ms")

COMMANDS = [
    ("prof", "--by", "op"),
    ("prof", "--strict", "100"),
    ("prof", "--summary", "nvprof"),
    ("summary", "--top", "1"),
    ("summary", "--top", "1", "--by", "line"),
    ("summary", "--by", "layer"),
    ("lines",),
]
"""Those that write text."""

FILES = ["x.md", "x.html", "x.prof", "x.speedscope.json"]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.json"
    names = ("aten::addmm", "aten::relu", "mine::op")
    path.write_text(
        text([op(name, 100 * at, 50, External_id=at) for at, name in enumerate(names, 1)])
    )
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_texts_of_a_cpu_capture(command: tuple[str, ...], net: Path) -> None:
    done = run(*command, net)
    said = done.stdout + done.stderr
    assert "CPU" in said
    assert _SAYS.search(said.replace("no GPU work was captured", "")) is None


@pytest.mark.parametrize("name", FILES)
def test_exports_of_a_cpu_capture_say_cpu(name: str, net: Path, tmp_path: Path) -> None:
    command = "report" if name.endswith("html") else "export"
    assert run(command, "-o", tmp_path / name, net).code == 0
    said = (tmp_path / name).read_text(encoding="utf-8", errors="replace")
    said = re.sub(r"<script.*?</script>", "", said, flags=re.DOTALL)
    assert "CPU time" in said
    assert _SAYS.search(said.replace("no GPU work was captured", "")) is None


def test_diff_of_cpu_captures(net: Path, tmp_path: Path) -> None:
    """CPU if both are; GPU if one of them is."""
    other = tmp_path / "gpu.json"
    other.write_text(text([op("aten::mm", 0, 9, External_id=1), launch(3, 2), kernel(3, 20)]))
    assert "CPU time, summed" in run("diff", net, net).stdout
    assert "GPU time, summed" in run("diff", net, other).stdout


def test_nvprof_tables_of_a_cpu_capture(net: Path) -> None:
    """Ops are no GPU activities."""
    done = run("prof", "--summary", "nvprof", "--csv", net)
    assert [line.split(",")[0] for line in done.stdout.splitlines()[1:]] == ['"CPU ops"'] * 3


@pytest.mark.parametrize(
    ("devices", "expected"),
    [(["cpu"], "CPU"), (["cpu", "NVIDIA A100"], "GPU"), ([None], "GPU"), ([], "GPU")],
)
def test_the_processor_is_the_cpu_only_if_no_gpu_worked(
    devices: list[str | None], expected: str
) -> None:
    assert processor(devices) == expected


def test_several_captures_are_of_the_cpu_only_if_all_are() -> None:
    cpu, gpu = Coverage(1, {}, "CPU"), Coverage(1, {}, "GPU")
    assert [merge_sums(a, b).processor for a in (cpu, gpu) for b in (cpu, gpu)] == [
        "CPU",
        *["GPU"] * 3,
    ]


@pytest.mark.parametrize(
    ("name", "expected"), [("Ascend910B3", "NPU"), ("MLU590", "MLU"), ("MLUX", "GPU")]
)
def test_a_model_s_number_may_follow_the_kind(name: str, expected: str) -> None:
    assert word(name) == expected
