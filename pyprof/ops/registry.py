"""The registered ops: which formula belongs to which op, and the families that group ops.

Filled by the `@op` of every module in this folder. There is no list of the modules: the folder is
scanned at the first look-up, and after it the entry points of the group `pyprof.ops`, so that a
package can bring formulas for its own ops.

Families group the ops of a report and help to classify kernels. A formula states its own where
it is registered, or its module states one for all of them by `FAMILY = "..."`. Which kernels of a
call do a family's arithmetic is decided in `pyprof.gpu.kernel_roles`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pyprof.ops.examples import Example
from pyprof.ops.work import EMPTY_CONTEXT, Args, CallContext, Work
from pyprof.process.messages import warn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

    from pyprof.marker import Call


OTHER = "other"

FAMILIES: Mapping[str, str] = {
    "gemm": "matrix products",
    "conv": "convolutions",
    "attention": "attention",
    "moe": "mixtures of experts",
    "rnn": "recurrent layers",
    "ssm": "state spaces",
    "norm": "normalization",
    "softmax": "softmax",
    "loss": "losses",
    "pointwise": "element-wise ops, activations",
    "quantization": "to and from narrow numbers",
    "reduction": "sums, means, extremes",
    "scan": "running sums and products",
    "pool": "pooling",
    "resample": "interpolation, sampling of grids, padding",
    "embedding": "embeddings and bags of them",
    "index": "gathering, scattering, sorting",
    "distance": "distances between vectors",
    "fft": "Fourier transforms",
    "linalg": "factorisations, solvers, spectra",
    "random": "random numbers, dropout",
    "optimizer": "optimizers, ops on lists of tensors",
    "comm": "communication",
    "copy": "copies, casts, joining",
    "fill": "fills",
    "view": "views, and the gradients of their parts",
    "fused": "ops that a compiler fused",
    OTHER: "unknown: every kernel that computes may do the arithmetic",
}
"""Every family, and what is in it."""


Formula: TypeAlias = Callable[[Args], Work]
F = TypeVar("F", bound=Formula)

FPROP, BPROP = "fprop", "bprop"
SPARSE = "sparse"
"""The direction of formulas for calls with sparse tensors, where an op has them."""

ATEN = {"aten", "", "prims", "torch.ops.aten"}  # the oldest emit_nvtx wrote no namespace
_BY_POSITION = ATEN | {
    *("c10d", "torchvision", "quantized", "flash_attn", "torch_attn", "inductor")
}
_TORCH = re.compile(
    r"(?:torch\.)?(?:Tensor|_TensorBase|nn\.functional|_C(?:\.\w+)*|_VF|special|linalg|fft|nn\.init)$"
    r"|torch$"
)
_INDUCTOR = re.compile(
    r"triton_(?:poi|red|per|tem|mix|for)_fused_\w+$|(?:graph_\d+_)?cpp_fused_\w+$"
)
_TEMPLATE = re.compile(r"triton_tem_|(?:graph_\d+_)?cpp_fused_\w*flex_attention")
"""Kernels written from a template; on a CPU, the name shows that of attention alone."""
_TEMPLATES = ("attention", "convolution")
_NUMBERED = {"sglang_profiler": re.compile(r"_\d+$")}
"""Namespaces whose ops have a number after the name, which differs between processes."""
_HOME = re.compile(r"(?:special|linalg|fft)_(?=\w)")
"""What ATen writes before the name of an op of `torch.special`, `torch.linalg`, `torch.fft`."""
_DUNDER = re.compile(r"__([ir]?)(\w+?)__$")
_DUNDER_NAMES = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "invert": "bitwise_not",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_WHOLE_DUNDERS = {"invert", "rpow", "rshift", "imag", "index", "int", "reversed", "real", "round"}


@dataclass(frozen=True, slots=True)
class OpModel:
    """A registered formula: the names of its ops, their arguments, and a worked example."""

    names: tuple[str, ...]
    direction: str
    signatures: tuple[str, ...]
    formula: Formula
    family: str = OTHER
    work: bool = True
    """False if the op moves and computes nothing, as a view does: the op around it counts."""
    example: Call | None = None
    flops: int | None = None
    bytes: int | None = None
    """The worked example: a call and its cost."""
    result: tuple[str, str] | None = None
    """An op that calls this one, and its argument of the same shape as this one's result."""
    context: CallContext = EMPTY_CONTEXT
    """What is known besides the worked example's arguments."""
    unrecorded: str = ""
    """Why its cost is always unknown: what no capture records. "" if it may be known."""

    @property
    def by_step(self) -> bool:
        """Whether its cost may depend on the requests of the serving step around it."""
        return self.context.batch is not None


_MODELS: dict[tuple[str, str], OpModel] = {}
_namespaces: set[str] = set()
"""Namespaces that libraries define for PyTorch's dispatcher: `_C` of `_C::rms_norm`."""
_scanned: set[str] = set()


def op(
    *names: str,
    signature: str | tuple[str, ...] = (),
    example: Example | Call | None = None,
    flops: int | None = None,
    bytes: int | None = None,  # noqa: A002 - the column's name
    direction: str = FPROP,
    family: str = "",
    work: bool = True,
    result: tuple[str, str] | None = None,
    context: CallContext = EMPTY_CONTEXT,
    unrecorded: str = "",
    replaces: bool = False,
) -> Callable[[F], F]:
    """Register a formula for the ops of these names, with a worked example that a test runs.

    A bare name (`linear`) covers every torch namespace: torch, Tensor, torch.nn.functional and
    aten, including in-place and operator forms. `aten::name` and `torch.nn.functional.name` cover
    that one alone and take precedence. Any other name is a library's: `mylib::name`,
    `MyModule.forward`. Several signatures are tried in turn. A backward formula is given the
    forward call; it takes the forward op's signature, example and family unless it has its own.
    With direction SPARSE a formula costs the calls that have a sparse tensor among their arguments.
    The cost of the example is its own, or `flops` and `bytes` for a plain Call and for the forward
    op's example. `context` is what that cost needs besides arguments: if it has a batch, each call
    gets the requests of its serving step. `unrecorded` is why no capture records what the cost
    depends on: the family is known, and the formula raises Unknown with that reason.
    `family` is one of `FAMILIES`, by default the `FAMILY` of the formula's module, else
    "other". Raises ValueError for an unknown family, and for a name that has a formula already
    unless it `replaces` that.
    """

    def register(formula: F) -> F:
        signatures = (signature,) if isinstance(signature, str) else signature
        forward = None if signatures else _forward(names)
        call, costs = forward.example if forward else None, (flops, bytes)
        if isinstance(example, Example):
            call, costs = example.call(names[0]), (example.flops, example.bytes)
        elif example is not None:
            call = example
        of_module = getattr(sys.modules.get(formula.__module__), "FAMILY", None)
        own_family = str(family or of_module or (forward.family if forward else OTHER))
        if own_family not in FAMILIES:
            known = ", ".join(FAMILIES)
            raise ValueError(f"no family {own_family!r} of ops; families are {known}")
        model = OpModel(
            names,
            direction,
            forward.signatures if forward else signatures,
            formula,
            own_family,
            work,
            call,
            *costs,
            result,
            context,
            unrecorded,
        )
        for name in names:
            key = (name.replace("::", "."), direction)
            if key in _MODELS and not replaces:
                other = _MODELS[key].formula
                raise ValueError(
                    f"op {name!r} ({direction}) has a formula already:"
                    f" {other.__module__}.{other.__qualname__}"
                )
            _MODELS[key] = model
            _namespaces.update(name.split("::")[:-1])
        return formula

    return register


def backward_of(
    forward: Formula,
    *,
    flops: int | None = None,
    bytes: int | None = None,  # noqa: A002 - the column's name
) -> Callable[[F], F]:
    """Register a formula for the backward passes of all ops whose formula is `forward`.

    `flops` and `bytes` are its cost for the example of each of them.
    """

    def register(formula: F) -> F:
        own = [m for m in _registered() if m.formula is forward and m.direction == FPROP]
        for model in own:
            op(*model.names, direction=BPROP, flops=flops, bytes=bytes, family=model.family)(
                formula
            )
        return formula

    return register


def _forward(names: tuple[str, ...]) -> OpModel:
    """Return the one forward op whose arguments describe the backward pass of these names."""
    models = {
        id(model): model
        for name in names
        if (model := _MODELS.get((name.replace("::", "."), FPROP)))
    }
    if len(models) != 1:
        raise ValueError(f"ops {', '.join(names)}: no signature, and no one forward op that has it")
    return next(iter(models.values()))


def find(call: Call, direction: str = FPROP) -> OpModel | None:
    """Return the model of a call's op; None if there is none."""
    _scan()
    for key in _keys(call.mod, call.op):
        if (model := _MODELS.get((key, direction))) is not None:
            return model
    return None


def models() -> list[OpModel]:
    """Return every registered formula once, in the order of registration."""
    _scan()
    return _registered()


def _registered() -> list[OpModel]:
    return list({id(model): model for model in _MODELS.values()}.values())


def by_position(call: Call) -> bool:
    """Whether a call holds every argument in its place, as ATen-level ones do."""
    return call.mod in _BY_POSITION or call.mod in _namespaces or "::" in call.mod


def _keys(mod: str, name: str) -> list[str]:
    name = name.partition(".")[0]  # an overload's name follows a dot: add.Tensor
    if counter := _NUMBERED.get(mod):
        name = counter.sub("", name)
    plain, _ = plain_name(name)
    keys = [f"{mod.replace('::', '.')}.{name}"]
    if _INDUCTOR.match(name):
        template = next((f"triton.tem_{kind}" for kind in _TEMPLATES if kind in name), "triton.tem")
        keys += [template if _TEMPLATE.match(name) else "triton.*"]
    elif mod == "triton":
        keys += ["triton.own"]
    if mod in ATEN:
        keys += [f"aten.{name}", f"aten.{plain}", name, plain]
    elif _TORCH.match(mod) and mod not in _namespaces:
        last = mod.rpartition("torch.")[2]
        keys += [f"{mod}.{plain}", f"{last}.{name}", f"{last}.{plain}", name, plain]
    return keys


def plain_name(name: str) -> tuple[str, bool]:
    """Return an op's name without namespace prefix, overload and operator marks; and if in place.

    `add` and True for `add_` and `__iadd__`, `add` and False for `__radd__`; `svd` of `linalg_svd`.
    """
    name = name.partition(".")[0]
    if home := _HOME.match(name):
        name = name[home.end() :]
    if dunder := _DUNDER.match(name):
        form, rest = dunder.groups()
        if form and form + rest in _WHOLE_DUNDERS:
            form, rest = "", form + rest
        return _DUNDER_NAMES.get(rest, rest), form == "i"
    if name.endswith("_") and not name.startswith("__"):
        return name[:-1], True
    return name, False


def _scan() -> None:
    if "folder" not in _scanned:
        _scanned.add("folder")
        package = importlib.import_module("pyprof.ops")
        for module in pkgutil.walk_packages(package.__path__, "pyprof.ops."):
            importlib.import_module(module.name)
    if "plugins" not in _scanned:
        _scanned.add("plugins")
        for entry in entry_points(group="pyprof.ops"):
            _load(entry)


def _load(entry: EntryPoint) -> None:
    """Load the formulas of another package; a failure never ends a report."""
    try:
        entry.load()
    except Exception as error:  # noqa: BLE001 - anything may go wrong in the code of others
        failure = (
            f"the formulas of {entry.value} cannot be loaded ({type(error).__name__}: {error})"
        )
        warn([f"{failure}; reports do not use them"])
