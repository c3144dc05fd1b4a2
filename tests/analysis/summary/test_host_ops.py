"""Host time in ops: equal to torch.profiler's sums, beside the GPU's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.summary.host_ops import by_op, host_ops
from pyprof.answers.summary_answer import HostOp
from pyprof.inputs.source import Source, load
from pyprof.marker import Call, Tensor, encode_op
from pyprof.prof.table import Table
from pyprof.records.merging import known_in_both, merge_sums
from pyprof.render.text import formatting
from pyprof.render.text.summary_text import host_table
from tests.analysis import captures as built
from tests.analysis.answered import answered
from tests.builders import Range, Work, nsys_db
from tests.capture_files.ncu import METRICS, Profiled, ncu_csv
from tests.commands import run
from tests.known import known

COLUMNS = "op,calls,total,cpu_calls,cpu_self,cpu_total,cpu_mean"


def ops(source: Source, within: tuple[int, int] | None = None) -> dict[str, tuple[int, int, int]]:
    """Return calls, own time and whole time of each op."""
    rows = by_op(known(host_ops(source, within))).to_pylist()
    return {row["op"]: (row["cpu_calls"], row["cpu_self"], row["cpu_total"]) for row in rows}


def _forward_and_backward(torch: Any) -> None:  # noqa: ANN401 - torch
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.BatchNorm2d(4), torch.nn.Flatten(),
        torch.nn.Linear(144, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(2):
        with torch.profiler.record_function("forward of mine"):
            out = net(torch.randn(2, 3, 8, 8))
            total = torch.einsum("ij,jk->ik", out, out.T).sum().sum()
        loss = torch.nn.functional.cross_entropy(out, torch.tensor([1, 2])) + 0 * total
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def _threads_and_recursion(torch: Any) -> None:  # noqa: ANN401 - torch
    class Mine(torch.autograd.Function):  # type: ignore[misc] # torch's own is untyped
        @staticmethod
        def forward(context: Any, x: Any) -> Any:  # noqa: ANN401 - torch's
            context.save_for_backward(x)
            return x.clamp(0, 1).to(torch.float64).to(torch.float32)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:  # noqa: ANN401 - torch's
            with torch.profiler.record_function("inside an op"):
                return gradient * context.saved_tensors[0].mean()

    x = torch.randn(8, 8, requires_grad=True)
    for _ in range(3):
        torch.linalg.norm(Mine.apply(x) @ x).backward()
    torch.fft.rfft(x.detach()).abs().var(unbiased=False).sqrt().item()


@pytest.mark.slow
@pytest.mark.parametrize("run_ops", [_forward_and_backward, _threads_and_recursion])
def test_host_times_equal_key_averages_of_torch(run_ops: Any, tmp_path: Path) -> None:  # noqa: ANN401 - a function
    """Count, self_cpu_time_total and cpu_time_total of every op on the CPU, to the ns."""
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        run_ops(torch)
    trace = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(trace))
    names = {event.key for event in profiler.key_averages()}
    expected: dict[str, tuple[int, int, int]] = {}
    for event in profiler.key_averages():
        engine, _, name = event.key.rpartition("evaluate_function: ")
        name = name.rpartition("#")[2]  # of an optimizer
        name = f"{'evaluate_function: ' if engine else ''}{name.rpartition('::')[2]}"
        count, own, whole = expected.get(name, (0, 0, 0))
        # `aten::detach` has a range of its own inside, `detach`: the same call.
        again = f"aten::{event.key}" in names
        own += round(event.self_cpu_time_total * 1000)
        whole += 0 if again else round(event.cpu_time_total * 1000)
        expected[name] = (count + (0 if again else event.count), own, whole)
    for name in ("forward of mine", "inside an op"):
        expected.pop(name, None)
    assert (run_ops is _forward_and_backward) == ("Adam.step" in expected)
    assert len(expected) > 25
    assert ops(load(str(trace))) == expected


def _source(*ranges: built.Range) -> Source:
    captured = built.capture([built.Work((900, 950), (901, 902))], ranges=ranges)
    return Source(Table(built.records(captured)), captured)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 60), st.sampled_from("abc")),
                min_size=1, max_size=12))  # fmt: skip
def test_self_times_add_up_to_the_time_in_ops(parts: list[tuple[int, int, str]]) -> None:
    """A ns belongs to the innermost op: checked ns by ns, for nested ranges."""
    nested: list[tuple[int, int, str]] = []
    for start, length, name in parts:
        end = start + length
        apart = all(e <= start or end <= s or (s < start and end < e) or (start < s and e < end)
                    for s, e, _ in nested)  # fmt: skip
        if apart:
            nested.append((start, end, name))
    source = _source(*(built.Range(f"aten::{name}, op_id = {at}", (start, end))
                       for at, (start, end, name) in enumerate(nested)))  # fmt: skip
    own = dict.fromkeys("abc", 0)
    for ns in range(130):
        inside = [(start, name) for start, end, name in nested if start <= ns < end]
        if inside:
            own[max(inside)[1]] += 1
    assert {name: row[1] for name, row in ops(source).items()} == {
        name: count for name, count in own.items() if count
    }


CALLS: dict[str, tuple[list[built.Range], dict[str, tuple[int, int, int]]]] = {
    "a marker of torch.add, in which emit_nvtx writes the same call again": (
        [built.op("add", (10, 50), Tensor((2,), "float32")),
         built.Range("aten::add, seq = 3, op_id = 7", (20, 45)),
         built.Range("aten::empty, op_id = 8", (22, 25)),
         built.Range("aten::add, seq = 4, op_id = 9", (60, 70))],
        {"add": (2, 47, 50), "empty": (1, 3, 3)}),
    "an optimizer's step, in our marker; a closure is no call, but its time counts": (
        [built.Range(encode_op(Call("SGD", "step", ())), (0, 60)),
         built.Range("Optimizer.step#SGD.step", (5, 55)),
         built.Range("aten::add_, op_id = 1", (10, 30)),
         built.Range("Optimizer.step#LBFGS.step", (100, 160)),
         built.Range("Optimizer.closure#", (110, 150)),
         built.Range("aten::mm, op_id = 2", (120, 140)),
         built.Range("Optimizer.zero_grad#SGD.zero_grad", (200, 210))],
        {"SGD.step": (1, 40, 60), "add_": (1, 20, 20), "LBFGS.step": (1, 20, 60),
         "mm": (1, 20, 20), "SGD.zero_grad": (1, 10, 10)}),
    "ops in a step, a layer, a user's range, and around a library's": (
        [built.Range("step 0", (0, 100)), built.Range("layer:net", (1, 99)),
         built.Range("mine", (2, 98)), built.Range("aten::mm, op_id = 1", (10, 30)),
         built.Range("ncclAllReduce", (12, 20))],
        {"mm": (1, 20, 20)}),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "expected"), CALLS.values(), ids=CALLS)
def test_each_call_of_an_op_counts_once(
    ranges: list[built.Range], expected: dict[str, tuple[int, int, int]]
) -> None:
    """Only ops have rows."""
    assert ops(_source(*ranges)) == expected


def test_the_line_of_host_time_is_that_of_the_innermost_stack() -> None:
    """Each call's is that of the innermost stack; an op's, that of most of its self time."""
    source = _source(
        built.trace((0, 50), "/src/net.py:7"),
        built.Range("aten::tensor, op_id = 1", (1, 49)),
        built.trace((50, 100), "/src/net.py:8"),
        built.Range("aten::linear, op_id = 2", (51, 90)),
        built.trace((60, 80), "/src/layer.py:3", "/venv/lib/python3/site-packages/torch/a.py:1",
                    "torch/nn/modules/linear.py:113"),
        built.Range("aten::tensor, op_id = 3", (61, 71)),
        built.Range("aten::mm, op_id = 4", (200, 210)),
    )  # fmt: skip
    found = known(host_ops(source))
    assert [[row[name] for name in ("op", "line", "cpu_self")] for row in found.to_pylist()] == [
        ["tensor", "/src/net.py:7", 48],
        ["linear", "/src/net.py:8", 29],
        ["tensor", "/src/layer.py:3", 10],
        ["mm", None, 10],
    ]
    total = {row["op"]: row for row in by_op(merge_sums(found, found)).to_pylist()}
    assert (total["tensor"]["line"], total["tensor"]["cpu_self"]) == ("/src/net.py:7", 116)


def test_calls_of_a_span_of_time() -> None:
    """Those that begin in it, as for `--steps`."""
    ranges = [built.Range(f"aten::mm, op_id = {at}", (at, at + 5)) for at in (10, 20, 30)]
    assert ops(_source(*ranges), (15, 30)) == {"mm": (1, 5, 5)}


MM = encode_op(Call("torch", "mm", (Tensor((8, 8), "float32"), Tensor((8, 8), "float32"))))


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return a capture of two products, a view without a launch, and a kernel without an op."""
    work = [
        Work("volta_sgemm_128x64_nn", (1000, 1500), call=(120, 130)),
        Work("volta_sgemm_128x64_nn", (2000, 2700), call=(320, 330)),
        Work("of_nobody", (3000, 3100), call=(900, 910)),
    ]
    ranges = [
        *(Range(MM, (at, at + 100)) for at in (100, 300)),
        *(Range("aten::addmm, op_id = 1", (at + 10, at + 60)) for at in (100, 300)),
        Range("aten::view, op_id = 5", (500, 520)),
    ]
    return nsys_db(tmp_path / "net.sqlite", work, ranges)


def rows(*arguments: object) -> list[dict[str, str]]:
    """Run `prof --by op` for these columns; return its rows."""
    return run("prof", "--csv", "--raw", "--by", "op", "-c", COLUMNS, *map(str, arguments)).rows


def test_ops_without_kernels_are_groups_too(net: Path) -> None:
    """Their GPU time is 0, or unknown if their kernels count for an op around them."""
    shown = [list(row.values()) for row in rows(net)]
    assert shown == [
        ["mm", "2", "1200", "2", "100", "200", "100"],
        ["", "1", "100", "", "", "", ""],
        ["view", "0", "0", "1", "20", "20", "20"],
        ["addmm", "0", "", "2", "100", "100", "50"],
    ]


@pytest.mark.slow
def test_nothing_is_lost_or_counted_twice(net: Path, tmp_path: Path) -> None:
    """Rows and GPU time are those of the table without host times; ranks add up."""
    plain = run("prof", "--csv", "--by", "op", net).stdout.splitlines()[1:]
    assert sum(int(line.split('"')[3]) for line in plain) == sum(int(r["Calls"]) for r in rows(net))
    (tmp_path / "ranks").mkdir()
    for rank in range(2):
        (tmp_path / "ranks" / f"rank{rank}.sqlite").write_bytes(net.read_bytes())
    one, both = rows(net), rows(tmp_path / "ranks")
    for name in ("Calls", "Total(ns)", "CPUCalls", "CPUSelf(ns)", "CPUTotal(ns)"):
        assert [r[name] and str(2 * int(r[name])) for r in one] == [r[name] for r in both]


def test_a_sum_of_which_a_part_is_unknown_is_unknown(net: Path) -> None:
    """Such as of a capture and another rank's parsed file, which has no host times."""
    one = host_ops(load(str(net)))
    assert known_in_both(one, None) is known_in_both(None, one) is None
    assert known_in_both(one, one) is not None


def test_a_capture_without_ranges_has_no_host_time(net: Path, tmp_path: Path) -> None:
    """It is empty, never 0, with a reason; so it is in a parsed file."""
    no_ranges = nsys_db(tmp_path / "a.sqlite", [Work("gemm", (20, 30), (5, 9))])
    counters = ncu_csv(tmp_path / "ncu.csv", [Profiled(metrics=METRICS)])
    assert run("parse", net, "-o", tmp_path / "net.dict").code == 0
    for path, ops in ((no_ranges, 1), (counters, 1), (tmp_path / "net.dict", 2)):
        answer = run("summary", "--json", path).json
        assert answer["host_ops"] is None
        assert "only captures with ranges of ops tell it" in answer["host_ops_why"]
        assert "Host time by op is unknown" in run("summary", "--by", "host", path).stdout
        done = run("prof", "--csv", "--by", "op", "-c", "cpu_calls", path)
        assert done.stdout == '"CPUCalls"\n' + '""\n' * ops
        assert "is unknown: only captures with" in done.stderr


def test_no_note_about_waits_if_nothing_is_idle(tmp_path: Path) -> None:
    path = ncu_csv(tmp_path / "ncu.csv", [Profiled(metrics=METRICS)] * 2)
    assert "lacks waits" not in run("summary", path).stdout


def test_columns_of_groups_are_chosen_and_sorted_by(net: Path) -> None:
    """-c with any --by; host columns with ops only, and not for chosen rows."""
    done = run("prof", "--by", "op", "-c", "cpu_total,op", "--sort", "cpu_self-", net)
    assert done.stdout.splitlines()[1:] == ["20 view", "200 mm", "100 addmm", "- -"]
    by_dir = run("prof", "--by", "dir", "-c", "dir,total", "-q", net).stdout
    assert by_dir.split()[:2] == ["Direction", "Total(ns)"]
    wrong = run("prof", "--by", "dir", "-c", "cpu_self", net)
    assert wrong.code == 2
    assert "columns are dir, calls, total" in " ".join(wrong.stderr.split())
    assert run("prof", "--by", "op", "-c", "cpu_self", "--where", "tc=0", net).code == 2


def test_the_host_s_table_is_100_columns_wide(net: Path) -> None:
    host = HostOp(op="a_long_name" * 9, calls=10**9, self_ns=10**15, total_ns=10**15 + 1,
                  line="/a" * 90 + ".py:7")  # fmt: skip
    answer = replace(answered(load(str(net))), host_ops=(host,))
    lines = formatting.finish(host_table(answer, 5), coloured=False).decode()
    assert max(map(len, lines.splitlines())) <= 100
    assert lines.count("1,000,000,000") == 2


def test_a_summary_shows_the_host_beside_the_gpu(net: Path) -> None:
    """The ops with most host time; all of them with --by host."""
    assert "Host time by op  Calls  Self ms     %" in run("summary", "-v", net).stdout
    shown = run("summary", "--by", "host", "--top", "2", net).stdout
    assert "addmm                2   <0.001  45.5    <0.001     0.05       -  -" in shown
    assert "... and 1 more, 9.1 % of host time in ops (--top 3)" in shown
