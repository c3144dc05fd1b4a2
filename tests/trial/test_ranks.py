"""Ranks of one job that run the same trial."""

from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from pyprof.errors import PyprofError
from pyprof.trial.ranks import Ranks, merge_results
from pyprof.trial.run_files import RunResult


def test_a_job_takes_as_long_as_its_slowest_rank_and_fails_with_any() -> None:
    a = RunResult(step_ns=[1, 5], compiling=[False, True], losses=[1.0], peak_memory_bytes=7)
    b = RunResult(step_ns=[2, 4], compiling=[False, False], losses=[9.0], peak_memory_bytes=8,
                  code=1, error="no", refused={"bf16": "already"}, notes=["x"])  # fmt: skip
    assert merge_results([a, b]) == replace(
        b, step_ns=[2, 5], compiling=[False, True], losses=[1.0]
    )


def test_ranks_agree_on_a_port_and_on_the_result(tmp_path: Path) -> None:
    ports, results = {}, {}

    def take_part(rank: int) -> None:
        ranks = Ranks(rank, 2, "job")
        ports[rank] = ranks.environment(tmp_path, 1)
        results[rank] = ranks.gather(tmp_path, 1, RunResult(step_ns=[rank + 1.0]))

    threads = [Thread(target=take_part, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ports[0] == ports[1]
    assert ports[0]["TORCHELASTIC_USE_AGENT_STORE"] == "False"
    assert results[0] == results[1]
    assert results[0].step_ns == [2.0]


def test_one_process_has_files_and_variables_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    ranks = Ranks.here()
    assert (ranks.first, ranks.stem(3), ranks.environment(tmp_path, 3)) == (True, "run-003", {})


def test_ranks_on_several_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PyprofError, match="needs all ranks on one machine"):
        Ranks.here()
