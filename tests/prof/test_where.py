"""Conditions select rows, and change nothing else."""

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof.marker import Call, Tensor, encode_op
from pyprof.prof.where import Condition, conditions
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.commands.test_prof import MM, column, table

ADD = encode_op(Call("torch", "add", (Tensor((64,), "float16"), Tensor((64,), "float16"))))


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return two products, an addition and a kernel without an op."""
    work = [
        Work(name, (1000 * n, 1000 * n + 100 * n), (100 * n, 100 * n + 5))
        for n, name in enumerate(["ampere_h16816gemm", "volta_sgemm_64x64", "add_kernel", "k"], 1)
    ]
    ranges = [Range(text, (100 * n - 5, 100 * n + 20)) for n, text in enumerate([MM, MM, ADD], 1)]
    return nsys_db(tmp_path / "a.sqlite", work, ranges)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("expressions", "rows"),
    [
        (["op=mm"], "12"),
        (["op!=mm"], "34"),
        (["op~^m"], "12"),
        (["op!~m"], "34"),
        (["op="], "4"),
        (["op!="], "123"),
        (["sil>200"], "34"),
        (["sil>=2e2"], "234"),
        (["sil<200"], "1"),
        (["sil <= 200", "op = mm"], "12"),
        (["tc=0 and op=mm"], "2"),
        (["op=mm AND sil=200"], "2"),
        (["flops="], "4"),
        (["flops>0"], "123"),
        (["flops!=0"], "1234"),
        (["kernel~gemm|add", "sil!=100"], "23"),
        (["sil>1e9"], ""),
        (["step="], "1234"),
    ],
)
def test_rows_that_fulfil_all_conditions_are_shown(
    net: Path, expressions: list[str], rows: str
) -> None:
    """Unknown values fulfil only `!=`, `!~` and an empty `=`."""
    options = [part for text in expressions for part in ("--where", text)]
    assert "".join(column(table("-c", "idx", *options, net), "Idx")) == rows


@pytest.mark.slow
def test_groups_hold_only_the_selected_rows(net: Path) -> None:
    """Their costs are unchanged: a call is not cheaper if one of its kernels is hidden."""
    rows = table("--by", "op", "--where", "op~.", net)
    assert [(row["Op"], row["Calls"], row["Share(%)"]) for row in rows] == [
        ("add", "1", "50"), ("mm", "2", "50"),
    ]  # fmt: skip
    whole = {row["Idx"]: row["FLOPs"] for row in table("-c", "idx,flops", net)}
    (part,) = table("-c", "idx,flops", "--where", "idx=2", net)
    assert part["FLOPs"] == whole["2"]
    assert "unknown for" not in run("prof", "--where", "op~.", net).stderr


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("opp=1", "no column 'opp'; did you mean 'op'? columns are idx, seq"),
        ("nonsense", "is not a condition; write tc=0"),
        ("", "is not a condition"),
        ("eff~3", "eff contains numbers: compare it with"),
        ("op<3", "op contains texts: compare it with"),
        ("sil>fast", "'fast' is not a number"),
        ("sil>10us", "sil contains numbers (unit: ns), but '10us' is not a number"),
        ("sil<", "'' is not a number"),
        ("sil=nan", "'nan' is not a number"),
        ("dir=backward", "dir is one of fprop, bprop, optim, comm, copy, not 'backward'"),
        ("tc=0 or tc=1", "tc is one of 1, 0, ?, -, not '0 or tc=1'"),
        ("kind!=copy", "kind is one of kernel, memcpy, memset, graph, cpu, not 'copy'"),
        ("op~(", "not a regular expression"),
        ("op~(?=a)", "is not a regular expression in RE2 syntax: invalid perl operator: (?="),
        ("op~\udcff", "is not UTF-8"),
        ("op=\udcff", "is not UTF-8"),
        ("op=mm and ", "is not a condition"),
    ],
)
def test_an_invalid_condition_is_a_usage_error(net: Path, expression: str, said: str) -> None:
    done = run("prof", "--where", expression, net)
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){20}$"])
def test_no_expression_takes_forever(pattern: str) -> None:
    """A backtracking engine would take hours for each of these."""
    (condition,) = conditions([f"op~{pattern}"])
    values = pa.array(["a" * 50_000 + "!", None, "b"])
    assert condition.holds(values).tolist() == [False, False, pattern == "(a|a)*b"]


@pytest.mark.parametrize("text", [" " * 300_000, "op~a" + " " * 300_000 + "b", " and" * 100_000])
def test_no_condition_takes_forever_to_read(text: str) -> None:
    """Many blanks alone are not a condition."""
    with suppress(ValueError):
        conditions([text])


def test_conditions_are_split_at_and() -> None:
    assert conditions([" eff < 20 and op~soft", "kernel~operand"]) == (
        Condition("eff", "<", "20"),
        Condition("op", "~", "soft"),
        Condition("kernel", "~", "operand"),
    )
