"""Calls without gradients, of modules whose outputs no backward pass uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_OBSERVED = 3
"""Calls of a module that are observed, before it is called without gradients."""


@dataclass
class _Use:
    """What is known of a module's outputs."""

    calls: int = 0
    used: bool = False
    written: list[Any] = field(default_factory=list)
    """The outputs of the last call, with their versions then."""


@change("no-grad", code="with torch.no_grad():\n    outputs = model(inputs)")
def no_grad(run: Run) -> WhyNoEffect:
    """Call modules whose outputs no backward pass uses without gradients."""
    import torch  # noqa: PLC0415 - the user's own
    from torch.utils._pytree import tree_leaves  # noqa: PLC0415 - as above
    from torch.utils.weak import WeakIdKeyDictionary  # noqa: PLC0415 - as above

    uses: Any = WeakIdKeyDictionary()
    changed: list[None] = []

    def enter(call: Any) -> Any:  # noqa: ANN401 - the call of a module
        use = uses.setdefault(call.module, _Use())
        if any(tensor._version != version for tensor, version in use.written):  # noqa: SLF001 - torch's
            run.refuse("the script writes into the outputs in place")
        use.written = []
        unused = use.calls >= _OBSERVED and not use.used and torch.is_grad_enabled()
        if unused:
            changed.append(None)
        return torch.set_grad_enabled(torch.is_grad_enabled() and not unused)

    def observe(call: Any, output: Any) -> Any:  # noqa: ANN401 - the user's
        use = uses[call.module]
        if use.calls < _OBSERVED:
            tracked = [t for t in tree_leaves(output) if getattr(t, "requires_grad", False)]
            for tensor in tracked:
                tensor.register_hook(lambda _: setattr(use, "used", True))
            use.calls += bool(tracked)
            use.written = [(tensor, tensor._version) for tensor in tracked]  # noqa: SLF001 - as above
        return output

    run.calls.around.append(enter)
    run.calls.after.append(observe)
    return lambda: None if changed else "a backward pass uses the outputs of every module"
