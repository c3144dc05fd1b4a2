"""Phases of a serving engine's steps, and of their rows."""

from collections.abc import Sequence

import pyarrow as pa

from pyprof.analysis.summary.phases import serving_phases, with_steps
from pyprof.analysis.time.steps import find_steps
from pyprof.answers.summary_answer import ServingPhase
from pyprof.inputs.source import Source
from pyprof.parse import parse
from pyprof.prof import group, step_rows
from pyprof.prof.table import Table
from tests.analysis.captures import US, Api, Range, Work, capture, op, training

TEXTS = (
    "execute_16_context_1(sq16sk16sqsq256sqsk256)_generation_0(sq0sk0sqsq0sqsk0)",
    "step[DECODE bs=3]",
    "step[DECODE]",
    "step[DECODE bs=5]",
)

PAUSE = [
    Api("cudaProfilerStop", (91 * US, 92 * US)), Api("cudaProfilerStart", (98 * US, 99 * US)),
]  # fmt: skip


def _serving(*texts: str, api: Sequence[Api] = ()) -> Source:
    """Write a step of 100 us, with one kernel of 50 us, for each text."""
    work = [
        Work(((100 * n + 20) * US, (100 * n + 70) * US), ((100 * n + 10) * US, (100 * n + 12) * US))
        for n in range(len(texts))
    ]
    ranges = [Range(text, (100 * n * US, (100 * n + 90) * US)) for n, text in enumerate(texts)]
    net = capture(work, [*api], ranges=ranges)
    return Source(Table(parse(net)), net)


def _phases(source: Source, steps: tuple[int, int] | None = None) -> tuple[ServingPhase, ...]:
    return serving_phases(find_steps(source.table.records, source.capture), steps)


def _decoding(steps: int, us: int, tokens: int | None) -> ServingPhase:
    return ServingPhase(
        phase="decode", steps=steps, time_ns=us * US, tokens=tokens,
        tokens_per_s=tokens and tokens / us * 1e6, padding_share=None,
    )  # fmt: skip


def test_steps_are_summed_by_serving_phase() -> None:
    """With their tokens, if all state them, and the rate.

    Before a prefill the engine may have had no request: it counts from when the host begins it.
    """
    assert _phases(_serving(TEXTS[0], TEXTS[0])) == (
        ServingPhase(
            phase="prefill", steps=2, time_ns=120 * US, tokens=32, tokens_per_s=32 / 120e-6,
            padding_share=0.0,
        ),
    )  # fmt: skip
    decode = "execute_3_context_0(sq0sk0sqsq0sqsk0)_generation_3(sq3sk9sqsq3sqsk9)"
    both = _phases(_serving(decode, TEXTS[0], decode))
    assert [(one.phase, one.time_ns) for one in both] == [
        ("decode", 150 * US), ("prefill", 70 * US),
    ]  # fmt: skip
    paused = _serving(TEXTS[0], TEXTS[0], api=PAUSE)
    assert [one.time_ns for one in _phases(paused)] == [100 * US]  # from each window's first row
    of = _serving(*TEXTS[1:])
    assert _phases(of) == (_decoding(3, 250, None),)
    assert _phases(of, (2, 3)) == (_decoding(1, 100, 5),)


def test_padding_of_graphs_is_the_share_of_unrequested_tokens() -> None:
    """Two steps whose graphs compute 256 tokens each, for 192 and for 64."""
    text = "execute_256_context_0(sq0sk0sqsq0sqsk0)_generation_{0}(sq{0}sk9sqsq{0}sqsk9)"
    (total,) = _phases(_serving(text.format(192), text.format(64)))
    assert (total.tokens, total.padding_share) == (256, 0.5)


def test_rows_of_a_serving_step_are_of_its_phase() -> None:
    table = with_steps(_serving(TEXTS[1], TEXTS[3]))
    phases = step_rows.phases(table)
    assert [phases.at(row) for row in range(2)] == ["decode", "decode"]
    assert step_rows.numbers(table).to_pylist() == [0, 1]


PREFILL = "step[EXTEND bs=1 toks=16]"


def _grouped(source: Source, by: str) -> pa.Table:
    return group.group(with_steps(source), by)


def _rows(groups: pa.Table, by: str, *named: str) -> list[tuple[object, ...]]:
    columns, data = group.measured(groups, by, named=named)
    shown = [column.name for column in columns if column.name in (by, *group.PER_STEP)]
    return [tuple(row[name] for name in shown) for row in data.sort_by(by).to_pylist()]


def test_groups_by_step_have_the_tokens_that_its_range_states() -> None:
    """And the rate over the whole step; unknown if a range states none."""
    groups = _grouped(_serving(PREFILL, *TEXTS[1:]), "step")
    # a step lasts from one kernel's end to the next one's: 100 us, the first only its kernel's 50
    assert _rows(groups, "step") == [
        (0, 50_000, 16, 16 / 50e-6),
        (1, 100_000, 3, 3 / 100e-6),
        (2, 100_000, None, None),
        (3, 100_000, 5, 5 / 100e-6),
    ]


def test_groups_by_phase_have_the_tokens_of_all_their_steps() -> None:
    """As in the summary; unknown if one of the steps states none."""
    source = _serving(PREFILL, TEXTS[1], TEXTS[3])
    of_summary = _phases(source)
    rows = _rows(_grouped(source, "phase"), "phase")
    assert rows == [("decode", 200_000, 8, 8 / 200e-6), ("prefill", 50_000, 16, 16 / 50e-6)]
    assert rows == sorted(
        (one.phase, one.time_ns, one.tokens, one.tokens_per_s) for one in of_summary
    )
    decode, _ = _rows(_grouped(_serving(PREFILL, *TEXTS[1:]), "phase"), "phase")
    assert decode == ("decode", 300_000, None, None)


def test_tokens_of_processes_are_those_of_the_step_where_all_state_the_same() -> None:
    """Ranks of tensor parallelism work on the same tokens, until the slowest is done."""
    alike = group.merge_groups(*(_grouped(_serving(PREFILL, TEXTS[1]), "step") for _ in range(2)))
    assert _rows(alike, "step") == [(0, 50_000, 16, 16 / 50e-6), (1, 100_000, 3, 3 / 100e-6)]
    unlike = group.merge_groups(
        _grouped(_serving(TEXTS[1]), "step"), _grouped(_serving(TEXTS[3]), "step")
    )
    assert _rows(unlike, "step", "tokens") == [(0, 50_000, None)]


def test_groups_have_no_columns_of_tokens_without_a_serving_engine() -> None:
    """Unless they are requested by name; steps have a length in any program."""
    source = Source(Table(parse(net := training(2))), net)
    took = find_steps(source.table.records, net).duration_ns.tolist()
    assert _rows(_grouped(source, "step"), "step") == [*enumerate(took)]
    assert {len(row) for row in _rows(_grouped(source, "phase"), "phase")} == {1}
    for by in group.BY_STEPS:
        named = _rows(_grouped(source, by), by, *group.PER_STEP)
        assert {row[-2:] for row in named} == {(None, None)}


def test_rows_of_training_are_of_their_direction() -> None:
    """As without steps, and outside of all."""
    net = training(2)
    table = Table(parse(net))
    assert step_rows.numbers(table).null_count == table.records.rows
    for _ in range(2):
        phases = step_rows.phases(table)
        assert [phases.at(row) for row in range(4)] == ["forward"] * 3 + ["copy"]
        table = with_steps(Source(table, net))
    assert step_rows.numbers(table).to_pylist() == [0] * 4 + [1] * 4


def test_guessed_steps_have_no_phase() -> None:
    work = [Work((10 * n, 10 * n + 5), (10 * n - 5, 10 * n - 3), f"k{n % 3}") for n in range(1, 31)]
    net = capture(work)
    assert find_steps(parse(net), net).guessed
    assert step_rows.numbers(with_steps(Source(Table(parse(net)), net))).null_count == 30


def test_there_are_no_phases_without_a_serving_engine() -> None:
    assert _phases(_serving("step[IDLE]", "step[IDLE]")) == ()
    lone = capture([Work((5, 9), (1, 2))], ranges=[op("mm", (0, 3))])
    for net in (training(3), lone):
        assert _phases(Source(Table(parse(net)), net)) == ()


def test_a_step_with_an_impossible_number_hides_no_other() -> None:
    """Texts that differ only in numbers are decoded together; too long numbers are ignored."""
    impossible = TEXTS[1].replace("3", "3" * 19)
    (total,) = _phases(_serving(impossible, TEXTS[1]))
    assert (total.phase, total.steps, total.tokens) == ("decode", 1, 3)
