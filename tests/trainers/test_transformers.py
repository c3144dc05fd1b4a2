"""The callback of Hugging Face's Trainer, in a training."""

from pathlib import Path

import pytest

from tests.trainers.captured import check

TRAINING = """
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


@pytest.mark.long
def test_training_steps_alone_are_captured(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    check(tmp_path, TRAINING, batches=2)
