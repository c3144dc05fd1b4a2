"""torch.compile of outermost modules, in place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyprof.trial.change import RefusedError, WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature
from pyprof.trial.script.steps import compiled_frames

_MAX_LISTED = 3
_PYPROF = str(Path(__file__).parents[2])


@change(
    "compile",
    code="model = torch.compile(model)",
    advised_by=("unfused_pointwise", "launch_bound", "short_ops"),
    predicted_by="--fuse pointwise",
    other_random_numbers=True,
)
def compile_modules(run: Run) -> WhyNoEffect:
    """Compile outermost modules with torch.compile."""
    _check_compiler()
    compiled: list[None] = []

    def begin(module: Any) -> None:  # noqa: ANN401 - a module
        for each in module.modules():
            called = getattr(each, "_compiled_call_impl", None)
            if called is not None or type(each).__name__ == "OptimizedModule":
                run.refuse("the script compiles already")
        if run.checks_losses:
            import torch._inductor.config as inductor  # noqa: PLC0415 - only where it is used

            inductor.fallback_random = True
        _compile(module)
        compiled.append(None)

    run.calls.on_loop(begin)

    def why_no_effect() -> str | None:
        if not compiled:
            return "no module was called often enough"
        if not compiled_frames():
            return "torch compiled nothing (TORCH_COMPILE_DISABLE switches it off)"
        for note in _notes():
            run.note(note)
        return None

    return why_no_effect


def _compile(module: Any) -> None:  # noqa: ANN401 - a module
    """Compile a module in place and as a whole, as `torch.compile(module)` does.

    `Module.compile` skips modules whose `forward` is torch's own, such as nn.Sequential: dynamo
    does not start in torch's functions, so their children would be compiled one by one.
    """
    if not str(type(module).forward.__module__).startswith("torch."):
        module.compile()
        return
    import torch  # noqa: PLC0415 - the user's own

    call = module._call_impl  # noqa: SLF001 - what Module.compile compiles

    def call_whole(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the module's
        return call(*args, **kwargs)

    module._compiled_call_impl = torch.compile(call_whole)  # noqa: SLF001 - as above


def _check_compiler() -> None:
    import torch  # noqa: PLC0415 - the user's own

    if torch.cuda.is_available():
        from importlib.util import find_spec  # noqa: PLC0415 - only here

        if find_spec("triton") is None:
            raise RefusedError("Triton is not installed: pip install triton")
        return
    from torch._inductor.cpp_builder import get_cpp_compiler  # noqa: PLC0415 - as above

    try:
        get_cpp_compiler()
    except Exception:  # noqa: BLE001 - torch's, of several types
        raise RefusedError("there is no C++ compiler here; install g++") from None


def _notes() -> list[str]:
    """Return sentences about graph breaks, with their lines, and recompilations."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return []
    breaks = [_place(each) for each in getattr(utils, "graph_break_reasons", ())]
    again = [
        f"{each.co_filename}:{each.co_firstlineno} ({each.co_name})"
        for each in utils.get_compilation_metrics()
        if _is_again(each)
    ]
    return [
        f"{len(places)} {noun}{'s' if len(places) > 1 else ''}: "
        + "; ".join(list(dict.fromkeys(places))[:_MAX_LISTED])
        for noun, places in (("graph break", breaks), ("recompilation", again))
        if places
    ]


def _is_again(metrics: Any) -> bool:  # noqa: ANN401 - dynamo's
    """Whether a user's frame was compiled before; its number is `frame/attempt_restart`."""
    attempt = str(getattr(metrics, "compile_id", "")).partition("/")[2].partition("_")[0]
    file = metrics.co_filename
    return attempt not in ("", "0") and bool(file) and not file.startswith(_PYPROF)


def _place(graph_break: Any) -> str:  # noqa: ANN401 - dynamo's
    frames = [f for f in graph_break.user_stack if "/torch/" not in f.filename]
    reason = str(graph_break.reason).partition("\n")[0]
    return f"{frames[-1].filename}:{frames[-1].lineno} ({reason})" if frames else reason
