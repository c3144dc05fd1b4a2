"""A function of torch with ranges around each call, otherwise indistinguishable from it.

An `Op` takes the place of the original, so it must pass for it: equal and of equal hash (torch and
its users keep tables keyed by function, filled before and after), the same for `inspect`, copied
and pickled like it. It names the original for `torch.compile` to trace and `torch.jit` to compile.
Calls that tensor subclasses, modes or torch's tracers handle are left to them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch
from torch.overrides import _get_overloaded_args, handle_torch_function

from pyprof.instrument.ops import process_groups
from pyprof.instrument.ops.caller import caller, hide_frames, keep_uncompiled
from pyprof.instrument.ops.payload import NOTHING, op_head, overridden
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.ranges.open_ranges import THREAD
from pyprof.instrument.ranges.stack import find

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.instrument.ops.process_groups import Text

Overridable: TypeAlias = Literal["never", "by modes", "by arguments"]
"""What may take over a call of a function (`__torch_function__`): modes, or arguments, too."""

_get_mode = torch._C._get_dispatch_mode  # noqa: SLF001 - no public way
_TRACERS = tuple(
    getattr(torch._C._TorchDispatchModeKey, name)  # noqa: SLF001 - as above
    for name in ("FAKE", "PROXY", "FUNCTIONAL")
)
_DEFAULT = torch.Tensor.__torch_function__.__func__  # type: ignore[attr-defined]


def overriding_args(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the arguments with a `__torch_function__` of their own, in order."""
    overriding: list[Any] = []
    for value in (*args, *kwargs.values()):
        items = value if type(value) in _SEQUENCES else (value,)
        overriding += [
            item
            for item in items
            if type(item) not in _PLAIN_TENSORS and hasattr(type(item), "__torch_function__")
        ]
    return tuple(overriding)


def is_redispatched(arguments: Sequence[Any]) -> bool:
    """Whether the op will be called again, so that its range need not open yet.

    `torch.Tensor.__torch_function__`, which most subclasses inherit, does that, and so does a mode
    that lets an op pass. Modes are asked first.
    """
    return overridden(NOTHING) or all(
        getattr(type(value).__torch_function__, "__func__", None) is _DEFAULT
        for value in _get_overloaded_args(arguments)
    )


_is_tracing = torch._C._is_tracing  # noqa: SLF001 - torch.jit.is_tracing() costs three times this
_dispatch_modes = torch._C._len_torch_dispatch_stack  # noqa: SLF001 - no public way

_getframe = sys._getframe  # noqa: SLF001 - the cheap way

_SEQUENCES = frozenset({list, tuple})
_PLAIN_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})

WITH_STACK = [True]
"""Whether to emit trace markers; a list, to be changed in place."""


def is_disabled() -> bool:
    """Whether no range may open: nothing records it, or torch traces instead of running.

    Then (fake tensors, make_fx, export, compilation) no work is launched, and asking for a symbolic
    size would specialise it.
    """
    recording = EMITTER.recording
    return (
        EMITTER.push is None
        or (recording is not None and not recording())
        or _is_tracing()
        or (_dispatch_modes() > 0 and any(_get_mode(key) is not None for key in _TRACERS))
    )


class Op:
    """A callable that calls the original inside its ranges."""

    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]
    """A slot: Python calls its value directly."""

    def __init__(
        self,
        original: Callable[..., Any],
        home: object,
        name: str,
        mod: str,
        *,
        overridable: Overridable,
    ) -> None:
        state = self.__dict__
        state["__wrapped__"] = original
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            state[attribute] = getattr(original, attribute, None)
        state["_torchdynamo_inline"] = original
        state["__prepare_scriptable__"] = lambda: original
        state["_pyprof"] = (home, name)
        wrap = _wrap_python if type(original) is FunctionType else _wrap_builtin
        text_of = process_groups.text_of(original, mod, name)
        call = wrap(self, op_head(mod, name), text_of, overridable)
        vars(call)["_torchdynamo_inline"] = original  # methods of tensors are made of it
        _CALL.__set__(self, functools.update_wrapper(call, original, updated=()))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # noqa: ANN401 - what isinstance() is to see
        return type(self.__dict__["__wrapped__"])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the original
        return getattr(self.__dict__["__wrapped__"], name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        mine = self.__wrapped__
        if isinstance_op(other):
            return bool(mine == other.__wrapped__)  # type: ignore[attr-defined]
        return bool(mine == other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __copy__(self) -> Op:
        return self

    def __deepcopy__(self, memo: object) -> Op:
        return self

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        """Pickle as the public name, which the reader may resolve to the original."""
        home, name = self._pyprof
        return getattr, (_ModuleName(home.__name__) if isinstance(home, ModuleType) else home, name)


_CALL: Any = vars(Op)["__call__"]
"""The slot itself: what is set on an Op by name is set on its original."""


class BindingOp(Op):
    """An Op whose original becomes a method when found on a class."""

    @keep_uncompiled
    def __get__(self, instance: object, owner: type | None = None) -> Any:  # noqa: ANN401 - a method
        return self if instance is None else MethodType(self.__call__, instance)


class _ModuleName:
    """Pickles a module by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.name,)


def call_packed(op: Op) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Return a function that calls an op with its arguments as a tuple and a dict.

    To be called by the function that the program calls: the caller's caller counts as the user's.
    """
    packed = op.__dict__.get("_pyprof_packed")
    if packed is not None:  # the original is written in Python
        return packed  # type: ignore[no-any-return]
    call = _CALL.__get__(op)
    return hide_frames(lambda args, kwargs: call(*args, **kwargs))


def _wrap_builtin(op: Op, head: str, text_of: Text, override: Overridable) -> Callable[..., Any]:
    """Return a function that calls a builtin inside its ranges, on behalf of the user's frame."""
    original = op.__wrapped__
    dispatches = isinstance(original, BuiltinFunctionType)
    never, by_modes = (override == each for each in ("never", "by modes"))

    @keep_uncompiled
    @hide_frames
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        function = original
        if not never and (overridden(NOTHING) if by_modes else _is_overridden(args, kwargs)):
            relevant = () if by_modes else overriding_args(args, kwargs)
            if dispatches:
                function = functools.partial(handle_torch_function, op, relevant)
            if is_redispatched(relevant):
                return caller(2)(function, args, kwargs)
        push = EMITTER.push
        if push is None or is_disabled():
            return caller(2)(function, args, kwargs)
        here, pop = THREAD.here, EMITTER.pop
        outer = here.trace
        if WITH_STACK[0]:
            stack = find(2, here.frame, here.within)
            run, trace = stack.run, stack.text or outer
        else:
            run, trace = caller(2), outer
        traced = named = False
        try:
            if trace is not outer:  # else already open around us
                push(trace)
                traced = True
                here.trace = trace
            push(text_of(head, args, kwargs))
            named = True
            return run(function, args, kwargs)
        finally:
            here.trace = outer
            if named:
                pop()
            if traced:
                pop()

    return call


def _wrap_python(op: Op, head: str, text_of: Text, override: Overridable) -> Callable[..., Any]:
    """Return a function that calls a Python function inside its ranges."""
    function = op.__wrapped__
    overridable = override != "never" and not _dispatches_to_itself(function)

    @hide_frames
    def packed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - as the original
        push = EMITTER.push
        if (
            push is None
            or is_disabled()
            or (
                overridable
                and _is_overridden(args, kwargs)
                and is_redispatched(overriding_args(args, kwargs))
            )
        ):
            return function(*args, **kwargs)
        here, pop = THREAD.here, EMITTER.pop
        frame, within, outer = here.frame, here.within, here.trace
        traced = named = False
        try:
            if WITH_STACK[0]:
                stack = find(3, frame, within)
                trace = stack.text
                if trace is not outer and trace:
                    push(trace)
                    traced = True
                    here.trace = trace
                here.frame, here.within = _getframe(), stack  # it may call ops in its turn
            push(text_of(head, args, kwargs))
            named = True
            return function(*args, **kwargs)
        finally:
            here.frame, here.within, here.trace = frame, within, outer
            if named:
                pop()
            if traced:
                pop()

    @hide_frames
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        return packed(args, kwargs)

    for ours in (packed, call):
        keep_uncompiled(ours, callees=False)  # the function itself may be compiled
    op.__dict__["_pyprof_packed"] = packed
    return call


def _dispatches_to_itself(function: FunctionType) -> bool:
    """Whether a function passes itself to `__torch_function__`, not what its name stands for now.

    So do operators of tensors that torch writes in Python, as `__pow__`: a mode, for example a
    default device, then calls the original.
    """
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty cell
            if cell.cell_contents is function:
                return True
    return False


@keep_uncompiled
def _is_overridden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether arguments or a mode override the call (`__torch_function__`).

    They receive the Op as the function, since that is what they find under its name; torch would
    pass the original.
    """
    if overridden(args) or (kwargs and overridden(tuple(kwargs.values()))):
        return True
    for arg in args:  # noqa: SIM110 - any() costs twice this
        if type(arg) in _SEQUENCES and arg and overridden(arg):
            return True
    return False


def isinstance_op(value: object) -> bool:
    """Whether a value is an Op; `isinstance` is deceived by its `__class__`."""
    return issubclass(type(value), Op)


def make_op(
    original: Callable[..., Any],
    home: object,
    name: str,
    mod: str,
    overridable: Overridable = "never",
) -> Op:
    """Wrap the function found at `home.name` in an Op; `mod` is its home's name in markers."""
    binds = isinstance(original, FunctionType) or hasattr(type(original), "__get__")
    return (BindingOp if binds else Op)(original, home, name, mod, overridable=overridable)
