"""Row lookups by any ids, and tables by name in any schema."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import MISSING
from pyprof.readers.rocpd.recording import Processes, Rows, recordings, suffixes
from pyprof.readers.sqlite.tables import Database
from tests.builders import Work, rocpd_db
from tests.damage import sql

IDS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.one_of(st.integers(-1, 9), IDS)), st.lists(st.one_of(st.integers(-1, 9), IDS)))
def test_row_lookups_equal_those_of_a_dictionary(ids: list[int], wanted: list[int]) -> None:
    truth = {number: row for row, number in enumerate(ids) if number != MISSING}
    rows = Rows(np.array(ids, np.int64)).rows(np.array(wanted, np.int64))
    assert rows.tolist() == [truth.get(number, MISSING) for number in wanted]


def test_suffixes_are_found_from_tables_of_gpu_work() -> None:
    tables = {"rocpd_kernel_dispatch_00a1_b2", "rocpd_memory_copy", "_rocpd_kernel_dispatch"}
    assert suffixes(frozenset(tables | {"rocpd_string_77", "rocpd_kernel_dispatch_x"})) == [
        "",
        "_00a1_b2",
    ]
    assert suffixes(frozenset({"rocpd_op", "rocpd_api", "rocpd_string"})) == []


def test_a_process_id_in_use_becomes_another(tmp_path: Path) -> None:
    path = rocpd_db(tmp_path / "net.db", [Work(pid=23), Work(pid=24)])
    sql(path, "UPDATE rocpd_info_process_00000001_e175_7175_b886_1df113061c37 SET pid = 23")
    processes = Processes()
    numbers = [
        processes.by_id(number, recording)(np.array([23, 24, 99])).tolist()
        for number, recording in enumerate(recordings(Database(path)))
    ]
    assert numbers == [[23, MISSING, MISSING], [MISSING, 10_000_023, MISSING]]
    assert ["(23)" in text for text in processes.warnings()] == [True]
