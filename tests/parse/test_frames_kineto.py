"""Frames as torch.profiler and Inductor name them."""

import pytest

from pyprof.parse.ranges.range_stacks import is_framework, user_line


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("torch/nn/modules/conv.py:536", True),
        ("torch/nn/utils/clip_grad.py:4", False),
        ("/var/cache/torchinductor_me/ab/cabc.py:10", True),
        ("transformers/models/vit/modeling_vit.py:170", False),
        ("my/torch/model.py:3", False),
    ],
)
def test_framework(frame: str, *, expected: bool) -> None:
    """A file named from where it is imported is torch's; so is code that Inductor wrote."""
    assert is_framework(frame) is expected


def test_line() -> None:
    """The user's line is the innermost that no framework carries through."""
    frames = ("train.py:3", "transformers/vit.py:170", "<frozen abc>:1")
    assert user_line(frames) == "transformers/vit.py:170"
