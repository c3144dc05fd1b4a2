"""Images and convolutions with channels last."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


IMAGES = """
randn = torch.randn
torch.randn = lambda *s: randn(*s, 5, 5)
cross_entropy = nn.functional.cross_entropy
nn.functional.cross_entropy = lambda o, y: cross_entropy(o.mean((2, 3)), y)
"""
CONVOLUTION = "nn.Linear = lambda i, o: nn.Conv2d(i, o, 1)" + IMAGES
BOTH = """
class Both(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.image, self.volume = nn.Conv2d(i, o, 1), nn.Conv3d(o, o, 1)

    def forward(self, x):
        return self.volume(self.image(x)[:, :, None])[:, :, 0]

nn.Linear = Both
"""


@pytest.mark.few(3)
# An optimizer's state is from the first step, before the loop; its kernel would mix up elements.
@pytest.mark.parametrize(
    ("setup", "optimizer", "rounding"),
    [(CONVOLUTION.replace("o, 1", "o, 3, padding=1"),
      "Adam(model.parameters(), 0.1, fused=True)", 1e-3),
     (CONVOLUTION, "SGD(model.parameters(), 0.1)", 1e-4),
     (BOTH + IMAGES, "SGD(model.parameters(), 0.1)", 1e-4),
     (CONVOLUTION.replace("Conv2d", "ConvTranspose2d"), "SGD(model.parameters(), 0.1)", 1e-4)],
    ids=["with a fused optimizer", "plain", "images and volumes", "transposed"],
)  # fmt: skip
def test_convolutions_are_converted_with_equal_losses(
    tmp_path: Path, setup: str, optimizer: str, rounding: float
) -> None:
    """Each to the format of its own dimensions."""
    script = training(tmp_path / "a.py", setup=setup, optimizer=optimizer)
    done = run_child(script, "channels-last")
    assert (done.code, done.error, done.no_effect) == (0, "", {})
    assert done.losses == pytest.approx(run_child(script).losses, rel=rounding)


def test_a_network_without_convolutions_is_refused(tmp_path: Path) -> None:
    done = run_child(training(tmp_path / "a.py"), "channels-last")
    assert done.no_effect == {"channels-last": "no convolution: no called module has one"}


def test_a_script_that_stores_channels_last_is_refused(tmp_path: Path) -> None:
    setup = CONVOLUTION.replace("nn.Conv2d(i, o, 1)", "C(i, o, 3)").replace(
        "nn.Linear", "C = lambda *a: nn.Conv2d(*a).to(memory_format=torch.channels_last)\nnn.Linear"
    )
    (why,) = run_child(training(tmp_path / "a.py", setup=setup), "channels-last").refused.values()
    assert why == "the script stores convolutions with channels last already"
