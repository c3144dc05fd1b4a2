"""Markers of collectives: their group and size, with gloo."""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pyprof import marker, readers
from pyprof.instrument.ops.process_groups import _spell_ranks
from pyprof.parse import parse
from tests.instrument.processes import RANK, run

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch without distributed"
)

SETUP = f"""{RANK}
    import json
    import torch.distributed._functional_collectives as functional
    x, y, twice = torch.ones(4, 6), torch.empty(4, 6), torch.empty(8, 6)
"""
EVERY = """
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
    inner, peer = mesh["inner"].get_group(), rank ^ 1
    def exchange():
        ops = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, y, peer)]
        [work.wait() for work in dist.batch_isend_irecv(ops)]
    def talk():
        dist.send(x, peer) if rank < peer else dist.recv(y, peer)
    def together():
        with dist._coalescing_manager(group=inner):
            for tensor in (x, y):
                dist.all_reduce(tensor, group=inner)
    CALLS = {
        "all_reduce": lambda: dist.all_reduce(x),
        "in a group": lambda: dist.all_reduce(x, group=inner),
        "by position": lambda: dist.all_reduce(x, dist.ReduceOp.SUM, inner),
        "all_gather": lambda: dist.all_gather([y, torch.empty(4, 6)], x, group=inner),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(twice, x, group=inner),
        "by name": lambda: dist.all_gather_into_tensor(
            output_tensor=twice, input_tensor=x, group=inner),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(x[:2], x, group=inner),
        "broadcast": lambda: dist.broadcast(x, 0),
        "reduce": lambda: dist.reduce(x, 0),
        "gather": lambda: dist.gather(x, [y] * 4 if rank == 0 else None),
        "scatter": lambda: dist.scatter(x, [y] * 4 if rank == 0 else None),
        "all_to_all_single": lambda: dist.all_to_all_single(y, x, group=inner),
        "together": together,
        "barrier": lambda: dist.barrier(),
        "talk": talk,
        "batch_isend_irecv": exchange,
        "functional.all_reduce": lambda: functional.all_reduce(x, "sum", inner).sum(),
        "functional by mesh": lambda: functional.all_gather_tensor(x, 0, (mesh, 1)).sum(),
        "functional by name": lambda: functional.reduce_scatter_tensor(
            x, "sum", 0, inner.group_name).sum(),
    }
    pyprof.init(force=True, stack=False)
    found = {}
    for name, call in CALLS.items():
        texts.clear()
        call()
        decoded = [marker.decode_op(text) for text in texts if "'collective'" in text]
        decoded = [call for call in decoded if "coalesced" in call.op] or decoded
        found[name] = [call.collective for call in decoded]
    pyprof.stop()
    from torch.profiler import profile
    with profile() as profiler:
        dist.all_reduce(x)
    profiler.export_chrome_trace(f"{os.environ['STORE']}.{rank}.json")
    info = json.load(open(f"{os.environ['STORE']}.{rank}.json"))["distributedInfo"]
    groups = {group["pg_name"]: group.get("ranks") for group in info.get("pg_config", [])}
    print(json.dumps([found, groups, inner.group_name]))
    dist.destroy_process_group()
"""
ALL, INNER = (0, 1, 2, 3), (2, 3)
EXPECTED: dict[str, tuple[tuple[int, ...], int | None, int | None]] = {
    # what a rank gives and gets, as ProcessGroupNCCL.cpp counts it
    "all_reduce": (ALL, 24, 24),
    "in a group": (INNER, 24, 24),
    "by position": (INNER, 24, 24),
    "all_gather": (INNER, 24, 48),
    "all_gather_into_tensor": (INNER, 24, 48),
    "by name": (INNER, 24, 48),
    "reduce_scatter_tensor": (INNER, 24, 12),
    "broadcast": (ALL, 24, 24),
    "reduce": (ALL, 24, 24),
    "gather": (ALL, 24, 96),
    "scatter": (ALL, 96, 24),
    "all_to_all_single": (INNER, 24, 24),
    "together": (INNER, 48, 48),
    "barrier": (ALL, None, None),
    "talk": (INNER, 24, 24),  # the two
    "batch_isend_irecv": (INNER, 24, 24),
    "functional.all_reduce": (INNER, 24, 24),
    "functional by mesh": (INNER, 24, 48),
    "functional by name": (INNER, 24, 12),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return rank 2's record of each call, and torch's description of its groups; of four ranks."""
    _, _, third, _ = run(tmp_path_factory.mktemp("ranks"), SETUP + EVERY, 0, 1, 2, 3)
    found: list[Any] = json.loads(third)
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", EXPECTED)
def test_a_marker_has_the_group_and_the_size(name: str, told: list[Any]) -> None:
    """Also if one function of torch calls another."""
    ranks, given, got = EXPECTED[name]
    found, _, inner = told
    in_pairs = name in ("talk", "batch_isend_irecv")
    assert found[name]
    for said in found[name]:
        assert said["group"] == ("0" if ranks == ALL or in_pairs else inner)
        assert (said["ranks"], said["size"]) == (str([*ranks]), len(ranks))
        assert (said.get("in"), said.get("out")) == (given, got)
        assert said.get("dtype") == (None if given is None else "float32")


@pytest.mark.long
def test_groups_are_named_as_in_torch_s_own_traces(told: list[Any]) -> None:
    found, groups, inner = told
    if not groups:
        pytest.skip("this torch does not tell its groups")
    for name, (ranks, *_) in EXPECTED.items():
        if ranks == ALL:
            assert groups[found[name][0]["group"]] == [*ALL]
    assert groups[inner] == [*INNER]


ENDS = """
    pair = dist.new_group([0, 1])
    alone = dist.new_group([0])
    asked = []
    pyprof.init(force=True, stack=False)
    plain, c10d = dist.get_process_group_ranks, dist.distributed_c10d
    c10d.get_process_group_ranks = lambda group: asked.append(group.group_name) or plain(group)
    for _ in range(3):
        dist.all_reduce(x)
        dist.all_reduce(x, group=pair)
    told = ["'collective'" in text for text in texts if "all_reduce" in text]
    print(sorted(asked) == sorted(["0", pair.group_name]), told)
    asked.clear()
    texts.clear()
    if rank:
        dist.all_reduce(x, group=alone)  # not of it: torch warns, and does nothing
    dist.destroy_process_group(alone) if not rank else None
    import gc, weakref
    gone = weakref.ref(pair)
    name = pair.group_name
    dist.barrier(pair)
    dist.destroy_process_group(pair)
    try:
        dist.all_reduce(x, group=pair)
    except Exception as error:
        print(type(error).__module__ != "pyprof")
    else:
        print(True)
    del pair
    gc.collect()
    print(gone() is None)
    dist.destroy_process_group()
    texts.clear()
    try:
        dist.all_reduce(x)
    except ValueError as error:
        print("has not been initialized" in str(error), "'collective'" in texts[-1])
"""


@pytest.mark.slow
def test_groups_are_not_kept_alive(tmp_path: Path) -> None:
    """Each is queried once; for an invalid one torch's own error is shown."""
    for out in run(tmp_path, SETUP + ENDS, 0, 1):
        assert out.splitlines() == [
            "True [True, True, True, True, True, True]", "True", "True", "True False",
        ]  # fmt: skip


COMPILED = """
    world = dist.group.WORLD
    def in_place(given):
        made = given.clone()
        dist.all_reduce(made, group=world)
        return made + 1
    CALLS = [
        in_place,
        lambda given: functional.all_reduce(given, "sum", world) * 2,
        lambda given: functional.all_gather_tensor(given * 2, 0, world) + 1,
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(6, 2)),
    ]
    expected = [call(x) for call in CALLS]
    pyprof.init(force=True)
    for call, value in zip(CALLS, expected):
        compiled = torch.compile(call, backend="aot_eager", fullgraph=call is not CALLS[3])
        print(torch.equal(compiled(x), value))
    dist.destroy_process_group()
"""


@pytest.mark.long
def test_compiled_collectives_are_unchanged(tmp_path: Path) -> None:
    (out,) = run(tmp_path, SETUP + COMPILED, 0)
    assert out.split() == ["True"] * 4


TRAINS = """
    import os, torch, torch.distributed as dist
    import pyprof
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", store=dist.FileStore(os.environ["STORE"], 2), rank=rank, world_size=2)
    pyprof.init()
    summed, sent = torch.ones(4, 6), torch.ones(3, dtype=torch.bfloat16)
    dist.all_reduce(summed)
    dist.broadcast(sent, 0)
    dist.destroy_process_group()  # which waits for ever for who lets go of a tensor last, up to 2.7
"""  # noqa: E501 - as a user writes it
SAID = {"group": "0", "ranks": "[0, 1]", "size": 2}


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not installed")
def test_nsys_captures_hold_the_groups(tmp_path: Path) -> None:
    nsys = "nsys profile -t nvtx -s none --cpuctxsw=none -f true --export sqlite -o"
    under = [*nsys.split(), str(tmp_path / "net.rank{rank}"), sys.executable]
    run(tmp_path, TRAINS, 0, 1, under=under)
    for rank in (0, 1):
        texts = readers.read(tmp_path / f"net.rank{rank}.sqlite").ranges.column("text").to_pylist()
        calls = [call for text in texts if (call := marker.decode_op(text)) and call.collective]
        assert [(call.op, call.collective) for call in calls] == [
            ("all_reduce", SAID | {"dtype": "float32", "in": 24, "out": 24}),
            ("broadcast", SAID | {"dtype": "bfloat16", "in": 3, "out": 3}),
        ]


@pytest.mark.slow
def test_torch_captures_hold_the_groups(tmp_path: Path) -> None:
    capture = "-m pyprof capture --tool torch --all -o"
    run(tmp_path, TRAINS, 0, 1, by=[*capture.split(), str(tmp_path / "net")])
    for trace in sorted(tmp_path.glob("net.*.json.gz")):
        found = parse(readers.read(trace)).arrow("collective").drop_null().to_pylist()
        assert [json.loads(text) for text in found] == [
            {"name": "all_reduce", **SAID, "dtype": "float32", "in": 24, "out": 24},
            {"name": "broadcast", **SAID, "dtype": "bfloat16", "in": 3, "out": 3},
        ]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        (range(3), "[0, 1, 2]"),
        (range(4096), "range(0, 4096)"),
        (range(5, 800, 8), "range(5, 798, 8)"),
        ((*range(40), 77), f"{str([*range(31)])[:-1]}, ..., 77]"),
    ],
)
def test_ranks_are_written_briefly(ranks: Sequence[int], text: str) -> None:
    assert _spell_ranks(tuple(ranks)) == text
    assert len(text) < 150
