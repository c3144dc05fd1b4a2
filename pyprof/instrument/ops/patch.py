"""Replaces torch's functions by wrappers, and restores every original.

Functions written in Python are wrapped in place: models keep references to them (`self.act =
F.relu`, defaults of torch's own transformer) and pickle them by name, which works only while the
same object is found under that name. So the object stays and gets code that calls an Op, which
calls a copy with the original code.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import torch
import torch.jit._builtins

from pyprof.instrument.ops.caller import hidden_code
from pyprof.instrument.ops.op import Op, call_packed, make_op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyprof.instrument.ops.targets import PatchTarget

_PLACE = "what to run"
"""The constant in `_template` that the function to run replaces."""
_ADDED = ("__wrapped__", "__prepare_scriptable__", "_torchdynamo_inline")
"""Attributes of functions that were wrapped, by us or by others."""


def can_swap(function: FunctionType) -> bool:
    """Whether a function can be wrapped in place: it has no closure and is not wrapped yet."""
    return function.__closure__ is None and not any(name in vars(function) for name in _ADDED)


def swap(function: FunctionType, target: PatchTarget) -> Callable[[], None]:
    """Wrap a function in place, and return a function that undoes it."""
    code = function.__code__
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
    copy.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(copy, function)
    vars(copy).pop("__wrapped__")
    op = make_op(*target._replace(original=copy))
    state: dict[str, Any] = {"__wrapped__": copy, "__prepare_scriptable__": lambda: copy}
    if f'"{function.__module__}.{function.__qualname__}"' not in _traced_by_name():
        state["_torchdynamo_inline"] = copy  # if dynamo traces into it, into the copy
    vars(function).update(state)
    function.__code__ = _make_code(call_packed(op), code)

    def undo() -> None:
        function.__code__ = code
        for added in state:
            vars(function).pop(added, None)

    return undo


def _make_code(run: object, like: CodeType) -> CodeType:
    """Return code that passes its arguments to `run`, with names and lines like another's."""
    names = {"co_name": like.co_name, "co_filename": like.co_filename}
    if hasattr(like, "co_qualname"):  # from Python 3.11 on
        names["co_qualname"] = like.co_qualname
    template = _template.__code__
    constants = tuple(run if constant == _PLACE else constant for constant in template.co_consts)
    code = template.replace(
        co_consts=constants,
        co_firstlineno=like.co_firstlineno,
        **names,  # type: ignore[arg-type]
    )
    return hidden_code(code)


def _template(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
    run: Any = "what to run"
    return run(args, kwargs)


@functools.cache
def _traced_by_name() -> str:
    """Return the source that lists the functions which torch.compile keeps in graphs by name.

    Read as text: importing it takes a second, and most programs compile nothing.
    """
    rules = Path(torch.__file__).parent / "_dynamo" / "trace_rules.py"
    return rules.read_text(encoding="utf-8") if rules.exists() else ""


_scriptable: Any = torch.jit._builtins._get_builtin_table  # noqa: SLF001 - the only such register
"""Returns the table of what torch.jit.script compiles functions to, by id."""


_POINTER = ctypes.sizeof(ctypes.c_void_p)
_AS_SEQUENCE = object.__basicsize__ + 11 * _POINTER  # PyTypeObject.tp_as_sequence
_ITEM = 3 * _POINTER  # PySequenceMethods.sq_item
_PY_SQ_ITEM = 44  # its number in the stable ABI
_get_slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(
    ("PyType_GetSlot", ctypes.pythonapi)
)


def _make_no_sequence(kind: type) -> None:
    """Let C code take a class for no sequence, as before its `__getitem__` was replaced.

    Python fills the slot that makes it one, and does not empty it when the attribute is restored.
    torch.tensor([loss, loss]) would then ask each loss for its length, which it does not have.
    """
    methods = ctypes.c_void_p.from_address(id(kind) + _AS_SEQUENCE).value
    if methods is None:
        return
    item = ctypes.c_void_p.from_address(methods + _ITEM)
    if item.value == _get_slot(kind, _PY_SQ_ITEM):  # the layout is as expected
        item.value = None


def subclasses(kind: type) -> Iterator[type]:
    """Yield the classes below a class."""
    below: type
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


class Patches:
    """The attributes replaced so far."""

    def __init__(self) -> None:
        self._undo = ExitStack()

    def replace(self, home: object, name: str, replacement: object) -> None:
        """Set an attribute and remember the original."""
        own = name in vars(home)  # an inherited one is removed again, not put back
        original = vars(home).get(name)
        setattr(home, name, replacement)

        def put_back() -> None:
            if vars(home).get(name) is not replacement:  # someone else replaced it
                return
            if own:
                setattr(home, name, original)
            else:
                delattr(home, name)

        self._undo.callback(put_back)

    def on_restore(self, undo: Callable[[], object]) -> None:
        """Have this called when every original is restored."""
        self._undo.callback(undo)

    def wrap_all(self, targets: Iterable[PatchTarget]) -> None:
        """Wrap each target; a function with several homes stays one object."""
        ops: dict[int, Op] = {}
        swapped: set[int] = set()
        for target in targets:
            if id(target.original) in swapped:
                continue
            if isinstance(target.original, FunctionType) and can_swap(target.original):
                swapped.add(id(target.original))
                self._undo.callback(swap(target.original, target))
                continue
            op = ops.get(id(target.original))
            if op is None:
                op = ops[id(target.original)] = make_op(*target)
            self.replace(target.home, target.name, op)
        self._keep_tensors_no_sequences()
        table = _scriptable()
        for op in ops.values():  # torch.jit.script compiles it to the same as its original
            compiled = table.get(id(op.__wrapped__))
            if compiled is not None:
                table[id(op)] = compiled
                self._undo.callback(table.pop, id(op), None)

    def _keep_tensors_no_sequences(self) -> None:
        """Do so for all classes that inherit `__getitem__`, now and later."""
        replaced = vars(torch.Tensor).get("__getitem__")

        def check(kind: type) -> None:
            if inspect.getattr_static(kind, "__getitem__") is replaced:
                _make_no_sequence(kind)

        def init_subclass(cls: Any, /, **options: Any) -> None:  # noqa: ANN401 - as the original
            super(torch.Tensor, cls).__init_subclass__(**options)  # type: ignore[misc] # untyped
            check(cls)

        self.replace(torch.Tensor, "__init_subclass__", classmethod(init_subclass))
        for kind in (torch.Tensor, *subclasses(torch.Tensor)):
            check(kind)

    def restore(self) -> None:
        """Restore every original, except where someone else replaced our wrapper."""
        self._undo.close()
