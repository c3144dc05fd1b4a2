"""Facts are discovered, and merge over captures."""

from pathlib import Path

import pytest

from pyprof.analysis.summary.composition import summary
from pyprof.analysis.summary.facts import UNITS, modules
from pyprof.analysis.summary.overview import summarise
from pyprof.inputs.source import load
from pyprof.records.merging import merge_sums
from tests.analysis.captured import capture


@pytest.mark.parametrize("name", modules())
def test_every_fact_describes_itself(name: str) -> None:
    module, file = modules()[name], f"pyprof/analysis/summary/facts/{name}.py"
    assert module.UNIT in UNITS, f"{file}: UNIT is to be one of {UNITS}"
    assert 0 < len(module.LABEL) <= 9, f"{file}: LABEL is to have 1 to 9 characters"
    first = (module.__doc__ or "").partition("\n")[0]
    assert first.endswith("."), f"{file}: the docstring's first line is to be a sentence"


@pytest.mark.slow
def test_a_fact_of_two_captures_is_of_the_kernels_of_both(tmp_path: Path) -> None:
    """The mean of 100, 100, 300 and 50 ns, beside 200, 200, 300 and 50 ns."""
    sums = [
        summarise(load(str(capture(tmp_path / f"{slower}.sqlite", slower=slower))))
        for slower in (1, 2)
    ]
    alone, both = (
        {fact.name: fact.value for fact in summary(each).facts}
        for each in (sums[0], merge_sums(*sums))
    )
    assert alone["mean_kernel"] == 550 / 4
    assert both["mean_kernel"] == (550 + 750) / 8
