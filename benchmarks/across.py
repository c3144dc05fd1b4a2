"""What the comparison of very many ranks takes, once their captures are measured.

    python benchmarks/across.py [--ranks 4096] [--steps 60] [--layers 96] [--unnamed]

Facts are generated as `pyprof ranks` keeps them of each rank: a rank trains in a pair, a host of
eight and the whole world, with 30 collectives a step. They are merged and compared in one process;
printed are the processor time and the memory of each, and how much of the outcome travels.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import sys
import time

import numpy as np

from pyprof.analysis.ranks import findings, tables
from pyprof.answers.ranks_answer import RankUse
from pyprof.inputs.executor import tree
from pyprof.records.merging import merge_sums

_GROUPS = ((2, 24), (8, 4), (None, 2))  # ranks of each, None: all; collectives of a step
_EVERY_NS, _MOVES_NS = 1_000_000, 300_000


def of_rank(rank: int, given: argparse.Namespace, draws: np.random.Generator) -> tables.RankTables:
    """Make the facts of a rank."""
    sizes = [size or given.ranks for size, _ in _GROUPS]
    each = [place for place, (_, calls) in enumerate(_GROUPS) for _ in range(calls)]
    count = len(each) * given.steps
    place = np.tile(each, given.steps)
    ready = np.arange(count) * _EVERY_NS + (rank // 8) * 1_000_003
    for number, size in enumerate(sizes):  # ranks of a group arrive at random times
        group = np.random.default_rng((number, rank // size))
        ready[place == number] += group.integers(0, 200_000, int((place == number).sum()))
    start = ready + draws.integers(0, 50_000, count)
    end = ready + _MOVES_NS + draws.integers(0, 3_000, count)
    duration_ns = 30 * _EVERY_NS + draws.integers(0, 1000, given.steps)
    own_ns = duration_ns - draws.integers(0, _EVERY_NS, given.steps)
    gpu = RankUse(
        rank=rank, device=rank % 8, gpu="GPU", source=f"net.rank{rank}.sqlite", rows=50_000,
        span_ns=10**9, busy_ns=10**9, idle_ns=10**9, compute_ns=10**9, communication_ns=10**9,
        exposed_ns=10**9, bubble_ns=10**9, copy_ns=10**9, step_ns=float(np.median(duration_ns)),
        steps=given.steps,
    )  # fmt: skip
    whole = tables.Rank(
        number=rank, clock=f"host {rank}", origin='ranges "step N"',
        own_ns=float(np.median(own_ns)), own_low_ns=float(np.quantile(own_ns, 0.25)), gpus=(gpu,),
    )  # fmt: skip
    return tables.RankTables(
        ranks=(whole,),
        layers=tables.table(
            tables.LAYERS, rank, given.layers,
            layer=[f"model.blocks.{layer}" for layer in range(given.layers)],
            gpu_ns=draws.integers(10**8, 2 * 10**8, given.layers),
        ),
        signatures=tables.table(
            tables.SIGNATURES, rank, len(sizes), stream=sizes, size=sizes,
            kind=["all_reduce"] * len(sizes), algorithm=["RING"] * len(sizes),
            bytes=[size << 16 for size in sizes],
            **({} if given.unnamed else {"group": [f"{one}.{rank // one}" for one in sizes]}),
        ),
        collectives=tables.table(
            tables.COLLECTIVES, rank, count, start_ns=start, end_ns=end,
            step=np.repeat(np.arange(given.steps), len(each)), signature=place,
        ),
    )  # fmt: skip


def peak_gb() -> float:
    """Return the largest resident size so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--layers", type=int, default=96)
    parser.add_argument("--unnamed", action="store_true", help="no capture names process groups")
    given = parser.parse_args()
    draws = np.random.default_rng(1)
    each = [of_rank(rank, given, draws) for rank in range(given.ranks)]
    size = len(pickle.dumps(each[0]))
    print(f"{given.ranks} ranks: {size / 1e3:,.0f} kB of facts each", f"{peak_gb():.2f} GB")
    begun = time.process_time()
    merged = tree(merge_sums, each)
    del each
    print(f"merged    {time.process_time() - begun:6.2f} s  {peak_gb():.2f} GB")
    begun = time.process_time()
    found = findings.compare_ranks(merged)
    print(f"compared  {time.process_time() - begun:6.2f} s  {peak_gb():.2f} GB")
    sys.setrecursionlimit(10_000)
    print(f"outcome   {len(pickle.dumps(found)) / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()
