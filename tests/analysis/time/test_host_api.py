"""API calls by what they do to the host, and when each process was inside them."""

import numpy as np
import pytest

from pyprof.analysis.time import host_api
from pyprof.analysis.time.host_api import SORTS, Calls


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaDeviceSynchronize_v3020", host_api.SYNC),
        ("cudaMemcpyAsync", host_api.COPY),
        ("cudaMallocAsync", host_api.ALLOC),
        ("cuModuleLoadData", host_api.LOAD),
        ("cudaLaunchKernel_v7000", host_api.LAUNCH),
        ("hipMemcpyWithStream", host_api.COPY),
        ("cudaGetDevice", None),
    ],
)
def test_a_call_is_classified_by_its_name(name: str, kind: str | None) -> None:
    assert host_api.sort_of(name) == kind


def test_calls_of_one_process_overlap_on_its_threads_and_count_once() -> None:
    sync, launch = SORTS.index(host_api.SYNC), SORTS.index(host_api.LAUNCH)
    calls = Calls(
        pid=np.array([1, 1, 2]),
        start=np.array([0, 5, 3]),
        end=np.array([10, 20, 4]),
        sort=np.array([sync, sync, launch]),
        complete=True,
    )
    hosts = calls.hosts()
    assert hosts[1].inside[host_api.SYNC].total == hosts[1].anywhere.total == 20
    assert hosts[1].inside[host_api.LAUNCH].total == 0
    assert hosts[2].anywhere.total == 1
