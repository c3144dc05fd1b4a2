"""The mean time of kernels alone."""

from pyprof.analysis.summary.facts.mean_kernel import KernelSums, value


def test_the_mean_is_time_over_count() -> None:
    assert value(KernelSums(kernels=4, time_ns=550)) == 137.5


def test_without_kernels_it_is_unknown() -> None:
    assert value(KernelSums(kernels=0, time_ns=0)) is None
