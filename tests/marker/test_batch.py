"""Names of serving steps state their requests."""

import pytest

from pyprof.marker import batch
from pyprof.marker.batch import Batch, Phase, states_requests

MIXED = (
    "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
    "_generation_37(sq37sk34489sqsq37sqsk34489)"
)


def test_sums_of_both_phases_are_read() -> None:
    """Requests, new tokens, cached tokens, squares and products."""
    assert batch.read(MIXED) == Batch(
        Phase(9, 8155, 8430, 7475785, 7671310), Phase(37, 37, 34489, 37, 34489)
    )
    assert batch.read("execute_context_0(0)_generation_2(sq2sk9sqsq2sqsk9)") == Batch(
        Phase(), Phase(2, 2, 9, 2, 9)
    )


@pytest.mark.parametrize(
    ("text", "prefill", "decode"),
    [
        (
            "step[EXTEND bs=2 toks=14721 c_sqsq=108745533 c_sqsk=120007533 c_sk=16221]",
            Phase(2, 14721, 16221, 108745533, 120007533),
            Phase(),
        ),
        (
            "step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]",
            Phase(),
            Phase(64, 128, 131072, 256, 262144),
        ),
        (
            "step[DECODE bs=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]",
            Phase(),
            Phase(64, 64, 131072, 64, 131072),
        ),
        (
            (
                "step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 c_sqsq=20971520 c_sqsk=23019520"
                " g_sq=3 g_sk=6144 g_sqsq=3 g_sqsk=6144]"
            ),
            Phase(2, 6144, 7144, 20971520, 23019520),
            Phase(3, 3, 6144, 3, 6144),
        ),
        (
            (
                "prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3 sqsq=59768832 sqsk=59768832"
                " sk=17408 tbo=1]"
            ),
            Phase(6, 17408, 17408, 59768832, 59768832),
            Phase(),
        ),
        (
            "decode[bs=117/128 tok=117 d=117 sqsq=117 sqsk=239616 sk=239616]",
            Phase(),
            Phase(117, 117, 239616, 117, 239616),
        ),
    ],
)
def test_sums_of_sglang_and_atom(text: str, prefill: Phase, decode: Phase) -> None:
    """A step of one phase states its requests and new tokens once."""
    assert states_requests(text)
    assert batch.read(text) == Batch(prefill, decode)


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
def test_what_states_no_sums_is_nothing(text: str) -> None:
    assert batch.read(text) is None


def test_scores_are_an_area() -> None:
    """Of new tokens the causal triangle, of a decoded token the whole row."""
    found = batch.read("execute_9_context_1(sq6sk8sqsq36sqsk48)_generation_2(sq2sk10sqsq2sqsk10)")
    assert found is not None
    assert (found.queries, found.keys, found.twice_scores) == (8, 18, 2 * 48 - 36 + 2 * 10)
