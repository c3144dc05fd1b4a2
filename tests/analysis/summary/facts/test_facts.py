"""Facts are found by themselves, and are numbers of all captures."""

from pathlib import Path

from pyprof.analysis.summary.facts import UNITS, modules
from pyprof.analysis.summary.overview import summarise, summary
from pyprof.inputs.source import load
from pyprof.records.merging import merge_sums
from tests.analysis.captured import capture


def test_every_fact_says_what_it_is() -> None:
    for name, module in modules().items():
        assert module.UNIT in UNITS, name
        assert 0 < len(module.LABEL) <= 9, name
        assert (module.__doc__ or "").partition("\n")[0].endswith("."), name


def test_a_fact_of_two_captures_is_of_the_kernels_of_both(tmp_path: Path) -> None:
    """Mean of 100, 100, 300, 50 ns; slower ones of 200, 200, 300 and 50 ns beside them."""
    sums = [
        summarise(load(str(capture(tmp_path / f"{slower}.sqlite", slower=slower))))
        for slower in (1, 2)
    ]
    (alone,) = summary(sums[0]).facts
    (both,) = summary(merge_sums(*sums)).facts
    assert (alone.name, alone.value) == ("mean_kernel", 550 / 4)
    assert both.value == (550 + 750) / 8
