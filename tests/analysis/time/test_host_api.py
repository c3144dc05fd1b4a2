"""API calls by their effect on the host, and when each process was inside them."""

import numpy as np
import pytest

from pyprof.analysis.time import host_api
from pyprof.analysis.time.host_api import CALL_KINDS, Calls
from pyprof.analysis.time.intervals import union
from tests.analysis.captures import Api, Work, capture, records


@pytest.mark.parametrize(("name", "kind"), [
    ("cudaDeviceSynchronize_v3020", host_api.SYNC),
    ("cudaMemcpyAsync", host_api.COPY),
    ("cudaMallocAsync", host_api.ALLOC),
    ("cuModuleLoadData", host_api.LOAD),
    ("cudaLaunchKernel_v7000", host_api.LAUNCH),
    ("hipMemcpyWithStream", host_api.COPY),
    ("cudaGetDevice", None),
])  # fmt: skip
def test_a_call_is_classified_by_its_name(name: str, kind: str | None) -> None:
    assert host_api.call_kind(name) == kind


def test_calls_of_one_process_overlap_on_its_threads_and_count_once() -> None:
    sync, launch = CALL_KINDS.index(host_api.SYNC), CALL_KINDS.index(host_api.LAUNCH)
    calls = Calls(
        pid=np.array([1, 1, 2]),
        start=np.array([0, 5, 3]),
        end=np.array([10, 20, 4]),
        kind_of_call=np.array([sync, sync, launch]),
        complete=True,
    )
    hosts = calls.hosts()
    assert hosts[1][host_api.SYNC].total == union(hosts[1].values()).total == 20
    assert hosts[1][host_api.LAUNCH].total == 0
    assert union(hosts[2].values()).total == 1


def test_each_process_has_its_calls() -> None:
    """All at once; a process without known calls is skipped."""
    work = [Work((100 * n + 50, 100 * n + 60), (100 * n, 100 * n + 7)) for n in (1, 2)]
    found = host_api.calls(records(capture(work)), None).hosts()
    assert {pid: union(host.values()).start.tolist() for pid, host in found.items()} == {
        1: [100, 200]
    }
    assert union(host_api.SILENT.values()).total == 0


@pytest.mark.parametrize("name", ["", "unknown call", "RUNTIME call 9999"])
def test_calls_without_names_do_not_tell_whether_the_host_waited(name: str) -> None:
    work, api = [Work((150, 160), (100, 107), api=name)], [Api(name, (0, 90))]
    assert host_api.calls(
        records(capture(work)), capture(work, [Api("cuInit", (0, 9))] * 2)
    ).complete
    assert not host_api.calls(records(capture(work)), capture(work, api)).complete
