"""What `pyprof try` says of every change on scripts of several kinds, as a table.

`python benchmarks/trials.py` takes a quarter of an hour on two cores, `... trainer` makes the
column of that script alone. `... nothing 20` repeats a change that does nothing, `... sleep` tries
a dataset that sleeps, `... slow` the three findings of docs/tutorial.md, alone and together.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.analysis.trial.proposals import together
from pyprof.analysis.trial.timing import timing
from pyprof.analysis.trial.verdict import judge
from pyprof.capture.script import Target
from pyprof.render.text.formatting import markdown_table
from pyprof.render.text.try_text import ratio_text
from pyprof.trial.change import parse
from pyprof.trial.experiment import Trial, Variant
from pyprof.trial.ranks import Ranks

if TYPE_CHECKING:
    from pyprof.answers.try_answer import TriedChange

HEADER = ["script: change", "verdict", "time", "losses differ by"]
EXAMPLES = Path(__file__).parent.parent / "examples"
CHANGES = (
    "threads=1", "bf16", "fp16", "compile", "channels-last", "fused-optimizer", "foreach",
    "workers=2", "prefetch=4", "pin-memory", "no-grad", "float32", "sdpa", "tf32",
    "cudnn-benchmark", "env=OMP_NUM_THREADS=1",
)  # fmt: skip
KINDS = ("convolutions", "transformer", "trainer", "lightning_net", "already")
CONVOLUTIONS = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Images(Dataset):
    def __len__(self): return 1280
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        image = torch.rand(3, 40, 40, generator=g)
        top, left = torch.randint(8, (2,), generator=g).tolist()
        return image[:, top:top + 32, left:left + 32].flip(2) * 2 - 1, i % 10
class Block(nn.Module):
    def __init__(self, ins, outs, stride):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(ins, outs, 3, stride, 1, bias=False), nn.BatchNorm2d(outs), nn.ReLU(),
            nn.Conv2d(outs, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs))
        self.skip = nn.Conv2d(ins, outs, 1, stride, bias=False)
    def forward(self, x): return torch.relu(self.net(x) + self.skip(x))
def resnet(): return nn.Sequential(
    nn.Conv2d(3, 16, 3, 1, 1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
noise = np.random.default_rng(0)
model, teacher = resnet(), resnet()
teacher.eval()
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
if __name__ == "__main__":
    for images, labels in DataLoader(Images(), 16):
        noisy = images + torch.from_numpy(noise.normal(0, 0.1, images.shape))
        optimizer.zero_grad()
        out, wanted = model(noisy.float()), teacher(images).softmax(1).detach()
        loss = nn.functional.cross_entropy(out, labels) + nn.functional.cross_entropy(out, wanted)
        loss.backward()
        optimizer.step()
"""
TRANSFORMER = """
import torch
from torch import nn
VOCABULARY, LENGTH, WIDTH, HEADS = 96, 128, 128, 4
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("hidden", torch.ones(LENGTH, LENGTH).triu(1).bool())
    def forward(self, x):
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, 2))
        scores = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).masked_fill(self.hidden, -1e9)
        return self.out((scores.softmax(3) @ v).transpose(1, 2).flatten(2))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH))
    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(3)))
        self.head = nn.Linear(WIDTH, VOCABULARY)
    def forward(self, x):
        x = self.tokens(x) + self.places(torch.arange(LENGTH))
        return self.head(self.blocks(x))
text = torch.randint(VOCABULARY, (100_000,))
model = Language()
optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
for step in range(40):
    starts = torch.randint(len(text) - LENGTH - 1, (4,)).tolist()
    x = torch.stack([text[i:i + LENGTH] for i in starts])
    y = torch.stack([text[i + 1:i + 1 + LENGTH] for i in starts])
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TRAINER = """
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
class Sentences(Dataset):
    def __len__(self): return 400
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"input_ids": torch.randint(100, (64,), generator=g), "labels": torch.tensor(i % 2)}
config = BertConfig(vocab_size=100, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
    intermediate_size=512, attn_implementation="eager")
arguments = TrainingArguments("OUT", per_device_train_batch_size=8, max_steps=40, report_to=[],
    save_strategy="no", disable_tqdm=True, use_cpu=True)
Trainer(BertForSequenceClassification(config), arguments, train_dataset=Sentences()).train()
"""
LIGHTNING = """
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(6272, 10))
    def training_step(self, batch, _):
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
data = TensorDataset(torch.randn(1280, 3, 32, 32), torch.randint(10, (1280,)))
lightning.Trainer(max_steps=40, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False).fit(Net(), DataLoader(data, 32))
"""
ALREADY = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(14400, 10))
    model = model.to(memory_format=torch.channels_last)
    model.compile()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    data = TensorDataset(torch.randn(320, 3, 32, 32), torch.randint(10, (320,)))
    for images, labels in DataLoader(data, 8, num_workers=1, prefetch_factor=4):
        images = images.to(memory_format=torch.channels_last)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
"""
SLEEPS = """
import time
import torch
from torch import nn
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.ones(8), i % 3
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in torch.utils.data.DataLoader(Slow(), batch_size=4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
HEADS = """
import torch.nn.functional as F
def before_loop(main):
    def forward(self, x):
        split = self.qkv(x).view(*x.shape[:2], 3, main.HEADS, main.WIDTH // main.HEADS)
        mixed = F.scaled_dot_product_attention(*split.permute(2, 0, 3, 1, 4))
        return self.out(mixed.transpose(1, 2).flatten(2))
    main.Attention.forward = forward
"""
POSITIONS = """
def before_loop(main):
    table = main.positions()
    main.positions = lambda: table
"""


def measure(
    script: str,
    args: list[str],
    texts: list[str],
    rounds: int,
    steps: int,
    *,
    combine: bool = False,
) -> list[TriedChange]:
    """Try changes on a script, and with `combine` those that helped together; profiles nothing."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(
            target=Target(script, tuple(args)), folder=Path(folder), ranks=Ranks(0, 1, ""),
            steps=steps, seed=True, report=lambda _: None,
        )  # fmt: skip
        trial.begin()
        variants: list[Variant] = [(parse(text),) for text in texts]

        def undecided(variant: Variant) -> bool:
            timed = timing(trial.runs, variant)
            return rounds > 1 and timed is not None and timed.undecided

        trial.measure(variants, rounds, undecided)
        if ("compile" in texts) and trial.is_usable((parse("compile"),)):
            trial.perform((parse("compile"),), "losses")
        joined = together({each: judge(trial.runs, each) for each in variants}) if combine else None
        if joined is not None:
            variants.append(joined)
            trial.measure([joined], rounds, undecided)
        return [judge(trial.runs, variant) for variant in variants]


def row(name: str, found: TriedChange) -> list[str]:
    """Return the cells of a change."""
    ratio, loss = found.time_ratio, found.loss.largest_relative_difference
    ends = [ratio_text(each) for each in (ratio.mid, ratio.low, ratio.high)] if ratio else []
    times = "{} ({} to {})".format(*ends) if ends else "-"
    says_why = found.why and found.verdict != "no difference"  # its interval says that
    return [
        f"{name}: {re.sub(r'patch=[^ ]*/', 'patch=', found.change)}",
        f"{found.verdict}: {found.why[:90]}" if says_why else found.verdict,
        times,
        "-" if loss is None else f"{100 * loss:.2g} %",
    ]


def cell(found: TriedChange, notes: dict[str, int]) -> str:
    """Return the outcome as one cell of the matrix; reasons are numbered in `notes`."""
    ratio = found.time_ratio
    if found.verdict in ("faster", "slower") and ratio:
        mid, low, high = (ratio_text(each) for each in (ratio.mid, ratio.low, ratio.high))
        return f"{found.verdict}: {mid}, {low} to {high}"
    if found.verdict == "no difference" or not found.why:
        return found.verdict
    return f"{found.verdict}: {notes.setdefault(found.why, len(notes) + 1)}"


def main(arguments: list[str]) -> None:
    """Print the table, or what one of the experiments finds."""
    with tempfile.TemporaryDirectory() as made:
        scripts = {
            "convolutions": CONVOLUTIONS, "transformer": TRANSFORMER,
            "trainer": TRAINER.replace("OUT", made), "lightning_net": LIGHTNING, "already": ALREADY,
            "sleep": SLEEPS, "heads": HEADS, "positions": POSITIONS,
        }  # fmt: skip
        for name, text in scripts.items():
            (Path(made) / f"{name}.py").write_text(text)
        if arguments[:1] == ["nothing"]:
            script = str(EXAMPLES / "lenet.py")
            for _ in range(int(arguments[1])):
                (found,) = measure(script, ["--steps", "40"], ["env=NOTHING=1"], 1, 30)
                print(row("lenet.py", found), flush=True)
            return
        if arguments[:1] == ["sleep"]:
            (found,) = measure(f"{made}/sleep.py", [], ["workers=2"], 1, 40)
            print(row("sleep.py", found))
            return
        if arguments[:1] == ["slow"]:
            texts = ["float32=all", f"patch={made}/heads.py", f"patch={made}/positions.py"]
            slow = measure(str(EXAMPLES / "slow.py"), [], texts, 2, 0, combine=True)
            (fast,) = measure(str(EXAMPLES / "fast.py"), [], ["env=NOTHING=1"], 1, 0)
            print(markdown_table(HEADER, [row("slow.py", found) for found in slow]))
            print(f"a step: {(slow[-1].time_ns or 0) / 1e6:.1f} ms with the last, "
                  f"{(fast.time_ns or 0) / 1e6:.1f} ms of fast.py")  # fmt: skip
            return
        kinds = arguments or KINDS
        notes: dict[str, int] = {}
        columns = [
            [cell(found, notes) for found in measure(f"{made}/{kind}.py", [], [*CHANGES], 1, 24)]
            for kind in kinds
        ]
        rows = [[name, *cells] for name, *cells in zip(CHANGES, *columns, strict=True)]
        print(markdown_table(["change", *kinds], rows))
        print("\n".join(f"{number}. {why}" for why, number in notes.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
