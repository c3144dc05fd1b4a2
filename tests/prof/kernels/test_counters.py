"""Counters by row: values, sources and Tensor Core use."""

import math

import numpy as np
import orjson
import pytest

from pyprof.prof.kernels.counters import NCU, SAMPLES, Measured, rounded, with_counters
from pyprof.records.records import DictionaryColumn


def _measured(*entries: dict[str, object] | None) -> Measured:
    texts = [orjson.dumps(entry).decode() for entry in entries if entry is not None]
    index = np.cumsum([entry is not None for entry in entries]) - 1
    index[[entry is None for entry in entries]] = -1
    return Measured(DictionaryColumn(index, texts))


def test_values_are_nan_where_nothing_valid_was_measured() -> None:
    """A count is a number of at least 0 that fits a counter."""
    measured = _measured({"dram_bytes": 5}, None, {"dram_bytes": -1}, {"dram_bytes": "7"})
    assert measured.values("dram_bytes").tolist()[0] == 5
    assert np.isnan(measured.values("dram_bytes")[1:]).all()
    with pytest.raises(KeyError):
        measured.values("no_such_counter")


def test_sources_are_told_apart_by_row() -> None:
    measured = _measured({"source": NCU}, None, {"source": SAMPLES})
    assert measured.source.is_in(NCU).tolist() == [True, False, False]
    assert (measured.any, _measured(None).any) == (True, False)


def test_tensor_cores_ran_if_more_instructions_than_pairs_of_halves_explain() -> None:
    """Without instruction counts their activity decides, unless it is too low."""
    measured = _measured(
        {"tensor_insts": 0},
        {"tensor_insts": 100},
        {"tensor_insts": 1, "half_fmas": 32},
        {"tensor_pct": 40.0},
        {"tensor_pct": 0.2},
        None,
    )
    np.testing.assert_array_equal(measured.tensor_cores, [0, 1, 0, 1, math.nan, math.nan])


def test_the_counters_source_is_appended_to_via() -> None:
    via = DictionaryColumn(np.array([0, 0, -1]), ["launch"])
    joined = with_counters(via, _measured({"source": NCU}, None, {"source": SAMPLES}))
    assert [joined.at(row) for row in range(3)] == ["launch, measured", "launch", "sampled"]
    assert with_counters(via, _measured(None, None, None)) is via


def test_rounding_writes_minus_one_for_unknown_values() -> None:
    assert rounded(np.array([1.6, math.nan, math.inf])).tolist() == [2, -1, -1]
