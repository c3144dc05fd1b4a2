"""Samples and counters of a row, merged."""

import json

import numpy as np
import pytest

from pyprof.parse.counters.counters_json import join_counters
from pyprof.records.records import DictionaryColumn


def _encoded(*texts: str | None) -> DictionaryColumn:
    values = [text for text in texts if text is not None]
    index = np.array([values.index(text) if text is not None else -1 for text in texts])
    return DictionaryColumn(index, values)


def _text(**values: object) -> str:
    return json.dumps(values)


@pytest.mark.parametrize(
    ("sampled", "counted", "expected"),
    [
        (None, None, None),
        ({"power_w": 5}, None, {"power_w": 5}),
        (None, {"dram_bytes": 7}, {"dram_bytes": 7}),
        ({"source": "samples", "power_w": 5, "power_w_err": 1}, {"source": "args", "flops": 9},
         {"source": "args", "power_w": 5, "power_w_err": 1, "flops": 9}),
        # a sampled clock is of this run, ncu's is not; of two of ncu's the later counts
        ({"clock_hz": 5, "clock_hz_err": 1}, {"clock_hz": 9}, {"clock_hz": 5, "clock_hz_err": 1}),
        ({"clock_hz": 5}, {"clock_hz": 9}, {"clock_hz": 9}),
        # counted traffic leaves no use for sampled traffic
        ({"dram_pct": 5, "dram_pct_err": 1, "tensor_pct": 3}, {"dram_bytes": 9},
         {"dram_bytes": 9, "tensor_pct": 3}),
    ],
)  # fmt: skip
def test_each_counter_comes_from_its_best_source(
    sampled: dict[str, object] | None,
    counted: dict[str, object] | None,
    expected: dict[str, object] | None,
) -> None:
    """Counts are exact; clock and power of this run are only sampled."""
    texts = [None if one is None else _text(**one) for one in (sampled, counted)]
    both = join_counters(_encoded(texts[0], None), _encoded(texts[1], None))
    values = [None if place < 0 else json.loads(both.values[place]) for place in both.index]
    assert values == [expected, None]


@pytest.mark.parametrize("damaged", ["{", "[]", "7", ""])
def test_a_damaged_text_adds_nothing(damaged: str) -> None:
    counted = _text(dram_bytes=7)
    both = join_counters(_encoded(damaged), _encoded(counted))
    assert json.loads(both.values[both.index[0]]) == {"dram_bytes": 7}
