"""Rules keep the error that they had on real pairs of captures."""

from pathlib import Path

import pytest

from tests.programs import TOP, python

PAIRS = Path(__file__).resolve().parents[3] / ".." / "shared" / "whatif"


@pytest.mark.slow
@pytest.mark.skipif(not PAIRS.is_dir(), reason="needs the folder of pairs beside the project")
def test_a_fused_decoder_takes_what_was_predicted() -> None:
    """Segment Anything on an A100, decoder compiled: within 6 %, and in the interval."""
    done = python(str(TOP / "benchmarks" / "whatif.py"), str(PAIRS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--fuse pointwise" in done.stdout
