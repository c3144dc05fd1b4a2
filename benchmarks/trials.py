"""What `pyprof try` says of every change on scripts of several kinds, as the table of docs/try.md.

`python benchmarks/trials.py` takes about ten minutes on two cores; `python benchmarks/trials.py
nothing 20` repeats a change that does nothing, `... sleep` a dataset that sleeps.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyprof.analysis.trial.timing import timing
from pyprof.analysis.trial.verdict import Finding, judge
from pyprof.capture.script import Target
from pyprof.render.text.formatting import markdown_table
from pyprof.trial.change import parse
from pyprof.trial.experiment import Trial
from pyprof.trial.ranks import Ranks

EXAMPLES = Path(__file__).parent.parent / "examples"
CHANGES = (
    "threads=1", "bf16", "fp16", "compile", "channels-last", "fused-optimizer", "foreach",
    "workers=2", "prefetch=4", "pin-memory", "no-grad", "float32", "sdpa", "tf32",
    "cudnn-benchmark", "env=OMP_NUM_THREADS=1",
)  # fmt: skip
TRAINER = """
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
class Sentences(Dataset):
    def __len__(self): return 400
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return {"input_ids": torch.randint(100, (32,), generator=g), "labels": torch.tensor(i % 2)}
config = BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=128, attn_implementation="eager")
arguments = TrainingArguments("OUT", per_device_train_batch_size=8, max_steps=40, report_to=[],
    save_strategy="no", disable_tqdm=True, use_cpu=True)
Trainer(BertForSequenceClassification(config), arguments, train_dataset=Sentences()).train()
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


def measure(
    script: str, args: list[str], texts: list[str], rounds: int, steps: int
) -> list[Finding]:
    """Try changes on a script, without profiled runs."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(
            target=Target(script, tuple(args)), folder=Path(folder), ranks=Ranks(0, 1, ""),
            steps=steps, seed=True, report=lambda _: None,
        )  # fmt: skip
        trial.begin()
        variants = [(parse(text),) for text in texts]

        def undecided(variant: tuple[object, ...]) -> bool:
            timed = timing(trial.runs, variant)  # type: ignore[arg-type]
            return rounds > 1 and timed is not None and timed.undecided

        trial.measure(variants, rounds, undecided)
        if ("compile" in texts) and trial.is_usable((parse("compile"),)):
            trial.perform((parse("compile"),), "losses")
        return [judge(trial.runs, variant) for variant in variants]


def row(name: str, found: Finding) -> list[str]:
    """Return the cells of a finding."""
    ratio, loss = found.timing and found.timing.ratio, found.loss.largest_relative_difference
    times = f"{ratio.mid:.2f} ({ratio.low:.2f} to {ratio.high:.2f})" if ratio else "-"
    return [
        f"{name}: {found.variant[0]}",
        f"{found.verdict}{': ' + found.why[:90] if found.why else ''}",
        times,
        "-" if loss is None else f"{100 * loss:.2g} %",
    ]


def main(arguments: list[str]) -> None:
    """Print the table, or what one of the experiments finds."""
    with tempfile.TemporaryDirectory() as made:
        scripts = {"trainer": TRAINER.replace("OUT", made), "sleep": SLEEPS}
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
        cases = {
            "lenet.py": (str(EXAMPLES / "lenet.py"), ["--steps", "30"]),
            "transformer.py": (str(EXAMPLES / "transformer.py"), []),
            "trainer.py": (f"{made}/trainer.py", []),
        }
        header = ["script: change", "verdict", "time", "losses differ by"]
        for name, (script, args) in cases.items():
            rows = [row(name, found) for found in measure(script, args, [*CHANGES], 1, 12)]
            print(markdown_table(header, rows), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
