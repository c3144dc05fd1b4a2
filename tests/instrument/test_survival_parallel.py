"""Unchanged by init(): threads, processes, workers, replicas, collectives."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pyprof
from pyprof import marker
from tests.instrument.conftest import Recorder
from tests.instrument.processes import RANK, run
from tests.known import known


class Squares(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.relu(torch.full((2,), float(index)) ** 2)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork with threads, from Python 3.12 on
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_data_loader_workers(context: str, listening: Recorder) -> None:
    if context not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {context} here")
    loader = DataLoader(
        Squares(), batch_size=2, num_workers=1, multiprocessing_context=context,
        persistent_workers=True,
    )  # fmt: skip
    for _ in range(2):
        batches = list(loader)
        assert torch.cat(batches)[:, 0].tolist() == [0, 1, 4, 9, 16, 25]
    assert listening.depth == 0


@pytest.mark.slow
def test_threads_have_ranges_of_their_own(listening: Recorder) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    start = threading.Barrier(4)

    def work(number: int) -> float:
        start.wait()
        for _ in range(20):
            with pyprof.annotate(f"thread {number}"):
                result = net(torch.full((1, 4), float(number)))
        return result.sum().item()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert results == [net(torch.full((1, 4), float(n))).sum().item() for n in range(4)]
    assert len(listening.depths) >= 4
    assert set(listening.depths.values()) == {0}


@pytest.mark.slow
def test_init_and_stop_while_others_run(recorder: Recorder) -> None:
    go_on = True
    errors: list[BaseException] = []

    def work() -> None:
        while go_on:
            try:
                F.gelu(torch.ones(2) * 2)
            except BaseException as error:  # noqa: BLE001, PERF203 - that is what is tested
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        pyprof.init(force=True)
        pyprof.stop()
    go_on = False
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(recorder.depths.values()) <= {0}


@pytest.mark.slow
def test_data_parallel(listening: Recorder) -> None:
    """Without GPUs it calls the module itself, with equal results."""
    net = nn.Linear(3, 3)
    assert torch.equal(nn.DataParallel(net)(torch.ones(2, 3)), net(torch.ones(2, 3)))
    assert "linear" in listening.ops


def test_replicas_are_named_like_their_original(listening: Recorder) -> None:
    """DataParallel copies the module for each GPU, each on a thread of its own."""
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    replica = net._replicate_for_data_parallel()  # type: ignore[no-untyped-call]
    for name, child in net.named_children():
        replica._modules[name] = child._replicate_for_data_parallel()  # type: ignore[no-untyped-call]
        for key, value in child._parameters.items():
            setattr(replica._modules[name], key, value)
    thread = threading.Thread(target=replica, args=(torch.ones(1, 3),))
    thread.start()
    thread.join()
    assert listening.layers == ["Sequential", "0", "1"]


DDP = f"""{RANK}
    from torch import nn
    def train():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        ddp = nn.parallel.DistributedDataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            ddp(torch.ones(2, 4) * (rank + step)).sum().backward()
            optimizer.step()
        dist.all_reduce(total := torch.ones(1))
        dist.barrier()
        return [*(p.detach().clone() for p in net.parameters()), total]
    expected = train()
    pyprof.init(force=True)
    from torch.distributed.fsdp import FullyShardedDataParallel
    found = train()
    assert all(torch.equal(a, b) for a, b in zip(expected, found))
    assert depth == [0]
    ops = [t for t in texts if "'op': 'all_reduce'" in t]
    layers = [t for t in texts if t.startswith("layer:")]
    print(len(ops), layers[0], layers[1], layers[2])
    print(*set(text for text in texts if "'op': 'DistributedDataParallel'" in text))
    pyprof.stop()
    dist.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.slow
def test_distributed_data_parallel_on_gloo(tmp_path: Path) -> None:
    for out in run(tmp_path, DDP, 0, 1):
        marked, group = out.splitlines()
        assert marked.split() == [
            "1", "layer:DistributedDataParallel", "layer:module", "layer:module.0",
        ]  # fmt: skip
        call = known(marker.decode_op(group))
        assert (call.mod, call.op) == marker.DDP
        assert call.collective == {
            "group": "0", "ranks": "[0, 1]", "size": 2, "dtype": "float32",
        }  # fmt: skip


@pytest.mark.slow
def test_a_fork_is_silent_and_works(tmp_path: Path) -> None:
    code = """
        import os, torch, pyprof
        from pyprof.instrument import lifecycle
        from pyprof.instrument.ranges import emit
        texts = []
        lifecycle._SINKS["nvtx"] = lambda: emit.Sink(texts.append, lambda: None)
        pyprof.init(force=True)
        texts.clear()
        child = os.fork()
        if child == 0:
            ok = torch.relu(torch.ones(1)).item() == 1 and not texts
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        torch.ones(1)
        assert len(texts) == 2
    """
    run(tmp_path, code, 0)


DTENSOR = f"""{RANK}
    try:
        from torch.distributed.tensor import Replicate, distribute_tensor
    except ImportError:
        from torch.distributed._tensor import Replicate, distribute_tensor
    mesh = init_device_mesh("cpu", (1,))
    x, w = (distribute_tensor(torch.ones(4, 4), mesh, [Replicate()]) for _ in "xw")
    expected = torch.mul(x, w).full_tensor()  # torch 2.4 has no products on a mesh of one
    pyprof.init(force=True)
    found = torch.mul(x, w)
    texts_of_mul = [marker.decode_op(t) for t in texts if "'op': 'mul'" in t]
    print(type(found).__name__, torch.equal(found.full_tensor(), expected), depth[0])
    print(set(arg.subclass for call in texts_of_mul for arg in call.args[:2]))
    dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_distributed_tensors(tmp_path: Path) -> None:
    (out,) = run(tmp_path, DTENSOR, 0)
    assert out.splitlines() == ["DTensor True 0", "{'DTensor'}"]
