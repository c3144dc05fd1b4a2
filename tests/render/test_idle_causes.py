"""Every cause of idle time is explained."""

from pyprof.analysis.time import idle
from pyprof.render.idle_causes import CAUSES, CPU_CAUSES, MEANINGS


def test_each_cause_that_is_found_is_explained() -> None:
    assert set(idle.CAUSES) <= set(CAUSES)


def test_a_cause_of_both_gpu_and_cpu_means_the_gpus() -> None:
    assert set(MEANINGS) == {*CAUSES, *CPU_CAUSES}
    assert all(MEANINGS[name] == text for name, text in CAUSES.items())
