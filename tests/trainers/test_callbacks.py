"""The callbacks, in trainings by the real libraries, captured by torch.profiler."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

import pyprof
from tests import forks
from tests.commands import run

LIGHTNING = """
import logging
import lightning.pytorch as L
import torch
from pyprof.trainers.lightning import PyprofCallback

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, _):
        return self.layer(batch).sum()
    def validation_step(self, batch, _):
        torch.erf(batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

batches = torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=2)
quiet = dict.fromkeys(
    ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
)
trainer = L.Trainer(
    max_epochs=1, accelerator="cpu", val_check_interval=4, callbacks=[PyprofCallback(2, 4)], **quiet
)
trainer.fit(Net(), batches, batches)
"""

TRANSFORMERS = """
import torch
from transformers import Trainer, TrainingArguments
from pyprof.trainers.transformers import PyprofCallback

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def forward(self, x, labels=None):
        y = self.layer(x)
        if not self.training:
            torch.erf(y)
        return {"loss": y.sum(), "logits": y}

data = [{"x": torch.ones(4), "labels": torch.ones(1)} for _ in range(16)]
arguments = TrainingArguments(
    "out", max_steps=8, per_device_train_batch_size=1, gradient_accumulation_steps=2,
    eval_strategy="steps", eval_steps=4, save_strategy="no", report_to=[], disable_tqdm=True,
    use_cpu=True,
)
Trainer(
    model=Net(), args=arguments, train_dataset=data, eval_dataset=data,
    callbacks=[PyprofCallback(2, 4)],
).train()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "script", "batches"),
    [("lightning", LIGHTNING, 1), ("transformers", TRANSFORMERS, 2)],
    ids=["lightning", "transformers"],
)
def test_training_steps_alone_are_captured(
    tmp_path: Path, package: str, script: str, batches: int
) -> None:
    """Four steps in two windows around a validation; of that, and of the set-up, nothing."""
    pytest.importorskip("accelerate" if package == "transformers" else package)
    pytest.importorskip(package)
    (tmp_path / "train.py").write_text(script)
    done = forks.python("-m", "pyprof.capture", "--tool", "torch", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    frame = pyprof.load(tmp_path / "train.pt.trace.json.gz")
    assert "erf" not in set(frame["op"])
    linear = frame[(frame["op"] == "linear") & (frame["dir"] == "fprop")]
    assert linear["step"].tolist() == [step for step in range(4) for _ in range(batches)]
    assert set(frame["dir"]) == {"fprop", "bprop", "optim"}
    assert linear["window"].tolist() == [0] * 2 * batches + [1] * 2 * batches
    summary = run("summary", "-q", tmp_path / "train.pt.trace.json.gz").stdout
    assert "4 by pyprof.step" in summary
