"""Originals are replaced everywhere, and restored."""

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so

from tests.instrument.conftest import Recorder


def test_one_function_with_two_names_stays_one(listening: Recorder) -> None:
    assert F.conv2d is torch.conv2d
    assert torch.functional.einsum is torch.einsum
    assert listening.depth == 0
