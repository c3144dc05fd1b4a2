"""A part of the sweep over op calls on the CPU: torch.profiler's record against the oracle."""

import warnings
from pathlib import Path

import pytest

from tests.benchmarks import benchmark

pytest.importorskip("torch")


CHOSEN = (
    # composites, those that copy first, views that copy
    *("F.mse_loss(x, y)", "F.huber_loss(x, y)", "torch.cdist(x, y)", "wide(x)", "x.mul_(2)"),
    *("torch.linalg.inv(spd)", "torch.linalg.det(spd)", "x.gather(1, spread)", "x.std()"),
    "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
    *("lstm(seq)[0]", "F.conv2d(img, w2, stride=2)"),
    # hidden batches
    *("torch.vmap(lambda a: a @ m)(ba)", "torch.vmap(lambda a: F.softmax(a, 0))(x)"),
    "each(lambda w, a: F.cross_entropy(F.linear(a, w), at[0] % 32))(m, tokens[0])",
    "torch.func.jvp(lambda a: torch.sin(a) * a, (x,), (y,))",
    # what ends early
    "checkpoint(lambda a: F.linear(F.relu(a), y), x, use_reentrant=False)",
    "checkpoint(lambda a: F.softmax(a @ y.T, 1), x, use_reentrant=False)",
    "checkpoint(convolutions, img, use_reentrant=False)",
    # lists
    *("step(torch.optim.SGD,lr=0.1,foreach=True)", "step(torch.optim.Adagrad,fused=True)"),
)


@pytest.mark.slow
def test_calls_cost_what_they_compute_in_both_runs(tmp_path: Path) -> None:
    """Forward and backward: each row's FLOPs and reason, whatever the durations."""
    sweep = benchmark("flop_sweep")
    cases = [case for case in sweep.flop_cases.cases() if case.source in CHOSEN]
    assert {case.source for case in cases} == set(CHOSEN)
    runs = []
    with warnings.catch_warnings():
        for number in range(2):
            sweep.flop_cases.traced(cases, tmp_path / f"{number}.json")
            runs.append(sweep.found(tmp_path / f"{number}.json"))
        found = {case.name: sweep.verdict(case, [run[case.name] for run in runs]) for case in cases}
    assert {name: each for name, each in found.items() if each[0] != "right"} == {}
