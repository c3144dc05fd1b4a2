"""Other differences of what changed, and the way from A to B, which adds up."""

from pathlib import Path
from typing import Any

import pytest

from tests.allocations.traces import written
from tests.analysis.captured import capture, op
from tests.analysis.diff.noisy import noisy, times
from tests.answers.checked import ask
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.prof.kernels.test_autotuning import BURST, STEADY
from tests.prof.kernels_in_ranges import called
from tests.readers.kineto_json import op as event


def _causes(a: Path, b: Path, *options: str) -> dict[str, list[str]]:
    changes = ask("diff", a, b, *options)["changes"]
    return {change["key"]["op"]: change["causes"] for change in changes if change["causes"]}


@pytest.mark.slow
def test_another_kernel_is_a_cause(tmp_path: Path) -> None:
    a = noisy(tmp_path / "a.sqlite", times(1, 5, 0.01))
    b = noisy(tmp_path / "b.sqlite", times(2, 5, 0.01, gelu=2), {"gelu": "slow_gelu"})
    assert _causes(a, b) == {"gelu": ["different kernel: gelu_kernel in A, slow_gelu in B"]}
    assert "gelu 64x64 float32 step: different kernel: gelu_kernel in A, slow_gelu in B" in (
        run("diff", a, b).stdout
    )


@pytest.mark.parametrize("suffix", ["md", "html"])
def test_causes_are_in_every_form(suffix: str, tmp_path: Path) -> None:
    a = _everywhere(tmp_path / "a.sqlite")
    b = _everywhere(tmp_path / "b.sqlite", rates=(1.08,) * 6)
    assert run("diff", a, b, "-o", tmp_path / f"x.{suffix}").code == 0
    text = (tmp_path / f"x.{suffix}").read_text()
    assert "another clock" in text
    assert ("From A to B" in text) is (suffix == "html")


@pytest.mark.slow
def test_another_shape_is_a_cause(tmp_path: Path) -> None:
    """If matched by shape, a removed and an added shape belong together; else it is one change."""
    a = noisy(tmp_path / "a.sqlite", times(1, 5, 0.01))
    b = noisy(tmp_path / "b.sqlite", times(2, 5, 0.01, gelu=2), None, {"gelu": (128, 64)})
    cause = "different shape: 64x64 in A, 128x64 in B"
    assert _causes(a, b) == {"gelu": [cause]}
    assert _causes(a, b, "--by", "op") == {"gelu": [cause]}


def test_a_type_that_is_not_recorded_is_no_difference(tmp_path: Path) -> None:
    work = [Work("gemm", (100, 200), (10, 20))]
    a, b = (
        nsys_db(tmp_path / f"{side}.sqlite", work, [Range(text, (5, 30))])
        for side, text in (
            ("a", op("mm", 8, 8)),
            ("b", "aten::mm, seq = 4, op_id = 7, sizes = [[9, 9], [9, 9]]"),
        )
    )
    ((cause,),) = {tuple(causes) for causes in _causes(a, b).values()}
    assert cause.startswith("different shape")


@pytest.mark.slow
def test_shapes_that_have_most_in_common_belong_together(tmp_path: Path) -> None:
    """Two shapes of one op changed, in another order, and one is new."""
    before, after = [(64, 10), (7, 300)], [(7, 320), (9, 9), (64, 11)]
    files = []
    for side, shapes in enumerate((before, after)):
        ranges = [
            Range(op("relu", *shape), (100 * n, 100 * n + 50)) for n, shape in enumerate(shapes)
        ]
        work = [
            Work("relu_kernel", (1000 + 200 * n, 1100 + 200 * n + n), (100 * n + 1, 100 * n + 5))
            for n in range(len(shapes))
        ]
        files.append(nsys_db(tmp_path / f"{side}.sqlite", work, ranges))
    changes = ask("diff", *files)["changes"]
    causes = {change["key"]["shape"]: change["causes"] for change in changes}
    assert causes["64x11"] == causes["64x10"] == ["different shape: 64x10 in A, 64x11 in B"]
    assert causes["7x320"] == causes["7x300"] == ["different shape: 7x300 in A, 7x320 in B"]
    assert causes["9x9"] == []
    assert run("diff", *files).stdout.count("different shape") == 2


def _everywhere(path: Path, *, batch: int = 8, dtype: str = "float32", kernel: str = "gemm",
                rates: tuple[float, ...] = (1,) * 6) -> Path:  # fmt: skip
    """Write a product of another shape in each of six layers."""
    ranges, work, at = [], [], 10_000
    for number, rate in enumerate(rates):
        called, ns = 100 * number, int(10_000 * rate * (number + 1))
        ranges.append(Range(op("mm", batch, 100 + number, dtype=dtype), (called, called + 50)))
        work.append(Work(f"{kernel}_{number}", (at, at + ns), (called + 10, called + 20)))
        at += ns
    return nsys_db(path, work, ranges)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dtype": "bfloat16"}, "different dtypes for 100 % of A's time: float32 in A, bfloat16"),
        ({"batch": 16}, "different shapes for 100 % of A's time: 8 in A, 16 in B, as with another"),
        ({"kernel": "cutlass", "rates": (2, 1, 3, 2, 2, 2)},
         "different kernels for 90 % of A's time: another library version"),
        ({"rates": (1.25, 1.29, 1.27, 1.3, 1.31, 1.28)},
         "nearly all ops take +29.0 % by the same kernels: another clock"),
    ],
)  # fmt: skip
def test_a_change_of_most_ops_is_one_sentence(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    a = _everywhere(tmp_path / "a.sqlite")
    b = _everywhere(tmp_path / "b.sqlite", **changed)
    (cause,) = ask("diff", a, b)["causes"]
    assert cause.startswith(said), cause
    assert cause.endswith("(inferred)") == ("dtypes" not in said)
    assert " ".join(run("diff", a, b).stdout.split()).count("other ") == cause.count("other ")


def _on_cpu(path: Path, *, us: int = 100, turns: int = 1) -> Path:
    """Write a trace of six ops of a CPU, some times in turn."""
    names = ("mm", "relu", "tanh", "add", "mul", "sum")
    events = [
        event(f"aten::{name}", 10_000 * turn + 1000 * place, us)
        for turn in range(turns)
        for place, name in enumerate(names)
    ]
    return written(path, events)


def test_on_the_cpu_other_programs_may_slow_all_ops(tmp_path: Path) -> None:
    """A CPU has no power limit that a report could know of, but runs more than one program."""
    a = _on_cpu(tmp_path / "a.json")
    (cause,) = ask("diff", a, _on_cpu(tmp_path / "b.json", us=200))["causes"]
    assert cause == (
        "nearly all ops take +100.0 % by the same kernels: other programs, threads or clock"
        " (inferred)"
    )


def test_ops_that_are_called_more_often_have_no_common_cause(tmp_path: Path) -> None:
    """A capture of two iterations, whose steps are unknown, takes twice as long as one of one."""
    a, b = _on_cpu(tmp_path / "a.json"), _on_cpu(tmp_path / "b.json", turns=2)
    assert ask("diff", a, b)["causes"] == []


@pytest.mark.parametrize("rates", [(2, 1, 1.5, 1, 1.1, 1.2), (1, 1.01, 1, 0.99, 1, 1)])
def test_changes_of_a_few_ops_have_no_common_cause(
    tmp_path: Path, rates: tuple[float, ...]
) -> None:
    a = _everywhere(tmp_path / "a.sqlite")
    b = _everywhere(tmp_path / "b.sqlite", rates=rates)
    assert ask("diff", a, b)["causes"] == []
    assert _causes(a, b) == {}


def test_another_gpu_or_clock_is_a_cause(captures: Path) -> None:
    a = captures / "nsys2025.3-t4-registered-strings" / "net.sqlite"
    b = captures / "nsys2024.6-h100-nvfuser" / "net.sqlite"
    causes = ask("diff", a, b, "-q")["causes"]
    assert causes[0].startswith("different GPUs: A ran on Tesla T4, B on NVIDIA H100")


def test_a_capture_without_ops_is_compared_by_kernels(tmp_path: Path) -> None:
    """Its rows are named by kernel, which match none that are named by op."""
    work = Work("gemm", call=(500, 600))
    a = nsys_db(tmp_path / "a.sqlite", [work], [Range(op("matmul", 8, 8), (400, 700))])
    b = nsys_db(tmp_path / "b.sqlite", [work], [Range("step", (400, 700))])
    for pair, which in (((a, b), "A"), ((b, a), "B")):
        (cause,) = ask("diff", *pair)["causes"]
        assert cause.startswith(f"ops are known in {which} only")
        assert ask("diff", *pair, "--by", "kernel")["causes"] == []


def test_autotuning_in_one_capture_is_a_cause(tmp_path: Path) -> None:
    """Kernels that a convolution only tried."""
    files = []
    for side, first in enumerate((BURST, STEADY)):
        calls = [(text, [(name, 80) for name in names]) for text, names in (first, STEADY, STEADY)]
        files.append(called(tmp_path / f"{side}.sqlite", *calls))
    assert _causes(files[0], files[1]) == {"conv2d": ["autotuning: kernels are tried in A only"]}


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("by", ["op,shape,dtype,layer", "layer", "kernel"])
def test_the_way_from_a_to_b_adds_up(by: str, tmp_path: Path) -> None:
    a = capture(tmp_path / "a.sqlite", steps=3)
    b = capture(tmp_path / "b.sqlite", steps=3, slower=1.7)
    answer = ask("diff", a, b, "--by", by)
    stages = answer["waterfall"]
    assert stages[0]["from_ns"] == answer["metrics"]["time_ns"]["a"]
    assert stages[-1]["to_ns"] == pytest.approx(answer["metrics"]["time_ns"]["b"])


@pytest.mark.slow
def test_many_small_changes_are_one_stage(tmp_path: Path) -> None:
    names = [f"op{n}" for n in range(12)]
    a = noisy(tmp_path / "a.sqlite", {name: [1000, 1000] for name in names})
    b = noisy(tmp_path / "b.sqlite", {n: [1000 + 10 * k] * 2 for k, n in enumerate(names)})
    stages = ask("diff", a, b)["waterfall"]
    assert [stage["op_count"] for stage in stages] == [1] * 8 + [3]
    assert "3 others" in run("diff", a, b).stdout
