"""Op markers around kernels of torch.compile, whose callers are generated code.

NVTX records only their names. torch.profiler records the arguments of Triton kernels, but not of
C++ kernels for the CPU.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

import torch

from pyprof.instrument.ops.caller import hide_frames
from pyprof.instrument.ops.op import is_disabled, make_op
from pyprof.instrument.ops.payload import op_head, op_text
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.wrap import call_inside

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.instrument.ops.patch import Patches

CPP = "torch._inductor.async_compile"
TRITON = "torch._inductor.runtime.triton_heuristics"

_NAME = re.compile(r'"(?:graph_\d+_)?(cpp_fused_\w+)"')
"""A kernel's name in its source, present if kernels are to appear in profiles."""


def wrap_compiled(patches: Patches) -> None:
    """Wrap the kernels that Inductor makes from now on.

    Inductor is imported when something is compiled; importing it takes as long as torch itself.
    """

    @functools.cache
    def prepare() -> None:
        _wrap(patches, CPP, "AsyncCompile.cpp_pybinding", _cpp)
        _wrap(patches, TRITON, "CachingAutotuner.run", _triton)

    if CPP in sys.modules:
        prepare()
        return
    original = torch.compile

    @functools.wraps(original)
    @hide_frames
    def compile_(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        if kwargs.get("backend", "inductor") == "inductor":
            prepare()
        return original(*args, **kwargs)

    patches.replace(torch, "compile", compile_)


def _wrap(
    patches: Patches,
    module: str,
    method: str,
    wrapper: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> None:
    kind, _, name = method.partition(".")
    try:
        home = getattr(importlib.import_module(module), kind)
        original = getattr(home, name)
    except (ImportError, AttributeError):  # Inductor is not for this system, or differs
        return
    patches.replace(home, name, functools.wraps(original)(wrapper(original)))


def _cpp(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function that compiles C++ source, so that it returns the kernel inside an Op."""

    def cpp_pybinding(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        kernel = make(*args, **kwargs)
        source = next((arg for arg in (*args, *kwargs.values()) if isinstance(arg, str)), "")
        match = _NAME.search(source)
        if match is None:
            return kernel
        mark = functools.partial(make_op, home=sys.modules[CPP], name=match[1], mod="cpp")
        if not hasattr(kernel, "result"):
            return mark(kernel)
        result = kernel.result  # still being compiled

        def marked_result(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
            return mark(result(*args, **kwargs))

        kernel.result = marked_result
        return kernel

    return cpp_pybinding


def _triton(launch: Callable[..., Any]) -> Callable[..., Any]:
    @hide_frames
    def run(self: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        if EMITTER.push is None or is_disabled():
            return launch(self, *args, **kwargs)
        name = self.inductor_meta.get("kernel_name") or self.fn.__name__
        text = op_text(op_head("triton", name), args, {})  # by name come stream and the like
        return call_inside(text, launch, self, *args, **kwargs)

    return run
