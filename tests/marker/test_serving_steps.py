"""What serving engines write in the ranges of their steps."""

import pytest

from pyprof.marker import ServingStep, serving_step, serving_steps
from pyprof.marker.serving_steps import Batch, Phase, states_requests


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("execute_8192_context_9(sq8155sk8430sqsq1sqsk2)_generation_37(sq37sk34489sqsq37sqsk3)",
         ServingStep("mixed", 8192, 8192, 8192)),
        ("execute_context_1(888)_generation_0(0)", ServingStep("prefill", 888, None, 888)),
        ("execute_context_0(0)_generation_7(7)", ServingStep("decode", 7, None, 7)),
        ("execute_context_0(0)_generation_0(0)", ServingStep("", 0)),
        ("execute_new_2_cached_0", ServingStep("prefill")),
        ("execute_new_2_cached_3", ServingStep("mixed")),
        ("execute_new_0_cached_3", ServingStep("")),  # a prefill in parts, or a decode
        ("step[DECODE bs=32]", ServingStep("decode", 32, None, 32)),
        ("step[IDLE]", ServingStep("")),
        (("step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1"
          " g_sqsk=12]"), ServingStep("mixed", 6, None, 2)),
        ("step[EXTEND bs=2 toks=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]",
         ServingStep("prefill", 14721)),
        ("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=1 sqsk=1 sk=17408]",
         ServingStep("prefill", 17408)),
        ("decode[bs=32/64 tok=128 d=32 spec=3]", ServingStep("decode", 128, 256, 64)),
        ("decode[bs=4]", ServingStep("decode", None, None, 4)),
        ("execute_context_1024_generation_64", ServingStep("mixed", None)),
        ("decode[3]", None),
        ("[Executor] _forward_step 7: 1 ctx reqs, 300 ctx tokens, 32 gen reqs",
         ServingStep("mixed", 332)),
        ("[Executor] _forward_step 9: 0 ctx reqs, 32 gen reqs", ServingStep("decode", 32)),
        ("[Executor] _forward_step: 2 ctx reqs, 0 gen reqs", ServingStep("prefill", None)),
        ("[Executor] _forward_step", None),
        ("draft[1/3 bs=4]", None),
        ("execute_0_context_0(0)_generation_0(0)", ServingStep("", 0, 0)),
        ("step[DECODE bs=0]", ServingStep("decode", 0)),
        (f"step[DECODE bs={'9' * 400}]", None),
        (f"step[DECODE bs={'9' * 5000}]", None),  # more digits than int() takes
        (f"execute_{'9' * 5000}_context_0(0)_generation_1(1)", None),
        ("step 3", None),
        ("execute_model", None),
        ("", None),
    ],
)  # fmt: skip
def test_phase_tokens_and_batch(text: str, step: ServingStep | None) -> None:
    assert serving_step(text) == step


MIXED = (
    "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
    "_generation_37(sq37sk34489sqsq37sqsk34489)"
)


@pytest.mark.parametrize(
    ("text", "prefill", "decode"),
    [
        (MIXED, Phase(9, 8155, 8430, 7475785, 7671310), Phase(37, 37, 34489, 37, 34489)),
        ("execute_context_0(0)_generation_2(sq2sk9sqsq2sqsk9)", Phase(), Phase(2, 2, 9, 2, 9)),
        ("step[EXTEND bs=2 toks=14721 c_sqsq=108745533 c_sqsk=120007533 c_sk=16221]",
         Phase(2, 14721, 16221, 108745533, 120007533), Phase()),
        ("step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]",
         Phase(), Phase(64, 128, 131072, 256, 262144)),
        ("step[DECODE bs=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]",
         Phase(), Phase(64, 64, 131072, 64, 131072)),
        (("step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 c_sqsq=20971520 c_sqsk=23019520 g_sq=3"
          " g_sk=6144 g_sqsq=3 g_sqsk=6144]"),
         Phase(2, 6144, 7144, 20971520, 23019520), Phase(3, 3, 6144, 3, 6144)),
        (("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=59768832 sqsk=59768832 sk=17408"
          " tbo=1]"), Phase(6, 17408, 17408, 59768832, 59768832), Phase()),
        ("decode[bs=117/128 tok=117 d=117 sqsq=117 sqsk=239616 sk=239616]",
         Phase(), Phase(117, 117, 239616, 117, 239616)),
    ],
)  # fmt: skip
def test_sums_of_sglang_and_atom(text: str, prefill: Phase, decode: Phase) -> None:
    """A step of one phase states its requests and new tokens once."""
    assert states_requests(text)
    assert serving_steps.read_requests(text) == Batch(prefill, decode)


@pytest.mark.parametrize(
    "text",
    [
        "execute_context_1(888)_generation_0(0)",  # how many keys, an old version does not say
        "step[DECODE bs=32]",
        "step[DECODE g_sqsq=64 g_sqsk=131072 g_sk=131072]",
        "step[MIXED bs=2 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40]",
        "decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048]",  # both phases in one
        "decode[bs=64 tok=64 d=64]",
        "prefill[tok=64 sqsk=4]",
        f"{MIXED} again",
        MIXED.replace("sk8430", ""),
        MIXED.replace("8155", "9" * 30),
        "",
    ],
)
def test_a_text_without_sums_is_none(text: str) -> None:
    assert serving_steps.read_requests(text) is None


def test_scores_are_an_area() -> None:
    """The causal triangle of new tokens, the whole row of a decoded one."""
    found = serving_steps.read_requests(
        "execute_9_context_1(sq6sk8sqsq36sqsk48)_generation_2(sq2sk10sqsq2sqsk10)"
    )
    assert found is not None
    assert (found.queries, found.keys, found.twice_scores) == (8, 18, 2 * 48 - 36 + 2 * 10)


def test_the_graph_for_a_batch() -> None:
    captured = (32, 1, 8)
    assert [serving_steps.chosen(size, captured) for size in (1, 2, 8, 33)] == [1, 8, 8, None]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("capture_8192_PIECEWISE", (8192, "PIECEWISE")),
        ("capture_32_DECODE", (32, "DECODE")),
        ("capture_the_flag", None),
        ("recapture_32_DECODE", None),
    ],
)
def test_the_range_around_a_capture(text: str, told: tuple[int, str] | None) -> None:
    assert serving_steps.captured(text) == told
