import inspect
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

import pyprof
from tests.instrument.conftest import Recorder


class Squares(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index**2


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from range(4)


def join(samples: Sequence[int]) -> torch.Tensor:
    return torch.tensor(samples)


def _line(function: object) -> str:
    code = function.__code__  # type: ignore[attr-defined]
    return f"{__file__}:{code.co_firstlineno}"


@pytest.mark.parametrize(
    ("data", "method"),
    [
        (Squares(), Squares.__getitem__),
        (Subset(Subset(Squares(), range(4)), range(4)), Squares.__getitem__),
        (Stream(), Stream.__iter__),
    ],
    ids=["a map", "a part of a part", "a stream"],
)
def test_each_batch_names_the_line_of_its_dataset(
    data: Dataset[int], method: object, listening: Recorder
) -> None:
    batches = [batch.tolist() for batch in DataLoader(data, batch_size=2)]
    assert sum(map(len, batches)) == 4
    stacks = [stack for stack in listening.traces if stack[-1] == _line(method)]
    assert len(stacks) == 3  # two batches, and the end
    assert all(frame.startswith(__file__) for frame in (stacks[0][-2], stacks[0][-1]))


def test_collate_fn_has_a_line_of_its_own(listening: Recorder) -> None:
    batches = [batch.tolist() for batch in DataLoader(Squares(), batch_size=2, collate_fn=join)]
    assert batches == [[0, 1], [4, 9]]
    ends = [stack[-1] for stack in listening.traces]
    outer, inner = ends.index(_line(Squares.__getitem__)), ends.index(_line(join))
    assert outer < inner


def test_data_of_torch_alone_has_no_line(listening: Recorder) -> None:
    """TensorDataset runs no code of the user's."""
    loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2)
    assert [batch.tolist() for (batch,) in loader] == [[0.0, 1.0], [2.0, 3.0]]
    assert not any("torch" in frame for stack in listening.traces for frame in stack)


def test_an_exception_in_a_dataset_is_unchanged(listening: Recorder) -> None:
    data: Dataset[int] = Subset(Squares(), [0, 1])
    with pytest.raises(IndexError):
        next(iter(DataLoader(data, sampler=[5])))
    assert listening.depth == 0


def test_stop_restores_the_loader(recorder: Recorder) -> None:
    before = inspect.getattr_static(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__")
    pyprof.init(force=True)
    batches = iter(DataLoader(Squares(), batch_size=2, collate_fn=join))
    next(batches)
    pyprof.stop()
    recorder.clear()
    assert next(batches).tolist() == [4, 9]
    assert not recorder.texts
    after = inspect.getattr_static(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__")
    assert after is before
