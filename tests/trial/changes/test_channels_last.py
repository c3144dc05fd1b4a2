"""Images and convolutions with channels last."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


CONVOLUTION = """
nn.Linear = lambda i, o: nn.Conv2d(i, o, 1) if i == 8 else nn.Conv2d(i, o, 1)
randn = torch.randn
torch.randn = lambda *s: randn(*s, 5, 5)
cross_entropy = nn.functional.cross_entropy
nn.functional.cross_entropy = lambda o, y: cross_entropy(o.mean((2, 3)), y)
"""


def test_convolutions_are_converted_with_equal_losses(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", setup=CONVOLUTION)
    done = run_child(script, "channels-last")
    assert (done.code, done.no_effect) == (0, {})
    assert done.losses == pytest.approx(run_child(script).losses, rel=1e-4)


def test_a_network_without_convolutions_is_refused(tmp_path: Path) -> None:
    done = run_child(training(tmp_path / "a.py"), "channels-last")
    assert done.no_effect == {"channels-last": "no convolution: no called module has one"}
