"""Parallel work: on another thread, or in the caller if there is one core."""

import os
import threading
from typing import Any

import pytest

from pyprof.process import threads
from tests.programs import python

ALONE = """
import threading
import pyarrow
from pyprof.process import threads
threads.limit_cores(1)
with threads.thread_pool() as beside:
    thread = beside.submit(threading.get_ident).result()
print(thread == threading.get_ident(), pyarrow.cpu_count())
"""


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_alone", [True])


def test_several_cores_have_several_threads() -> None:
    with threads.thread_pool(1) as beside:
        assert beside.submit(threading.get_ident).result() != threading.get_ident()


def test_one_core_has_one_thread() -> None:
    assert python("-c", ALONE).stdout.split() == ["True", "1"]


@pytest.mark.usefixtures("alone")
def test_results_are_those_of_threads() -> None:
    with threads.thread_pool(1) as beside:
        assert list(beside.map(divmod, (7, 9), (4, 5))) == [(1, 3), (1, 4)]
        assert beside.submit(int, "11", base=2).result() == 3
        failed = beside.submit(divmod, 1, 0)
        with pytest.raises(ZeroDivisionError):
            failed.result()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_a_signal_during_the_work_is_raised_at_once(end: type[BaseException]) -> None:
    """The result may never be requested."""

    def interrupted() -> Any:  # noqa: ANN401 - never comes to that
        raise end

    with threads.thread_pool(1) as beside, pytest.raises(end):
        beside.submit(interrupted)


def test_only_cores_of_this_process_are_counted() -> None:
    assert 1 <= threads.available() <= (os.cpu_count() or 1)
