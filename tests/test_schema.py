"""Columns at the boundaries: built by name, checked, never silently wrong."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from pyprof import schema
from pyprof.schema import Capture


def _empty() -> Capture:
    tables = {name: columns.empty_table() for name, columns in schema.TABLES.items()}
    return Capture("nsys", None, **tables)


def test_the_19_old_keys_keep_names_and_order() -> None:
    names = (
        "kShortName kDuration layer trace reprMarkers marker seqMarker seqId subSeqId altSeqId dir "
        "mod op tid device stream grid block kLongName"
    )
    assert schema.OLD_RECORD.names == names.split()
    assert schema.RECORD.names[:19] == names.split()
    assert len(set(schema.RECORD.names)) == len(schema.RECORD.names)


def test_a_table_is_built_from_some_of_its_columns() -> None:
    found = schema.table(schema.CALLS, {"start": [1, 2], "name": ["a", "a"]})
    assert found.schema == schema.CALLS
    assert found.column("corr").null_count == 2
    assert found.column("name").to_pylist() == ["a", "a"]
    assert schema.table(schema.CALLS, {}, rows=3).num_rows == 3


def test_a_column_that_the_schema_does_not_have_is_an_error() -> None:
    """A reader's typing error is noticed at once."""
    with pytest.raises(KeyError, match="strat"):
        schema.table(schema.CALLS, {"strat": [1]})


def test_values_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid):
        schema.table(schema.ACTIVITIES, {"device": pa.array([2**31])})
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        schema.table(schema.ACTIVITIES, {"device": [2**31]})


@pytest.mark.parametrize("name", schema.TABLES)
def test_check_finds_a_table_of_other_columns(name: str) -> None:
    schema.check(_empty())
    columns = schema.TABLES[name]
    for wrong in (
        columns.remove(0),
        columns.set(0, pa.field("other", columns.field(0).type)),
        columns.set(0, columns.field(0).with_type(pa.float64())),
    ):
        with pytest.raises(TypeError, match=name):
            schema.check(dataclasses.replace(_empty(), **{name: wrong.empty_table()}))


def test_columns_without_values_share_their_memory() -> None:
    """Most captures fill few columns."""
    rows, before = 1 << 16, pa.total_allocated_bytes()
    table = schema.table(schema.ACTIVITIES, {"kind": np.zeros(rows, np.int8)})
    table.validate(full=True)
    assert all(column.null_count == rows for column in table.columns[1:])
    assert pa.total_allocated_bytes() - before < 12 * rows
