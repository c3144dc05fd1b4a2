"""What serving engines write on their steps."""

import pytest

from pyprof.marker import ServingStep, serving_step


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (
            "execute_8192_context_9(sq8155sk8430sqsq1sqsk2)_generation_37(sq37sk34489sqsq37sqsk3)",
            ServingStep("mixed", 8192, 8192, 8192),
        ),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_30(sq30sk32785sqsq32sqsk32785)",
            ServingStep("decode", 30, 32, 32),
        ),
        ("execute_context_1(888)_generation_0(0)", ServingStep("prefill", 888, None, 888)),
        ("execute_context_0(0)_generation_7(7)", ServingStep("decode", 7, None, 7)),
        ("execute_context_0(0)_generation_0(0)", ServingStep("", 0)),
        ("execute_context_1()_generation_2()", ServingStep("mixed", None)),
        ("execute_new_2_cached_0", ServingStep("prefill")),
        ("execute_new_2_cached_3", ServingStep("mixed")),
        ("execute_new_0_cached_3", ServingStep("")),  # a prefill in parts, or a decode
        ("step[DECODE bs=32]", ServingStep("decode", 32, None, 32)),
        ("step[EXTEND bs=15 toks=15360]", ServingStep("prefill", 15360)),
        ("step[MIXED bs=3 toks=20]", ServingStep("mixed", 20, None, 3)),
        ("step[IDLE]", ServingStep("")),
        ("step[MIXED bs=2]", ServingStep("mixed", None, None, 2)),
        (
            "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]",
            ServingStep("decode", 128, None, 64),
        ),
        (
            (
                "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1"
                " g_sqsk=12]"
            ),
            ServingStep("mixed", 6, None, 2),
        ),
        (
            "step[EXTEND bs=2 toks=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]",
            ServingStep("prefill", 14721),
        ),
        ("prefill[bs=2 tok=14721 ctx=[7803, 6918]]", ServingStep("prefill", 14721)),
        (
            "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=1 sqsk=1 sk=17408]",
            ServingStep("prefill", 17408),
        ),
        ("decode[bs=64 tok=64 d=64]", ServingStep("decode", 64, None, 64)),
        ("decode[bs=117/128 tok=117 d=117]", ServingStep("decode", 117, 128, 128)),
        ("decode[bs=32/64 tok=128 d=32 spec=3]", ServingStep("decode", 128, 256, 64)),
        ("decode[bs=128 tok=384 p=2 d=126 tbo=1]", ServingStep("mixed", 384, None, 128)),
        ("eager_decode[bs=3 tok=3 ctx=[1, 2, 3]]", ServingStep("decode", 3)),
        ("decode[bs=4]", ServingStep("decode", None, None, 4)),
        ("execute_context_1024_generation_64", ServingStep("mixed", None)),
        ("decode[3]", None),
        (
            "[Executor] _forward_step 7: 1 ctx reqs, 300 ctx tokens, 32 gen reqs",
            ServingStep("mixed", 332),
        ),
        ("[Executor] _forward_step 9: 0 ctx reqs, 32 gen reqs", ServingStep("decode", 32)),
        ("[Executor] _forward_step: 2 ctx reqs, 0 gen reqs", ServingStep("prefill", None)),
        ("[Executor] _forward_step", None),
        ("draft[1/3 bs=4]", None),
        (
            "execute_context_9(sq100sk100sqsq1sqsk1)_generation_3(sq3sk9sqsq3sqsk9)",
            ServingStep("mixed", 103, None, 103),
        ),
        ("execute_0_context_0(0)_generation_0(0)", ServingStep("", 0, 0)),
        ("step[DECODE bs=0]", ServingStep("decode", 0)),
        (f"step[DECODE bs={'9' * 400}]", None),
        (f"step[DECODE bs={'9' * 5000}]", None),  # more digits than int() takes
        (f"execute_{'9' * 5000}_context_0(0)_generation_1(1)", None),
        ("step 3", None),
        ("execute_model", None),
        ("", None),
    ],
)
def test_phase_tokens_and_batch(text: str, step: ServingStep | None) -> None:
    """Tokens without padding, and what a graph is chosen by; None where the text does not say."""
    assert serving_step(text) == step
