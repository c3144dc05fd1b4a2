"""Snapshots built in code, as torch.cuda.memory._dump_snapshot() writes them; and brute force."""

import io
import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyprof.allocations import snapshot as reader
from pyprof.allocations import unpickle
from pyprof.allocations.snapshot import Snapshot

MIB = 1 << 20
_BASE = 0x7F00_0000_0000
_ROUNDED_TO = 512

TORCH = "/usr/lib/python3.11/site-packages/torch"
Frame = tuple[str, str, int]


def frames(*places: Frame) -> list[dict[str, Any]]:
    return [{"name": name, "filename": file, "line": line} for name, file, line in places]


def user(line: int, name: str = "main") -> Frame:
    return (name, "/home/user/train.py", line)


CALL = ("_call_impl", f"{TORCH}/nn/modules/module.py", 1500)
ENGINE = (
    "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)",
    "??",
    0,
)
NODE = ("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", "??", 0)
ACCUMULATE = ("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)", "??", 0)
INIT_GROUP = ("_init_group", f"{TORCH}/optim/adam.py", 180)
STEP = ("step", f"{TORCH}/optim/adam.py", 240)
ZERO_GRAD = ("zero_grad", f"{TORCH}/optim/optimizer.py", 960)
APPLY = ("_apply", f"{TORCH}/nn/modules/module.py", 900)
CACHED_CAST = (
    "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&, c10::DeviceType)", "??", 0,
)  # fmt: skip
CLEAR_CACHE = ("at::autocast::clear_cache()", "??", 0)
AUTOCAST_EXIT = ("__exit__", f"{TORCH}/amp/autocast_mode.py", 390)
WORKSPACE = ("at::cuda::getNewWorkspace()", "??", 0)


@dataclass
class Device:
    """An allocator that never reuses an address, in one segment; and what it recorded."""

    number: int = 0
    segment_bytes: int = 1 << 40
    events: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    time_us: int = 0
    _live: dict[int, dict[str, Any]] = field(default_factory=dict)
    _next: int = _BASE

    def alloc(self, size: int, *stack: Frame, at: int | None = None) -> int:
        address = self._next if at is None else at
        rounded = -(-size // _ROUNDED_TO) * _ROUNDED_TO
        self._next = max(self._next, address + rounded)
        made = frames(*stack)
        self._live[address] = {
            "address": address, "size": rounded, "requested_size": size,
            "state": "active_allocated", "frames": made,
        }  # fmt: skip
        self._event("alloc", address, size, made)
        return address

    def free(self, address: int, *stack: Frame, pending: bool = False) -> None:
        """Return back; with `pending` it waits for a stream, until `complete` or forever."""
        block, made = self._live[address], frames(*stack)
        self._event("free_requested", address, block["requested_size"], made)
        if pending:
            block["state"] = "active_pending_free"
            return
        self._event("free_completed", address, block["requested_size"], made)
        del self._live[address]

    def complete(self, address: int) -> None:
        """End the wait of a block for a stream."""
        block = self._live.pop(address)
        self._event("free_completed", address, block["requested_size"], [])

    def oom(self, size: int, free: int, *stack: Frame) -> None:
        self._event("oom", free, size, frames(*stack))
        self.events[-1]["device_free"] = self.events[-1].pop("addr")

    def range(self, name: str, *, begins: bool) -> None:
        self.time_us += 1
        stage = "START" if begins else "END"
        self.annotations.append(
            {"name": name, "stage": stage, "device": self.number, "time_us": self.time_us}
        )

    def forget(self, count: int) -> None:
        """Lose the oldest events, as a full ring does, with the stacks of what they allocated."""
        for event in self.events[:count]:
            if event["action"] == "alloc" and event["addr"] in self._live:
                self._live[event["addr"]]["frames"] = []
        del self.events[:count]

    def segment(self) -> dict[str, Any]:
        blocks, place = [], _BASE
        for address in sorted(self._live):
            if address > place:
                blocks.append(_free(place, address - place))
            blocks.append(self._live[address])
            place = address + self._live[address]["size"]
        if place < _BASE + self.segment_bytes:
            blocks.append(_free(place, _BASE + self.segment_bytes - place))
        allocated = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
        active = sum(b["size"] for b in blocks if b["state"] != "inactive")
        return {
            "device": self.number, "address": _BASE, "total_size": self.segment_bytes,
            "allocated_size": allocated, "active_size": active, "requested_size": allocated,
            "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
            "is_expandable": False, "blocks": blocks,
        }  # fmt: skip

    def _event(self, action: str, address: int, size: int, made: list[dict[str, Any]]) -> None:
        self.time_us += 10
        self.events.append(
            {"action": action, "addr": address, "size": size, "stream": 0,
             "time_us": self.time_us, "frames": made}
        )  # fmt: skip


def _free(address: int, size: int) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": 0, "state": "inactive",
            "frames": []}  # fmt: skip


def snapshot(*devices: Device) -> dict[str, Any]:
    return {
        "segments": [device.segment() for device in devices],
        "device_traces": [device.events for device in devices],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": ""},
        "external_annotations": [one for device in devices for one in device.annotations],
    }


def pickled(folder: Path, taken: object, protocol: int | None = None) -> Path:
    path = folder / "x.pickle"
    path.write_bytes(pickle.dumps(taken, protocol))
    return path


def write(path: Path, *devices: Device) -> Path:
    path.write_bytes(pickle.dumps(snapshot(*devices)))
    return path


def parsed(taken: dict[str, Any]) -> Snapshot:
    """Read what would be pickled, in this process: files are read in a separate one."""
    head, out = unpickle._columns(*unpickle._load(io.BytesIO(pickle.dumps(taken))))
    target = io.BytesIO()
    unpickle._write(head, out.arrays, target)
    content = target.getbuffer()
    size = int.from_bytes(content[:8], "little")
    head = json.loads(bytes(content[8 : 8 + size]))
    return reader._snapshot(head, content[8 + size :])


_START_US = 1_700_000_000_000_000


def training(steps: int = 4, leak: int = 0, start_us: int = _START_US) -> Device:
    """Train a model of one layer, as PyTorch does; each step leaks `leak` bytes."""
    device = Device(time_us=start_us)
    weight = device.alloc(4 * MIB, APPLY, user(3))
    state: list[int] = []
    gradient: int | None = None
    for step in range(steps):
        device.range(f"ProfilerStep#{step}", begins=True)
        saved = device.alloc(8 * MIB, CALL, user(10, "forward"))
        if leak:
            device.alloc(leak, user(11))
        scratch = device.alloc(2 * MIB, CALL, user(12, "forward"))
        device.free(scratch, CALL, user(12, "forward"))
        work = device.alloc(MIB, NODE, ENGINE)
        if gradient is None:
            gradient = device.alloc(4 * MIB, ACCUMULATE, ENGINE)
        device.free(saved, NODE, ENGINE)
        device.free(work, NODE, ENGINE)
        if not state:
            state = [device.alloc(4 * MIB, INIT_GROUP, STEP, user(20)) for _ in range(2)]
        update = device.alloc(3 * MIB, STEP, user(20))
        device.free(update, STEP, user(20))
        device.free(gradient, ZERO_GRAD, user(21))
        gradient = None
        device.range(f"ProfilerStep#{step}", begins=False)
    assert weight
    return device


# --- brute force ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Levels:
    """What one device holds before its first event, and after each."""

    start: int
    after: list[int]

    @property
    def peak(self) -> int:
        return max([self.start, *self.after])


def levels(taken: dict[str, Any], device: int = 0) -> Levels:
    """Return the bytes that the program holds."""
    events = _events(taken, device)
    requests = any(event["action"] == "free_requested" for event in events)
    frees = "free_requested" if requests else "free_completed"
    return _levels(taken, device, frees, {"active_allocated"})


def occupied(taken: dict[str, Any], device: int = 0) -> Levels:
    """Return the bytes that are live, or freed and waiting for a stream."""
    return _levels(taken, device, "free_completed", {"active_allocated", "active_pending_free"})


def _events(taken: dict[str, Any], device: int) -> list[dict[str, Any]]:
    traces: list[list[dict[str, Any]]] = taken["device_traces"]
    return traces[device] if device < len(traces) else []


def _levels(taken: dict[str, Any], device: int, frees: str, states: set[str]) -> Levels:
    """Go through the events one by one, from what must have been there before the first."""
    events = _events(taken, device)
    live, begun = {}, {}
    for event in events:  # what is freed without being allocated was there before
        if event["action"] == "alloc":
            live[event["addr"]] = event["size"]
        elif event["action"] == frees and live.pop(event["addr"], None) is None:
            begun[event["addr"]] = event["size"]
    for segment in taken["segments"]:
        for block in segment["blocks"] if segment["device"] == device else ():
            if block["state"] in states and block["address"] not in live:
                begun[block["address"]] = block["requested_size"]
    held, after = dict(begun), []
    for event in events:
        if event["action"] == "alloc":
            held[event["addr"]] = event["size"]
        elif event["action"] == frees:
            held.pop(event["addr"], None)
        after.append(sum(held.values()))
    return Levels(sum(begun.values()), after)
