"""Errors of rules on real pairs of captures do not grow."""

from pathlib import Path

import pytest

from tests.programs import TOP, python

PAIRS = Path(__file__).resolve().parents[3] / ".." / "shared" / "whatif"


@pytest.mark.long
@pytest.mark.skipif(not PAIRS.is_dir(), reason="needs the folder of pairs beside the project")
def test_no_rule_got_worse() -> None:
    done = python(str(TOP / "benchmarks" / "whatif.py"), str(PAIRS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`--gpu`" in done.stdout
