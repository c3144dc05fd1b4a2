"""Which changes are predicted, and for what they are refused."""

import pytest

from pyprof.analysis.whatif import predictions
from pyprof.prof.table import Override, Table
from tests.analysis.captures import capture, table
from tests.analysis.whatif.test_pointwise import chain


@pytest.mark.parametrize(("gpu", "count"), [("NVIDIA A100-SXM4-40GB", 1), ("MI300X", 0)])
def test_other_vendors_are_refused(gpu: str, count: int) -> None:
    """No pair of theirs has shown that a rule holds."""
    work, ranges = chain(3)
    records = table(capture(work, (), ranges)).source
    predicted, refused = predictions(Table(records, Override(gpu=gpu)), ["--fuse pointwise"])
    assert (len(predicted), len(refused)) == (count, 1 - count)
