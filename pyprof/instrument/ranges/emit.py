"""Where ranges go: to NVTX, to torch.profiler, or nowhere.

`EMITTER` is what every wrapped function checks: while its `push` is None, wrappers only call what
they wrap.

Ranges go straight to a tool that injected itself into this process, by NVTX's own handshake: a
program that uses NVTX loads the library that `NVTX_INJECTION64_PATH` names and hands it tables of
empty function pointers, into which the tool writes the functions that it implements. Compiled
programs get this from NVTX's header; ctypes does it here. (The `nvtx` package registers every text
for ever, and from 0.2.12 on asks tools a question that nsys 2022.4 does not answer, and then emits
nothing.) Structures and numbers: NVTX 3, `nvtxDetail/nvtxTypes.h`.
"""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pyprof.marker import encode_annotation

if TYPE_CHECKING:
    from collections.abc import Callable


_TABLE_CALLBACKS, _TABLE_VERSION = 1, 3  # NVTX_ETID_*
_MODULE_CORE, _MODULE_CORE2 = 1, 5  # NVTX_CB_MODULE_*: a tool wants both or none
_RANGE_PUSH, _RANGE_POP = 9, 11  # NVTX_CBID_CORE_RangePushA, RangePop
_SLOTS = 16  # NVTX_CBID_CORE_SIZE, NVTX_CBID_CORE2_SIZE
_VERSION = 3  # of NVTX

_Slot = ctypes.POINTER(ctypes.c_void_p)
_Slots = ctypes.c_void_p * _SLOTS
_Table = _Slot * _SLOTS
_GetModuleTable = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)
_GetExportTable = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
_SetVersion = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
# Both return the depth, which is not needed; void costs half, and so does void* for char*.
_PushFunction = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_PopFunction = ctypes.PYFUNCTYPE(None)


class _Callbacks(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("get_module_table", _GetModuleTable))


class _Version(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("set_injection_version", _SetVersion),
    )


_kept: list[object] = []
"""What the tool may keep pointers to. Never emptied: a tool cannot release it."""


def connect(library: str) -> tuple[Callable[[bytes], object], Callable[[], object]] | None:
    """Return the tool's own (push, pop); None if the library is unavailable or does not listen.

    `push` takes UTF-8 bytes. Both hold the interpreter lock: they take less time than releasing it.
    """
    core = _Slots()
    try:
        start = ctypes.CDLL(library).InitializeInjectionNvtx2
    except (OSError, AttributeError):
        return None
    if not start(_export_tables({_MODULE_CORE: core, _MODULE_CORE2: _Slots()})):
        return None
    push, pop = core[_RANGE_PUSH], core[_RANGE_POP]
    return (_PushFunction(push), _PopFunction(pop)) if push and pop else None


def _export_tables(modules: dict[int, ctypes.Array[ctypes.c_void_p]]) -> Any:  # noqa: ANN401 - ctypes names no type for it
    """Return the function that a tool calls for the tables of these modules."""
    size = ctypes.sizeof(ctypes.c_void_p)
    tables = {  # the addresses at which a tool stores its functions
        module: _Table(*(ctypes.cast(ctypes.byref(slots, size * n), _Slot) for n in range(_SLOTS)))
        for module, slots in modules.items()
    }

    def get_module_table(module: int, out_table: Any, out_size: Any) -> int:  # noqa: ANN401 - pointers
        if module not in tables:
            return 0
        out_table[0] = ctypes.addressof(tables[module])
        out_size[0] = _SLOTS
        return 1

    callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetModuleTable(get_module_table))
    version = _Version(ctypes.sizeof(_Version), _VERSION, 0, _SetVersion(lambda _: None))
    exported = {
        _TABLE_CALLBACKS: ctypes.addressof(callbacks),
        _TABLE_VERSION: ctypes.addressof(version),
    }
    get_export_table = _GetExportTable(exported.get)
    _kept.extend((modules, tables, callbacks, version, get_export_table))
    return get_export_table


_INJECTION = "NVTX_INJECTION64_PATH"
_TOOL_VARIABLES = (
    *(_INJECTION, "NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH"),
    *("ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_FORCE_LOAD"),
)
_TOOL_LIBRARIES = ("ToolsInjection", "libcuinj", "TreeLauncher", "libnvperf", "librocprof")
"""Parts of the names of libraries that nsys, nvprof, ncu and rocprofv3 preload."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where ranges go. `push` and `pop` never raise and keep a stack of ranges for each thread."""

    push: Callable[[str], object]
    pop: Callable[[], object]
    recording: Callable[[], bool] | None = None
    """Whether anyone records what is pushed now; None if always."""


def _do_nothing() -> None:
    pass


@dataclass(slots=True, eq=False)
class Emitter:
    """The sink in use. Separate attributes, since every call of an op reads them."""

    push: Callable[[str], object] | None = None
    pop: Callable[[], object] = _do_nothing
    recording: Callable[[], bool] | None = None

    def connect(self, sink: Sink) -> None:
        """Send ranges to this sink from now on."""
        self.pop, self.recording, self.push = sink.pop, sink.recording, sink.push

    def sink(self) -> Sink | None:
        """Return the sink in use."""
        return None if self.push is None else Sink(self.push, self.pop, self.recording)

    def disconnect(self) -> None:
        """Send nothing from now on. Ranges still open can be closed: `pop` stays."""
        self.push = None


EMITTER = Emitter()

# Disconnect in forked children: nsys does not follow forks that do not exec,
# and its locks may be held by threads that the child does not have.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=EMITTER.disconnect)


def tool_listens() -> bool:
    """Whether this process was started under a tool that records NVTX or ROCTx ranges.

    nsys, nvprof, ncu and rocprofv3 inject themselves through the environment, before the process
    starts: so the answer never changes. Wrong if a tool attaches to a running process.
    """
    if any(os.environ.get(name) for name in _TOOL_VARIABLES):
        return True
    preloaded = os.environ.get("LD_PRELOAD", "")
    return any(library in preloaded for library in _TOOL_LIBRARIES)


def nvtx_sink() -> Sink:
    """Return the sink for NVTX: torch's binding, which on ROCm is ROCTx, else the tool's library.

    With neither, nothing listens, and ranges go nowhere.
    """
    if (sink := _torch_sink()) is not None:
        return sink
    library = os.environ.get(_INJECTION)
    functions = connect(library) if library else None
    if functions is None:
        return Sink(lambda _: None, _do_nothing)
    push_bytes, pop = functions
    return Sink(lambda text: push_bytes(text.encode()), pop)


def _torch_sink() -> Sink | None:
    try:
        from torch._C import _nvtx  # noqa: PLC0415 - absent in builds without CUDA
    except ImportError:
        return None
    return Sink(_nvtx.rangePushA, _nvtx.rangePop)


class _OpenRanges(threading.local):
    def __init__(self) -> None:
        self.stack: list[object] = []


def profiler_records() -> bool:
    """Whether a torch.profiler records, this thread or all threads.

    Not by torch._C._autograd._profiler_enabled(): it is False while one records all threads.
    """
    return bool(torch.autograd.profiler._is_profiler_enabled)  # noqa: SLF001 - no public one


def profiler_sink(
    enabled: Callable[[], bool] = profiler_records,
    annotation: Any = torch._C._profiler._RecordFunctionFast,  # noqa: ANN401, SLF001 - a context manager; record_function() goes through the dispatcher
) -> Sink:
    """Return the sink for torch.profiler: ranges become annotations in its trace.

    Texts are built only while `enabled()`: while it records for us.
    """
    open_ranges = _OpenRanges()

    def push(text: str) -> None:
        entered = annotation(encode_annotation(text)) if enabled() else None
        if entered is not None:
            entered.__enter__()
        open_ranges.stack.append(entered)

    def pop() -> None:
        entered = open_ranges.stack.pop() if open_ranges.stack else None
        if entered is not None:
            entered.__exit__(None, None, None)  # type: ignore[attr-defined]

    return Sink(push, pop, enabled)
