"""Originals are replaced everywhere, and restored."""

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so

import pyprof
from tests.instrument.conftest import Recorder


def test_one_function_with_two_names_stays_one(listening: Recorder) -> None:
    assert F.conv2d is torch.conv2d
    assert torch.functional.einsum is torch.einsum
    assert listening.depth == 0


def test_tensors_in_a_list_are_numbers_while_indexing_is_marked_and_after(
    listening: Recorder,
) -> None:
    """Not sequences, whose length is asked for: `torch.tensor(losses)`."""

    class Loss(torch.Tensor):
        """A class made after init()."""

    losses = [torch.tensor(2.0), torch.nn.Parameter(torch.tensor(3.0), requires_grad=False)]
    losses += [torch.tensor(4.0).as_subclass(Loss)]
    assert losses[0][None][0] == 2.0
    assert "__getitem__" in listening.ops
    for undo in (lambda: None, pyprof.stop):
        undo()
        assert torch.tensor(losses).tolist() == [2.0, 3.0, 4.0]
