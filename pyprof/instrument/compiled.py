"""Op markers around the kernels that torch.compile writes in C++, which say nothing of themselves.

Kernels in Triton tell torch.profiler their arguments. Those for the CPU tell their name alone.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

import torch

from pyprof.instrument.op import make_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.instrument.patch import Patches

_MAKER = "torch._inductor.async_compile"
_NAME = re.compile(r'"(?:graph_\d+_)?(cpp_fused_\w+)"')
"""A kernel's name in its source, where it is written if kernels shall appear in profiles."""


def wrap_compiled(patches: Patches) -> None:
    """Wrap the kernels that are compiled from now on.

    Inductor is loaded when something is to be compiled, and then takes as long as torch itself.
    """
    if _MAKER in sys.modules:
        _wrap_maker(patches)
        return
    original = torch.compile

    @functools.wraps(original)
    def compile_(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        if kwargs.get("backend", "inductor") == "inductor":
            _wrap_maker(patches)
        return original(*args, **kwargs)

    patches.replace(torch, "compile", compile_)


def _wrap_maker(patches: Patches) -> None:
    try:
        maker: Any = importlib.import_module(_MAKER).AsyncCompile
        make: Any = maker.cpp_pybinding
    except (ImportError, AttributeError):  # Inductor is not for this system, or differs
        return
    if hasattr(make, "__wrapped__"):
        return

    @functools.wraps(make)
    def cpp_pybinding(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        made = make(*args, **kwargs)
        source = next((arg for arg in (*args, *kwargs.values()) if isinstance(arg, str)), "")
        found = _NAME.search(source)
        if found is None:
            return made
        if not hasattr(made, "result"):
            return _marked(made, found[1])
        result = made.result  # still being compiled

        def marked_result(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
            return _marked(result(*args, **kwargs), found[1])

        made.result = marked_result
        return made

    patches.replace(maker, "cpp_pybinding", cpp_pybinding)


def _marked(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    return make_op(kernel, sys.modules[_MAKER], name, "cpp")
