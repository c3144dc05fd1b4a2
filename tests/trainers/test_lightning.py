"""The callback of Lightning, in a training."""

from pathlib import Path

import pytest

from tests.trainers.captured import check

TRAINING = """
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


@pytest.mark.long
def test_training_steps_alone_are_captured(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("lightning")
    check(tmp_path, TRAINING, batches=1)
