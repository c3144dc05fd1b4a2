"""Every cause of idle time is explained."""

from pyprof.analysis.time import idle
from pyprof.render.idle_causes import CAUSES, CPU_CAUSES, MEANINGS, meanings


def test_each_cause_that_is_found_is_explained() -> None:
    assert set(idle.CAUSES) <= set(CAUSES)


def test_a_cause_of_both_gpu_and_cpu_means_the_gpus() -> None:
    assert set(MEANINGS) == {*CAUSES, *CPU_CAUSES}
    assert all(MEANINGS[name] == text for name, text in CAUSES.items())


def test_on_cpus_alone_a_cause_has_the_cpus_meaning() -> None:
    assert meanings(["CPU", "CPU"])["host"] == CPU_CAUSES["host"]
    assert meanings(["CPU", "GPU"])["host"] == CAUSES["host"]
