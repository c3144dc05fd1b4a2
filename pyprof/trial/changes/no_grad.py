"""Calls without gradients, of modules whose outputs no backward pass uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_LATER = "a backward pass uses outputs of several calls"
_OBSERVED = 3
"""Calls of a module that are observed, before it is called without gradients."""


@dataclass
class _Use:
    """What is known of a module's outputs."""

    calls: int = 0
    used: bool = False
    trained: bool = False
    """Whether an optimizer has its parameters: a later step may use what the first do not."""
    changed: bool = False
    written: list[Any] = field(default_factory=list)
    """The outputs of the last call, with their versions then."""


@change(
    "no-grad",
    code="with torch.no_grad():\n    outputs = model(inputs)",
    advised_by=("unused_gradients",),
)
def no_grad(run: Run) -> WhyNoEffect:
    """Call modules whose outputs no backward pass uses without gradients."""
    import torch  # noqa: PLC0415 - the user's own
    from torch.utils._pytree import tree_leaves  # noqa: PLC0415 - as above
    from torch.utils.weak import WeakIdKeyDictionary  # noqa: PLC0415 - as above

    uses: Any = WeakIdKeyDictionary()
    seen: list[_Use] = []
    optimized = _optimized_parameters()

    def enter(call: Any) -> Any:  # noqa: ANN401 - the call of a module
        if call.module not in uses:
            uses[call.module] = _Use()
            seen.append(uses[call.module])
        use = uses[call.module]
        if use.changed and use.used:
            run.refuse(_LATER)
        if any(tensor._version != version for tensor, version in use.written):  # noqa: SLF001 - torch's
            run.refuse("the script writes into the outputs in place")
        use.written = []
        unused = use.calls >= _OBSERVED and not (use.used or use.trained)
        unused = unused and torch.is_grad_enabled()
        use.changed |= unused
        return torch.set_grad_enabled(torch.is_grad_enabled() and not unused)

    def observe(call: Any, output: Any) -> Any:  # noqa: ANN401 - the user's
        use = uses[call.module]
        if use.calls < _OBSERVED:
            tracked = [t for t in tree_leaves(output) if getattr(t, "requires_grad", False)]
            for tensor in tracked:
                tensor.register_hook(lambda _: setattr(use, "used", True))
            use.calls += bool(tracked)
            use.trained = any(each in optimized for each in call.module.parameters())
            use.written = [(tensor, tensor._version) for tensor in tracked]  # noqa: SLF001 - as above
        return output

    run.calls.around.append(enter)
    run.calls.after.append(observe)
    return lambda: _why_no_effect(seen)


def _optimized_parameters() -> Any:  # noqa: ANN401 - torch's dictionary
    """Return the parameters that optimizers get from now on, without keeping them alive."""
    import torch  # noqa: PLC0415 - the user's own
    from torch.utils.weak import WeakTensorKeyDictionary  # noqa: PLC0415 - as above

    parameters: Any = WeakTensorKeyDictionary()
    add = torch.optim.Optimizer.add_param_group

    def note(optimizer: Any, group: Any) -> None:  # noqa: ANN401 - torch's
        add(optimizer, group)
        parameters.update(dict.fromkeys(optimizer.param_groups[-1]["params"]))

    torch.optim.Optimizer.add_param_group = note  # type: ignore[method-assign,assignment]
    return parameters


def _why_no_effect(uses: list[_Use]) -> str | None:
    if any(use.changed and use.used for use in uses):
        return _LATER
    if any(use.changed for use in uses):
        return None
    tracked = [use for use in uses if use.calls]
    if not tracked:
        return "no module is called with gradients"
    if any(use.used for use in tracked):
        return "a backward pass uses the outputs of every module"
    if any(use.trained for use in tracked):
        return "an optimizer trains every module"
    return "no module was called often enough"
