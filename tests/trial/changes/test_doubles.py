"""Accidental float64."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pyprof.trial.changes.doubles import _convert_unnamed
from tests.trial.built import run_child, training

LONG = pytest.mark.long


NUMPY = (
    "import numpy as np\nrandn = torch.randn\n"
    "torch.randn = lambda *s: torch.from_numpy(np.ones(s)) + randn(*s){}"
)


@pytest.mark.long
def test_float64_of_numpy_becomes_float32(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", setup=NUMPY.format(""))
    assert run_child(script).code == 1  # float64 meets float32 weights
    assert run_child(script, "float32").code == 0


@pytest.mark.slow
def test_a_script_in_float32_has_nothing_to_change(tmp_path: Path) -> None:
    done = run_child(training(tmp_path / "a.py"), "float32")
    assert done.no_effect == {"float32": "no float64 came from NumPy or a literal"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("torch.zeros(1).double()", ""),
        pytest.param("nn.Linear(1, 1).to(torch.double)", "nn.Linear(1, 1)", marks=LONG),
        pytest.param("torch.set_default_dtype(torch.float64)", "", marks=LONG),
    ],
)
def test_float64_by_name_is_refused_with_its_line(tmp_path: Path, line: str, plain: str) -> None:
    script = training(tmp_path / "a.py", setup=line)
    (why,) = run_child(script, "float32").refused.values()
    assert why == f"the script asks for float64 by name at {script}:5; try float32=all"
    converted = run_child(script, "float32=all")
    assert converted.no_effect == {}
    assert converted.losses == run_child(training(tmp_path / "b.py", setup=plain)).losses


@pytest.mark.slow
def test_a_parameter_made_of_an_array_can_still_be_trained(tmp_path: Path) -> None:
    setup = (
        "import numpy as np\nscale = torch.tensor(np.ones(1), requires_grad=True)\n"
        "(3 * scale).sum().backward()\nassert scale.grad is not None"
    )
    done = run_child(training(tmp_path / "a.py", setup=setup), "float32")
    assert (done.code, done.no_effect) == (0, {}), done.error


def test_tensors_of_a_dtype_that_was_asked_for_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("tensor", "as_tensor", "from_numpy"):
        monkeypatch.setattr(torch, name, getattr(torch, name))
    _convert_unnamed(lambda tensor: tensor.float())
    ones = np.ones(2)
    assert {torch.from_numpy(ones).dtype, torch.as_tensor(ones).dtype} == {torch.float32}
    assert torch.tensor(ones, dtype=torch.float64).dtype == torch.float64
    assert torch.as_tensor(torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
