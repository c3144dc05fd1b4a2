"""`pyprof diff`: changes, and limits on them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pyprof.marker import encode_layer
from tests.analysis.captured import capture, op
from tests.analysis.diff.noisy import noisy, times
from tests.answers.checked import checked
from tests.builders import Range, Work, nsys_db
from tests.commands import run


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return two captures: in the second, relu takes half as long again."""
    return capture(tmp_path / "a.sqlite"), capture(tmp_path / "b.sqlite", slower=1.5)


def changes(*arguments: str | Path) -> dict[str, dict[str, str]]:
    return {row["op"]: row for row in run("diff", *arguments, "--csv", "-q").rows}


def test_a_slower_op_is_shown(pair: tuple[Path, Path]) -> None:
    relu = changes(*pair)["relu"]
    assert (relu["status"], relu["a_ns"], relu["b_ns"]) == ("slower", "200.0", "300.0")
    assert (relu["change_ns"], relu["change"], relu["a_calls"]) == ("100.0", "0.5", "2")
    assert relu["shape"] == "16x8"
    assert relu["layer"] == "net:net.first"


def test_another_kernel_for_the_same_op_is_the_same(tmp_path: Path) -> None:
    product = [Range(op("mm", 4, 4), (5, 30))]
    files = [
        nsys_db(tmp_path / f"{name}.sqlite", [Work(name, call=(10, 20))], product)
        for name in ("sgemm_a", "sgemm_b")
    ]
    assert {row["status"] for row in changes(*files).values()} == {"same"}


@pytest.mark.slow
def test_added_and_removed_ops_are_shown(tmp_path: Path) -> None:
    work = [Work(call=(10, 20))]
    a = nsys_db(tmp_path / "a.sqlite", work, [Range(op("relu", 4), (5, 30))])
    b = nsys_db(tmp_path / "b.sqlite", work, [Range(op("gelu", 4), (5, 30))])
    found = changes(a, b)
    assert (found["relu"]["status"], found["relu"]["b_ns"]) == ("gone", "")
    assert (found["gelu"]["status"], found["gelu"]["a_ns"]) == ("new", "")


@pytest.mark.slow
def test_captures_of_different_length_compare_per_step(tmp_path: Path) -> None:
    a, b = (capture(tmp_path / f"{n}.sqlite", steps=n) for n in (3, 5))
    assert {row["status"] for row in changes(a, b).values()} == {"same"}
    done = run("diff", a, b, "--fail-if", "time>0", "--fail-if", "kernels>0")
    assert done.code == 0, done.stderr
    assert "per step: A has 3, B 5" in done.stdout


def _relu_steps(count: int, mark: Callable[[int], str]) -> tuple[list[Work], list[Range]]:
    """Make steps of one op each, with marks around them."""
    work, ranges = [], []
    for n in range(1000, 1000 * (count + 1), 1000):
        work.append(Work("relu", at=(n + 40, n + 90), call=(n + 10, n + 20)))
        ranges += [Range(mark(n // 1000), (n, n + 999)), Range(op("relu", 4), (n + 5, n + 30))]
    return work, ranges


@pytest.mark.slow
def test_work_outside_of_steps_is_not_divided_by_them(tmp_path: Path) -> None:
    """Setup takes as long for three steps as for five."""
    found = []
    for count in (3, 5):
        work, marks = _relu_steps(count, "step {}".format)
        setup = [Work("fill", at=(100, 900), call=(10, 20))]
        found.append(nsys_db(tmp_path / f"{count}.sqlite", setup + work, marks))
    assert {row["status"] for row in changes(*found).values()} == {"same"}
    assert run("diff", *found, "--fail-if", "time>0", "--fail-if", "time<0").code == 0


def test_a_numbered_step_is_not_a_layer_of_its_own(tmp_path: Path) -> None:
    """With `annotate("step 3")` around steps the loop is the layer: steps are samples of one op."""
    steps = _relu_steps(4, lambda n: encode_layer(f"step {n}"))
    files = [nsys_db(tmp_path / f"{name}.sqlite", *steps) for name in "ab"]
    rows = run("diff", *files, "--csv", "-q").rows
    assert [(row["op"], row["layer"], row["a_calls"]) for row in rows] == [("relu", "step", "4")]


@pytest.mark.slow
def test_chosen_steps_are_of_both_captures(tmp_path: Path) -> None:
    a, b = (capture(tmp_path / f"{n}.sqlite", steps=n) for n in (3, 5))
    relu = changes(a, b, "--steps", "1:")["relu"]
    assert (relu["a_calls"], relu["b_calls"], relu["status"]) == ("4", "8", "same")


def test_a_broken_limit_fails(pair: tuple[Path, Path]) -> None:
    done = run("diff", *pair, "--fail-if", "time>+3%", "--fail-if", "kernels>0")
    assert done.code == 3
    assert "time>+3%: time changed by +100 ns (+13.3 %)" in done.stderr
    assert "kernels" not in done.stderr
    assert "relu" in done.stdout


def test_a_capture_that_cannot_be_read_is_not_a_regression(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """Exit code 1, so that a gate can tell them apart; also for an invalid limit."""
    (tmp_path / "none.sqlite").write_bytes(b"none")
    assert run("diff", pair[0], tmp_path / "none.sqlite", "--fail-if", "time>3%").code == 1


@pytest.mark.slow
def test_different_gpus_are_named(tmp_path: Path) -> None:
    a = capture(tmp_path / "a.sqlite")
    assert run("parse", a, "-o", tmp_path / "b.dict").code == 0
    text = (tmp_path / "b.dict").read_text()
    (tmp_path / "b.dict").write_text(text.replace("NVIDIA A100-SXM4-80GB", "Tesla T4"))
    said = "different GPUs: A ran on NVIDIA A100-SXM4-80GB, B on Tesla T4"
    done = run("diff", a, tmp_path / "b.dict")
    assert said in done.stdout
    assert said in done.stderr
    assert run("diff", a, tmp_path / "b.dict", "-o", tmp_path / "x.md").code == 0
    assert "different GPUs" in (tmp_path / "x.md").read_text()


@pytest.mark.slow
def test_a_limit_that_cannot_be_checked_fails(captures: Path) -> None:
    """Records without times have no idle time."""
    source = captures / "nvprof-v100-apex" / "net.dict"
    done = run("diff", source, source, "--fail-if", "idle>5%")
    assert done.code == 1
    assert "cannot be checked" in done.stderr


@pytest.mark.slow
def test_costs_known_for_different_rows_are_not_compared(captures: Path) -> None:
    """One capture has the bytes of nearly all rows, the other those of two copies."""
    a = captures / "kineto-h100-vit-inference" / "trace.json.gz"
    b = captures / "nsys2024.6-h100-nvfuser" / "net.sqlite"
    done = run("diff", a, b, "-q", "--fail-if", "bytes>3%")
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("bytes"))
    assert row.startswith("bytes needed, of other rows")
    assert row.split()[-2:] == ["-", "-"]
    assert (done.code, "known for different shares of the rows" in done.stderr) == (1, True)


@pytest.mark.slow
def test_limits_beyond_noise_say_what_is_slower(tmp_path: Path) -> None:
    a = noisy(tmp_path / "a.sqlite", times(1, 8, 0.01))
    b = noisy(tmp_path / "b.sqlite", times(2, 8, 0.01, gelu=1.5, exp=1.2))
    done = run("diff", a, b, "--fail-if", "slower>5%", "--fail-if", "op>30%",
               "--fail-if", "significant", "--fail-if", "op>80%")  # fmt: skip
    assert done.code == 3
    said = [line.removeprefix("pyprof: ") for line in done.stderr.splitlines()]
    assert [line.partition(":")[0] for line in said] == ["slower>5%", "op>30%", "significant"]
    assert said[0].startswith("slower>5%: step changed by +")
    assert said[0].endswith("; significant")
    assert "op>30%: gelu 64x64 float32 step changed by +" in said[1]
    assert "more" not in said[1]
    assert run("diff", b, a, "--fail-if", "slower>5%", "--fail-if", "significant").code == 0
    done = run("diff", a, b, "--fail-if", "slower>5%", "--json")
    assert (done.code, checked(done.stdout)["failed"]) == (3, said[:1])


@pytest.mark.slow
def test_limits_see_new_ops(tmp_path: Path) -> None:
    taken = times(1, 8, 0.01)
    a = noisy(tmp_path / "a.sqlite", taken)
    b = noisy(tmp_path / "b.sqlite", {**taken, "sort": [80_000] * 8})
    tiny = noisy(tmp_path / "tiny.sqlite", {**taken, "sort": [1_000] * 8})
    once = noisy(tmp_path / "once.sqlite", {**taken, "sort": [200_000, *[0] * 7]})
    done = run("diff", a, b, "--fail-if", "op>10%", "--fail-if", "op>50us", "--fail-if", "op>90us")
    assert done.code == 3
    assert [line.removeprefix("pyprof: ") for line in done.stderr.splitlines()] == [
        "op>10%: sort step changed by +80.0 us (new)",
        "op>50us: sort step changed by +80.0 us (new)",
    ]
    for other in (tiny, once, a):
        assert run("diff", a, other, "--fail-if", "op>10%").code == 0
    assert run("diff", b, a, "--fail-if", "op>10%").code == 0


def test_limits_see_changed_shapes(tmp_path: Path) -> None:
    """An op with another shape replaces what is gone: its time counts."""
    taken, shapes = times(1, 8, 0.01), {"gelu": (65, 64)}
    a = noisy(tmp_path / "a.sqlite", taken)
    same = noisy(tmp_path / "same.sqlite", times(2, 8, 0.01), sizes=shapes)
    slower = noisy(tmp_path / "slower.sqlite", times(2, 8, 0.01, gelu=1.5), sizes=shapes)
    assert run("diff", a, same, "--fail-if", "op>10%").code == 0
    done = run("diff", a, slower, "--fail-if", "op>10%", "--fail-if", "op>60%")
    assert done.code == 3
    (said,) = done.stderr.splitlines()
    assert said.startswith("pyprof: op>10%: gelu step changed by +99.")
    assert said.endswith("different shapes or types)")


@pytest.mark.parametrize("suffix", [".md", ".html", ".csv", ".txt"])
def test_the_suffix_chooses_the_format(
    pair: tuple[Path, Path], tmp_path: Path, suffix: str
) -> None:
    target = tmp_path / f"diff{suffix}"
    done = run("diff", *pair, "-o", target, "--fail-if", "time>1%")
    assert (done.code, done.stdout) == (3, "")
    text = target.read_text()
    assert "relu" in text
    assert ("time" in text) is (suffix != ".csv")
