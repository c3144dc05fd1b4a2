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


def _setup(base: str = "Dataset", more: str = "", workers: int = 0) -> str:
    return LOADER.format(base=base, more=more, workers=workers)


@pytest.mark.long
def test_workers_load_each_item_once(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", setup=_setup(workers=2))
    done = run_child(script, "workers=2", torch_is_imported=False)
    assert (done.code, done.no_effect) == (0, {}), done.error


_REPEATED = (
    "each worker would load all of Numbers, an IterableDataset that does not use get_worker_info()"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "setup", "told"),
    [
        ("workers=2", _setup("IterableDataset"), f"refused: {_REPEATED}"),
        ("workers=2", _setup(more=", num_workers=1", workers=1),
         "no_effect: the script's DataLoaders have workers already"),
        ("prefetch=3", _setup(), "no_effect: no DataLoader has workers; try workers first"),
        ("workers=2", "", "no_effect: no DataLoader was made"),
    ],
    ids=["not sharded", "workers already", "prefetching without workers", "no loader"],
)  # fmt: skip
def test_loaders_that_do_not_change_say_why(
    tmp_path: Path, change: str, setup: str, told: str
) -> None:
    done = run_child(training(tmp_path / "a.py", setup=setup), change)
    kind, why = told.split(": ", 1)
    assert getattr(done, kind) == {change: why}


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
