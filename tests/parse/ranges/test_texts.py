"""Predicates on texts, evaluated once for all that differ only in numbers."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import marker
from pyprof.marker import Kind, encode_layer
from pyprof.marker.serving_steps import states_requests
from pyprof.parse.ranges import texts
from pyprof.parse.ranges.texts import map_templates
from pyprof.parse.steps.loop_steps import loop_of
from tests.strategies import TEXT

FORMS = (
    "ProfilerStep#0",
    "step 7",
    "step",
    "train_step_12 of 100",
    "Epoch 3/iter 17",
    "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk9sqsq3sqsk4)",
    "execute_context_1(16)_generation_2(2)",
    "execute_new_2_cached_5",
    "step[DECODE bs=64]",
    "step[MIXED bs=5 c=2 g=3 c_sq=6 c_sk=7 c_sqsq=9 c_sqsk=8 g_sq=3 g_sk=1 g_sqsq=3 g_sqsk=5]",
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]",
    "decode[bs=117/128 tok=117 d=117]",
    "[Executor] _forward_step 7: 1 ctx reqs, 300 ctx tokens, 32 gen reqs",
    "layer:blocks.1.attn",
    "aten::add, seq = 3",
    "aten::mm, seq = 3, op_id = 4, sizes = [[2, 3], []]",
    "AddmmBackward0",
    "autograd::engine::evaluate_function: MmBackward0, seq = 1, op_id = 2",
    "Optimizer.step#Adam.step",
    "{'mod': 'torch', 'op': 'conv2d', 'args': []}",
    "{'traceMarker': ['a.py:1']}",
    "## forward 12 ##",
    "FSDP::all_gather (layers.3)",
    "ncclAllReduce",
    "batch 5 (12)",
    "0",
)

QUESTIONS: tuple[Callable[[str], object], ...] = (marker.classify, loop_of, states_requests)


@pytest.mark.parametrize("question", QUESTIONS)
@given(texts=st.lists(st.sampled_from(FORMS) | TEXT, max_size=8), data=st.data())
def test_answers_are_those_of_each_text(
    question: Callable[[str], object], texts: list[str], data: st.DataObject
) -> None:
    digits = st.text("0123456789", min_size=1, max_size=18)
    others = [re.sub("[0-9]+", lambda _: data.draw(digits), text) for text in texts]
    mixed = data.draw(st.permutations([*texts, *others]))
    assert map_templates(mixed, question) == [question(text) for text in mixed]


def test_texts_that_differ_in_numbers_are_checked_once() -> None:
    asked: list[str] = []

    def question(text: str) -> int:
        asked.append(text)
        return len(asked)

    assert map_templates(["step 1", "b", "step 20", "step", "b"], question) == [1, 2, 1, 3, 2]
    assert asked == ["step 1", "b", "step"]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (encode_layer("net.conv1"), Kind.LAYER, "net.conv1"),
        ("forward", Kind.USER, "forward"),
        ("step 17", Kind.STEP, "step"),
    ],
)
def test_a_range_names_its_layer_or_loop(text: str, kind: Kind, expected: str) -> None:
    assert texts.name(text, kind) == expected


def test_only_a_layer_named_as_a_part_of_the_step_implies_a_direction() -> None:
    """A module of a bidirectional RNN may have `backward` in its name."""
    assert texts.direction_hint("rnn.backward_cell", Kind.LAYER) == ""
    assert texts.direction_hint("backward", Kind.LAYER) == texts.direction_hint(
        "backward", Kind.USER
    )
    assert texts.direction_hint("backward", Kind.LAYER)
