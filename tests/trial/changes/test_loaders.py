"""Options of DataLoaders."""

import multiprocessing
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from pyprof.trial.changes import loaders
from tests.trial.built import run_child, training

LOADER = """
from torch.utils.data import DataLoader, Dataset, IterableDataset
class Numbers({base}):
    def __len__(self): return 4
    def __getitem__(self, i): return i
    def __iter__(self): return iter(range(4))
loader = DataLoader(Numbers(){more})
print(sorted(int(x) for x in loader))
assert loader.num_workers == {workers}
"""


def _script(path: Path, base: str = "Dataset", more: str = "", workers: int = 0) -> Path:
    return training(path, setup=LOADER.format(base=base, more=more, workers=workers))


@pytest.mark.long
def test_workers_load_each_item_once(tmp_path: Path) -> None:
    script = _script(tmp_path / "a.py", workers=2)
    done = run_child(script, "workers=2", torch_is_imported=False)
    assert (done.code, done.no_effect) == (0, {}), done.error


@pytest.mark.slow
def test_an_iterable_dataset_that_does_not_shard_is_refused(tmp_path: Path) -> None:
    (why,) = run_child(_script(tmp_path / "a.py", "IterableDataset"), "workers=2").refused.values()
    assert why.startswith("each worker would load all of Numbers")


@pytest.mark.slow
def test_a_loader_with_workers_keeps_them(tmp_path: Path) -> None:
    script = _script(tmp_path / "a.py", more=", num_workers=1", workers=1)
    why = "the script's DataLoaders have workers already"
    assert run_child(script, "workers=2").no_effect == {"workers=2": why}


@pytest.mark.slow
def test_prefetching_needs_workers(tmp_path: Path) -> None:
    why = "no DataLoader has workers; try workers first"
    assert run_child(_script(tmp_path / "a.py"), "prefetch=3").no_effect == {"prefetch=3": why}


@pytest.mark.slow
def test_a_script_without_loaders_is_refused(tmp_path: Path) -> None:
    done = run_child(training(tmp_path / "a.py"), "workers=2")
    assert done.no_effect == {"workers=2": "no DataLoader was made"}


def test_the_script_may_choose_later_how_processes_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", None)
    assert loaders._start_method() == multiprocessing.get_all_start_methods()[0]
    assert multiprocessing.get_start_method(allow_none=True) is None


@pytest.mark.parametrize(("method", "refused"), [("fork", 0), ("spawn", 1)])
def test_only_a_forked_worker_takes_a_dataset_that_cannot_be_sent(
    method: str, refused: int
) -> None:
    whys: list[str] = []
    loader = {"dataset": [lambda: 0], "multiprocessing_context": method}
    loaders._check_dataset(SimpleNamespace(refuse=whys.append), loader)  # type: ignore[arg-type]
    assert len(whys) == refused
