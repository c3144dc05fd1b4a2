"""A tool's table of strings, each of which other tables refer to by its id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.marker import numbered
from pyprof.readers._sqlite import Numbered, numbers

if TYPE_CHECKING:
    from pyprof.arrays import Ints
    from pyprof.readers._sqlite import Database


@dataclass(frozen=True, slots=True)
class Strings:
    """All strings of a capture: names are spelt out when asked for, the texts of ranges never."""

    texts: pa.Table
    """The columns of `marker.numbered`; in the last row the empty text."""
    _ids: Ints
    """Rising, each once."""
    _row: Ints
    """Of each of the ids."""

    def rows(self, ids: Ints) -> Ints:
        """Give the row of `texts` of each id; the last for an id that is unknown."""
        unknown = self.texts.num_rows - 1
        if not len(self._ids):
            return np.full(len(ids), unknown)
        place = ids - self._ids[0]  # nearly always they count up, without gaps
        if self._ids[-1] - self._ids[0] != len(self._ids) - 1:
            place = np.searchsorted(self._ids, ids)
        place = np.clip(place, 0, len(self._ids) - 1)
        return np.asarray(np.where(self._ids[place] == ids, self._row[place], unknown))

    def starting(self, prefix: str) -> Ints:
        """Give the ids of the strings that begin so."""
        text = self.texts.column("text").combine_chunks()
        ours = pc.fill_null(pc.starts_with(text.dictionary, prefix), fill_value=False)
        return np.asarray(self._ids[np.append(ours, [False])[text.indices][self._row]])

    def names(self, ids: Ints, missing: str) -> pa.DictionaryArray:
        """Look up names by ids, as a dictionary column; `missing` for an id that is unknown."""
        row = self.rows(ids)
        used = np.flatnonzero(np.bincount(row, minlength=self.texts.num_rows))
        place = np.zeros(self.texts.num_rows, np.int32)
        place[used] = np.arange(len(used))
        names = numbered.spell(numbered.of(self.texts.take(pa.array(used)))).to_pylist()
        if len(used) and used[-1] == self.texts.num_rows - 1:
            names[-1] = missing
        return pa.DictionaryArray.from_arrays(pa.array(place[row]), pa.array(names, pa.string()))


def read(db: Database, table: str, key: str, value: str) -> Strings:
    """Read a table of strings; one that does not exist holds none."""
    found = db.read(table, {key: int, value: Numbered})
    keys = numbers(found.column(key), -1)
    valid = np.flatnonzero(keys >= 0)[::-1]  # of several with one id the last counts
    ids, place = np.unique(keys[valid], return_index=True)
    nothing = pa.RecordBatch.from_struct_array(numbered.split(pa.array([""])))
    texts = pa.concat_tables([found.drop_columns([key]), pa.Table.from_batches([nothing])])
    return Strings(texts.unify_dictionaries().combine_chunks(), ids, valid[place])
