"""The last lines name the findings, and nothing else."""

from collections.abc import Sequence
from dataclasses import replace

import click
import pyarrow as pa
import pytest

from pyprof.analysis.ranks import tables
from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.analysis.ranks.waited_for import judge_waits
from pyprof.answers.ranks_answer import RankUse, UnmatchedCount
from pyprof.answers.summary_answer import NO_LAYER
from pyprof.render.text import ranks_head
from pyprof.render.text.ranks_text import _rank, in_words, report_lines
from tests.analysis.ranks.literal import GPU, Collective, gathered

MS = 1_000_000
_GPU = replace(
    GPU, gpu="A100", span_ns=90 * MS, busy_ns=90 * MS, compute_ns=80 * MS,
    communication_ns=10 * MS, exposed_ns=10 * MS, step_ns=10.0 * MS, steps=3,
)  # fmt: skip


def _text(
    own_ms: list[float],
    layers: dict[str, list[int]],
    rows: Sequence[Collective] = (),
    steps: Sequence[int] = (),
    gpu: RankUse = _GPU,
    per_host: int = 1,
) -> str:
    """Return the text on ranks whose steps take 10 ms, `own_ms` of that for their own work."""
    ranks = [
        tables.Rank(number=rank, clock=f"host {rank}", origin='ranges "step N"', own_ns=own * MS,
                    own_low_ns=own * MS,
                    gpus=(replace(gpu, rank=rank, device=rank % per_host,
                                  steps=steps[rank] if steps else 3),))
        for rank, own in enumerate(own_ms)
    ]  # fmt: skip
    loads = [
        {"rank": rank.number, "layer": layer, "gpu_ns": times[rank.number] * MS}
        for layer, times in layers.items() for rank in ranks
    ]  # fmt: skip
    found = replace(
        gathered(rows),
        ranks=tuple(ranks),
        layers=pa.Table.from_pylist(loads, tables.LAYERS),
    )
    return "\n".join(in_words(compare_ranks(found)))


CASES = {
    "nothing": ([8, 8.01, 7.99, 8], {}, ["No rank, link or layer stands out."]),
    "outside layers": ([8, 8], {NO_LAYER: [10, 20]}, ["No rank, link or layer stands out."]),
    "alone": ([8], {}, ["Only one rank: nothing to compare"]),
    "one": ([8, 8, 9, 8], {}, ["Rank 2 is the straggler", "9.00 ms, 1.00 ms more than"]),
    "a pair": ([8, 9], {}, ["Rank 1 is the straggler", "1.00 ms more than the other's"]),
    "a host": ([8, 8, 8, 9, 9], {}, ["Ranks 3 and 4 delay the others", "1.00 ms more than"]),
    "a layer": ([8, 8], {"net.head": [10, 20], "net": [7, 7]},
                ["Layer net.head is uneven: rank 1 spends 20.0 ms in it, 33.3 % more"]),
}  # fmt: skip


@pytest.mark.parametrize(("own", "layers", "expected"), CASES.values(), ids=CASES)
def test_findings_are_named(
    own: list[float], layers: dict[str, list[int]], expected: list[str]
) -> None:
    said = _text(own, layers)
    assert all(text in said for text in expected), said


@pytest.mark.parametrize(
    ("slow", "per_host", "whole"),
    [((2, 3), 2, True), ((1, 2), 2, False), ((2, 3), 1, False), ((2, 3), 4, False)],
)
def test_a_host_of_slow_ranks_is_named_as_such(
    slow: tuple[int, ...], per_host: int, *, whole: bool
) -> None:
    """By devices' numbers: they begin again at 0 on each host."""
    said = _text([9 if rank in slow else 8 for rank in range(4)], {}, per_host=per_host)
    assert said.startswith(f"Ranks {slow[0]} and {slow[1]}")
    assert (", a whole host (inferred), delay the others" in said) is whole


def _reduces(
    late_us: dict[int, int], ranks: Sequence[int], group: str = "0", members: str | None = None
) -> list[Collective]:
    """Return 11 all-reduces of some ranks, to which some come late, in steps of 40 ms."""
    size = members.count(",") + 1 if members else None
    return [
        Collective(
            rank, (at + 1000 * late_us.get(rank, 0), at + 2 * MS),
            group=group, members=members, size=size, stream=20 + int(group), step=at // (40 * MS),
        )
        for rank in ranks
        for at in range(10 * MS, 120 * MS, 10 * MS)
    ]  # fmt: skip


def _delayed(rows: Sequence[Collective], late_ms: dict[tuple[int, int], float]) -> list[Collective]:
    """Let ranks come late to the collectives of a step, by (step, rank); all leave 9 ms later."""
    return [
        replace(each, at=(each.at[0] + int(late_ms.get((each.step or 0, each.rank), 0) * MS),
                          each.at[1] + 9 * MS))
        for each in rows
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("own", "late_ms", "begins", "also"),
    [
        (8, {(1, 1): 9}, "Rank 1 stalls, in 1 step of 3: the others waited", "summary --steps 1 "),
        (8, {(1, 1): 9, (2, 0): 9}, "Ranks 0 and 1 stall in turn, in 2 steps of 3: the others", ""),
        (8, {(0, 1): 9}, "No rank", ""),  # its recording began late
        (8, {(1, 1): 0.1}, "No rank", ""),
        # two steps are most, but fewer than the three of four that make a straggler
        (8, {(1, 1): 9, (2, 1): 9}, "Rank 1 stalls, in 2 steps of 3",
         "; no rank works longer in three of four steps."),
        # one that works a little longer does not hide that another stalls
        (9, {(1, 1): 9}, "Rank 1 stalls, in 1 step of 3", "Rank 3 works longest"),
        # unless that is late in most steps: it may have waited for the first elsewhere
        (9, {(1, 1): 9, (2, 1): 9}, "Rank 3 works longest", ""),
    ],
)  # fmt: skip
def test_a_rank_that_is_late_in_some_steps_stalls(
    own: float, late_ms: dict[tuple[int, int], float], begins: str, also: str
) -> None:
    """Such as by its loader: its median step is as long as that of others, but they wait."""
    said = _text([8, 8, 8, own], {}, rows=_delayed(_reduces({}, range(4)), late_ms))
    assert said.startswith(begins), said
    assert also in said
    assert ("pyprof summary --steps" in said) == ("stall" in begins)
    assert ("no rank works longer" in said) == ("stall" in begins and own == 8)


@pytest.mark.parametrize(
    ("own", "late", "begins"),
    [(9, (0, 1), "Rank 0 is the straggler"), (8, (1, 3), "Rank 3 stalls, in 1 step of 3")],
    ids=["the slowest", "one that stalls"],
)
def test_a_rank_that_waited_for_another_does_not_stall(
    own: float, late: tuple[int, int], begins: str
) -> None:
    """Rank 1 comes last to a group since it waited in its other, as in tensor parallelism."""
    groups = zip(late, ((0, 1), (1, 2, 3)), ("0, 1", "1, 2, 3"), strict=True)
    rows = [
        each
        if each.step == 1
        else replace(each, at=(each.at[0] // (10 * MS) * 10 * MS, each.at[1]))
        for number, (rank, ranks, members) in enumerate(groups)
        for each in _reduces({rank: 9000}, ranks, str(number), members)
    ]
    said = _text([own, 8, 8, 8], {}, rows=_delayed(rows, {}))
    assert said.startswith(begins)
    assert "Rank 1 stalls" not in said


@pytest.mark.parametrize(
    ("sources", "expected"),
    [(("0.sqlite", "1.sqlite"), "Compare pyprof summary 1.sqlite with"),
     (("net.sqlite", "net.sqlite"), "Compare pyprof summary --where device=1 net.sqlite with")],
    ids=["a capture each", "one capture"],
)  # fmt: skip
def test_the_straggler_is_compared_by_commands_that_show_it_alone(
    sources: Sequence[str], expected: str
) -> None:
    found = compare_ranks(gathered(_reduces({1: 300}, range(2))))
    ranks = tuple(replace(_GPU, rank=at, device=at, source=sources[at]) for at in range(2))
    assert expected in "\n".join(in_words(replace(found, ranks=ranks)))


def test_layers_of_pipeline_stages_are_not_compared() -> None:
    """Each stage may name its own layers as the others do theirs."""
    assert "uneven" not in _text(
        [8, 8], {"Sequential.0": [10, 20]}, gpu=replace(_GPU, bubble_ns=MS)
    )


@pytest.mark.parametrize(("bubble_ns", "role"), [
    (None, "Rank 1 works longest, but the others seldom wait for it: "),
    (MS, "Rank 1 works longest, and other stages wait for it: "),
])  # fmt: skip
def test_stages_wait_for_the_longest_in_bubbles(bubble_ns: int | None, role: str) -> None:
    """Though it comes last to no collective: sends and receives make them wait."""
    rows = _reduces({0: 300}, range(3))
    assert role in _text([8, 9, 8], {}, rows, gpu=replace(_GPU, bubble_ns=bubble_ns))


@pytest.mark.parametrize(
    ("compute_ms", "description", "said"),
    [
        ((20, 21), "PP", "% of its time in pipeline bubbles, waiting for other stages; more"),
        ((20, 40), "PP", "stages of equal length reduce that: rank 1 computes 20.0 ms longer."),
        ((20, 21), "default_pg", "while it computes nothing; in a pipeline, more micro-batches"),
    ],
    ids=["even stages", "a longer stage", "perhaps a ring"],
)
def test_bubbles_are_told_what_shortens_them(
    compute_ms: tuple[int, int], description: str, said: str
) -> None:
    rows = [replace(each, description=description, kind="send_recv")
            for each in _reduces({}, range(2))]  # fmt: skip
    found = compare_ranks(gathered(rows))
    ranks = [
        replace(_GPU, rank=rank, compute_ns=ms * MS, bubble_ns=(60 - ms) * MS)
        for rank, ms in enumerate(compute_ms)
    ]
    assert said in "\n".join(in_words(judge_waits(replace(found, ranks=tuple(ranks)))))


def test_a_rank_that_seldom_comes_last_is_not_a_straggler() -> None:
    """However long it works."""
    said = _text([8, 9, 8], {}, _reduces({0: 300, 2: 100}, range(3)))
    assert "straggler" not in said
    assert (
        "Rank 1 works longest, but the others seldom wait for it: it arrived last at 0 of" in said
    )
    said = _text([8, 8, 8, 9, 9], {}, _reduces({3: 300, 4: 299}, range(5)))
    assert "Ranks 3 and 4 delay the others" in said
    said = _text([8, 8, 8, 9, 9], {}, _reduces({0: 300}, range(5)))
    assert "Ranks 3 and 4 work longest, but the others do not wait for them" in said
    said = _text([8, 9, 8], {}, _reduces({1: 300}, range(3)))
    assert "Rank 1 is the straggler: it arrived last at 11 of 11 collectives" in said


def test_waits_shorter_than_the_residual_of_clocks_are_not_denied() -> None:
    """Ranks that leave collectives up to 500 us apart may have waited for most of 1 ms a step."""
    rows = [
        replace(each, at=(each.at[0], each.at[1] + rank * (index * index % 5) * MS // 8))
        for rank in range(2)
        for index, each in enumerate(_reduces({}, [rank]))
    ]
    said = _text([8, 9], {}, rows)
    assert "Rank 1 works longest; the clocks cannot tell how long the others wait for it" in said
    assert "late or later" not in said


def test_waits_per_step_are_of_steps_that_both_captures_hold() -> None:
    """Rank 1 was recorded for 2 of 3 steps, in which the other waited 300 us at 8 all-reduces."""
    rows = [
        *_reduces({}, [0]),
        *(each for each in _reduces({1: 300}, [1]) if each.at[0] > 40 * MS),
    ]
    assert "the other waited 1.20 ms per step for it, 2.40 ms" in _text([8, 9], {}, rows, [3, 2])


def test_waits_outside_of_steps_are_told_apart() -> None:
    """As for a rank that writes a checkpoint at the end, which the others await at a barrier."""
    rows = _reduces({1: 300}, [0, 1])
    rows += [Collective(rank, ((200 + 60 * rank) * MS, 270 * MS)) for rank in (0, 1)]
    said = _text([8, 9], {}, rows)
    assert "the other waited 1.10 ms per step for it, 3.30 ms in total;" in said
    assert "Outside of steps, the other waited 60.0 ms for rank 1: 66.7 % of the time" in said
    assert "the others waited 60.0 ms each for rank 1" in _text([8, 8, 8], {}, [
        *rows, *_reduces({}, [2]), Collective(2, (200 * MS, 270 * MS)),
    ])  # fmt: skip
    rows = _reduces({3: 300, 4: 290}, range(5))
    rows += [Collective(rank, ((200 + 60 * (rank == 3)) * MS, 270 * MS)) for rank in range(5)]
    assert "the others waited 10.0 ms for one of them" in _text([8, 8, 8, 9, 9], {}, rows)


def test_waits_for_a_rank_without_steps_are_per_step_of_the_others() -> None:
    """A capture may lack the ranges that mark steps in the others."""
    found = compare_ranks(gathered(_reduces({1: 300}, [0, 1])))
    ranks = tuple(replace(each, steps=3 - 3 * each.rank) for each in found.ranks)
    found = judge_waits(replace(found, ranks=ranks))
    (row,) = (line for line in report_lines(found, 16) if line.startswith("rank 1"))
    assert row.split()[4:7] == ["3.30", "1.10", "1.10"]


def test_without_steps_no_wait_is_per_step() -> None:
    found = compare_ranks(gathered(_reduces({1: 300}, [0, 1])))
    ranks = tuple(replace(each, steps=0) for each in found.ranks)
    found = judge_waits(replace(found, ranks=ranks))
    (row,) = (line for line in report_lines(found, 16) if line.startswith("rank 1"))
    assert row.split()[5:7] == ["-", "-"]
    assert any("the other waited 3.30 ms for it." in line for line in in_words(found))
    late = [_reduces({rank: 300}, range(4), group, "[0, 1, 2, 3]")
            for rank, group in ((1, "0"), (2, "1"))]  # fmt: skip
    found = compare_ranks(gathered(row for rows in late for row in rows))
    assert any(
        "Ranks 1 and 2 delay the others: the others waited 19.8 ms for one of them" in line
        for line in in_words(found)
    )


def test_a_rank_that_is_waited_for_in_few_collectives_is_the_straggler() -> None:
    """Of 22 collectives a step's first is the one in which the others wait."""
    ready = _reduces({}, range(3), "1")
    said = _text(
        [5, 9, 5],
        {},
        [
            *_reduces({1: 1500}, range(3)),
            *ready,
            *_reduces({}, range(3), "2"),
            *_reduces({}, range(3), "3"),
        ],
    )
    assert "Rank 1 is the straggler: it arrived last at 11 of 44 collectives" in said


def _three_of_four(late_us: dict[int, int]) -> list[Collective]:
    return [
        *_reduces(late_us, (0, 1, 3), "0", "[0, 1, 2, 3]"),
        *_reduces({}, (0, 1), "1", "[0, 1]"),
        *_reduces({}, (3,), "2", "[2, 3]"),
    ]


def test_a_rank_without_capture_is_named_and_its_partner_not_blamed() -> None:
    """The partner waited for it in their pair, and so was late for the others."""
    found = compare_ranks(gathered(_three_of_four({3: 300})))
    assert (found.missing_ranks, found.waiting_for_missing_ranks) == ((2,), (3,))
    said = "\n".join([*report_lines(found, 16)])
    assert " rank 2: no capture" in said
    assert " 1 of 3 ranks, 1 of 2 ranks\n" in said  # the largest groups first
    assert "collectives of rank 3 in 2 unmatched: no capture of rank 2" in said
    assert "is the straggler" not in said
    assert "Rank 3 may come last only because of waiting for rank 2" in said


def test_no_line_of_the_head_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = [*ranks_head.head(compare_ranks(gathered(_three_of_four({3: 300}))))]
    assert max(map(len, map(click.unstyle, lines))) <= 60


@pytest.mark.parametrize(("count", "more"), [(4, 0), (6, 2)])
def test_the_first_unmatched_collectives_are_listed(count: int, more: int) -> None:
    alone = tuple(UnmatchedCount(rank, "all", 3, "alone") for rank in range(count))
    lines = [*ranks_head._groups(replace(compare_ranks(gathered([])), unmatched=alone))]
    said = [f"... and {more} more unmatched (--json has all)"] if more else []
    assert lines[:4] == [f"3 collectives of rank {at} in all unmatched: alone" for at in range(4)]
    assert lines[4:] == said


def test_where_nobody_stands_out_all_may_wait_for_the_missing_rank() -> None:
    found = compare_ranks(gathered(_reduces({}, (0, 1, 3), "0", "[0, 1, 2, 3]")))
    assert [*in_words(found)] == [
        "All of these may wait for rank 2, of which there is no capture: name it, too."
    ]


def test_ranks_whose_groups_are_complete_wait_for_no_missing_rank() -> None:
    """As replicas of a server, each of two ranks."""
    pairs = [*_reduces({}, (0, 1), "0", "[0, 1]"), *_reduces({}, (4, 5), "1", "[4, 5]")]
    found = compare_ranks(gathered(pairs))
    assert found.missing_ranks == (2, 3)
    assert [*in_words(found)] == ["No rank, link or layer stands out."]


def test_a_straggler_that_waits_for_no_missing_rank_is_named() -> None:
    """Even if another capture is missing."""
    said = "\n".join(in_words(compare_ranks(gathered(_three_of_four({1: 300})))))
    assert "Rank 1 is the straggler" in said
    assert "may come last" not in said


def test_with_all_ranks_nothing_is_missing() -> None:
    """One rank alone does not imply others."""
    rows = _reduces({1: 300}, (0, 1), "0", "[0, 1]")
    assert compare_ranks(gathered(rows)).missing_ranks == ()
    assert compare_ranks(gathered(_reduces({}, (3,)))).missing_ranks == ()


@pytest.mark.parametrize(("late_us", "listed"), [(2, 1), (4, 2)])
def test_stragglers_that_cost_next_to_nothing_are_not_listed(late_us: int, listed: int) -> None:
    rows = [*_reduces({1: 300}, range(3)), *_reduces({2: late_us}, range(3), "1", "[0, 1, 2]")]
    lines = [*report_lines(compare_ranks(gathered(rows)), 16)]
    assert sum(line.startswith("rank ") for line in lines) == listed
    assert any(line.startswith("  Compare pyprof summary") for line in lines)  # below its finding


def test_shares_of_no_time_or_of_no_pipeline_are_unknown() -> None:
    found = compare_ranks(gathered(_reduces({}, range(3))))
    times = ((8, None), (8, 2), (0, None))
    made = tuple(
        replace(rank, span_ns=span_ns, busy_ns=span_ns, bubble_ns=bubble_ns)
        for rank, (span_ns, bubble_ns) in zip(found.ranks, times, strict=True)
    )
    job = replace(found, ranks=made)
    rows = [_rank(job, one, cost) for one, cost in zip(made, job.stragglers, strict=True)]
    assert [(row[4], row[8]) for row in rows] == [("100.0", "-"), ("100.0", "25.0"), ("-", "-")]
