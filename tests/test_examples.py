"""Every example runs with and without a tool listening, and prints the same."""

import os
from pathlib import Path

import pytest

from tests import forks

torch = pytest.importorskip("torch")

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SAYS = {
    "compiled": "same as in Python: True",
    "analysis": "blocks.1    41.3",
    "cuda_graph": "needs an NVIDIA GPU" if not torch.cuda.is_available() else "Python: True True",
    "custom_function": "gradient equals the other factor: True",
    "custom_module": "gradient of the shift: [1.0, 1.0, 1.0, 1.0]",
    "ddp": "gradient 8.0",
    "fast": "loss 1.97",
    "imagenet": " of 16 right",
    "inference": "answers (8, 4)",
    "jit": "same as in Python: True",
    "lenet": "loss 2.30",
    "operators": "34 operators",
    "resnet_amp": "loss ",
    "simple": "done",
    "slow": "loss 1.97",
    "transformer": "loss ",
    "user_annotation": "validation",
}


FAST = {"lenet", "ddp"}
"""What they show, and how, the others do, too."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "listens"),
    [
        pytest.param(path, listens, id=f"{path.stem}-{'under a tool' if listens else 'alone'}",
                     marks=() if path.stem in FAST else pytest.mark.long)
        for path in EXAMPLES
        for listens in ((False, True) if path.stem == "lenet" else (False,))
    ],
)  # fmt: skip
def test_an_example_runs(example: Path, listens: bool) -> None:  # noqa: FBT001 - a parameter
    environment = {k: v for k, v in os.environ.items() if "NSYS" not in k and "INJECTION" not in k}
    if listens:
        environment["NSYS_PROFILING_SESSION_ID"] = "1"
    done = forks.python(example, env=environment)
    assert done.returncode == 0, done.stderr
    assert SAYS.get(example.stem, "") in done.stdout
    said = [line for line in done.stderr.splitlines() if "No CUDA runtime is found" not in line]
    assert said == []  # but torch's, of a toolkit without a driver
