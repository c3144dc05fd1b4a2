"""`pyprof.init()` and `pyprof.stop()`: turn all instrumentation on or off."""

from __future__ import annotations

import inspect
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pyprof.instrument import ipython
from pyprof.instrument.layers import Names, wrap_modules
from pyprof.instrument.loaders import wrap_loaders
from pyprof.instrument.ops import caller, payload, process_groups
from pyprof.instrument.ops.compiled import wrap_compiled
from pyprof.instrument.ops.op import WITH_STACK
from pyprof.instrument.ops.patch import Patches
from pyprof.instrument.ops.targets import find_targets
from pyprof.instrument.optimizers import wrap_optimizers
from pyprof.instrument.ranges import stack as stacks
from pyprof.instrument.ranges import timers as clocks
from pyprof.instrument.ranges.emit import EMITTER, Sink, nvtx_sink, profiler_sink, tool_listens
from pyprof.instrument.wrap import WRAPPED, wrap_call_sites, wrap_coalesced, wrap_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SINKS: dict[str, Callable[[], Sink]] = {"nvtx": nvtx_sink, "profiler": profiler_sink}


@dataclass(slots=True)
class _State:
    enabled: bool = False
    for_profilers: bool = False
    """`init(emit="profiler")` was called."""
    patches: Patches | None = None
    names: Names | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)


_STATE = _State()


def init(
    *,
    stack: bool = True,
    layers: bool = True,
    timers: bool = False,
    force: bool = False,
    emit: Literal["nvtx", "profiler"] = "nvtx",
    enable_function_stack: bool | None = None,
) -> None:
    """Mark every op, layer and optimizer step from now on with a range that describes it.

    stack: record the calling lines, too. layers: record the modules, too. timers: time annotated
    code. Without a profiler that takes ranges (nsys, nvprof, ncu), nothing is changed, unless
    `force`. `emit="profiler"` sends the ranges to torch.profiler instead, while one records.

    A second call adds options that the first did not set, and never removes any.
    `enable_function_stack`, the name of `stack` in NVIDIA's PyProf, works with a warning.
    """
    if enable_function_stack is not None:
        renamed = "pyprof.init(enable_function_stack=...) is now init(stack=...), on by default"
        warnings.warn(renamed, DeprecationWarning, stacklevel=2)
        stack = stack and enable_function_stack
    if emit not in _SINKS:
        raise ValueError(f"emit is {emit!r}; it must be one of {', '.join(_SINKS)}")
    with _STATE.lock:
        _STATE.enabled = True
        _STATE.for_profilers = _STATE.for_profilers or emit == "profiler"
        clocks.ON[0] = clocks.ON[0] or timers
        if _STATE.patches is None and (force or emit == "profiler" or tool_listens()):
            _start(_SINKS[emit](), with_stack=stack, with_layers=layers)


@contextmanager
def marked(sink: Sink) -> Iterator[None]:
    """As `init`, but send ranges to `sink`; then restore the user's settings."""
    with _STATE.lock:
        was = _STATE.enabled, _STATE.for_profilers, clocks.ON[0]
        patched, sent_to = _STATE.patches is not None, EMITTER.sink()
        _STATE.enabled = True
        if patched:
            EMITTER.connect(sink)
        else:
            _start(sink, with_stack=True, with_layers=True)
    try:
        yield
    finally:
        with _STATE.lock:
            if patched and sent_to is not None:
                EMITTER.connect(sent_to)
            else:
                stop()
                _STATE.enabled, _STATE.for_profilers, clocks.ON[0] = was


def find_modules() -> None:
    """Find the modules that exist now, before a recording starts: it takes up to a second."""
    if _STATE.names is not None:
        _STATE.names.search_once()


def for_profilers() -> bool:
    """Whether the script itself asked for ranges in traces of torch.profiler."""
    return _STATE.for_profilers


def _start(sink: Sink, *, with_stack: bool, with_layers: bool) -> None:
    WITH_STACK[0] = with_stack
    patches = _STATE.patches = Patches()
    patches.wrap_all(find_targets())
    patches.replace(inspect, "getfile", caller.report_original_file(inspect.getfile))
    wrap_optimizers(patches)
    for home, name in WRAPPED:
        wrap_one(home, name, patches)
    wrap_compiled(patches)
    wrap_coalesced(patches)
    if with_stack:
        for code in ipython.runners():
            stacks.begin_at(code)
        wrap_call_sites(patches)
        wrap_loaders(patches)
    if with_layers:
        _STATE.names = wrap_modules(patches)
    EMITTER.connect(sink)


def stop() -> None:
    """Undo `init`: restore every replaced attribute to its original object. Idempotent."""
    with _STATE.lock:
        _STATE.enabled = _STATE.for_profilers = False
        EMITTER.disconnect()
        clocks.ON[0] = False
        if _STATE.patches is not None:
            _STATE.patches.restore()
            _STATE.patches = _STATE.names = None
        payload.forget()
        process_groups.forget()
        stacks.forget()
        caller.forget()


def enabled() -> bool:
    """Whether `init` was called and `stop` was not, with or without a profiler."""
    return _STATE.enabled


def listening() -> bool:
    """Whether ranges are recorded: `init` found a profiler, or `force` was given."""
    return _STATE.patches is not None


def wrap(home: object, name: str) -> None:
    """Mark calls of your own function or method as ops: `pyprof.wrap(MyFunction, "forward")`.

    `home` is the class, module or object that has it. Works before `init` and after it.
    Raises AttributeError if there is no such attribute.
    """
    getattr(home, name)
    with _STATE.lock:
        if (home, name) not in WRAPPED:
            WRAPPED.append((home, name))
        if _STATE.patches is not None:
            wrap_one(home, name, _STATE.patches)
