"""Tests of pyprof.analysis.ranks, and a comparison of captures in this process."""

from pathlib import Path

from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.analysis.ranks.rank_tables import measure_ranks
from pyprof.answers.ranks_answer import Ranks
from pyprof.inputs.executor import InProcess
from pyprof.inputs.ranks import ranked_captures
from pyprof.records.merging import merge_sums


def compare(*paths: Path) -> Ranks:
    executor = InProcess()
    captures = ranked_captures([str(path) for path in paths], executor)
    return compare_ranks(executor.reduce(merge_sums, executor.map(measure_ranks, captures, "")))
