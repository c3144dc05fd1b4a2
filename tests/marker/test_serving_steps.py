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
