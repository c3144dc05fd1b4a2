"""What a range states: a text whose parts are decoded once, when first asked for."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

from pyprof.marker.decode import decode_name, decode_op, decode_seq, decode_trace
from pyprof.marker.kind import NOT_OPS, classify
from pyprof.marker.model import CLOSURE, DDP, EVALUATE, STOPPED, Call, Kind, is_backward

_OLD_NODE = re.compile(r"(?:Backward|_backward), seq = ")
_NODE = re.compile(r"Backwards?\d*(?:_copy)?$")
_CUSTOM_NODE = "torch::autograd::CppNode<"
"""A function of a C++ extension: nothing records its forward under a name of its own."""
_OWN_MARKER = re.compile(r"\{.mod.(?!: .(?:c10d|triton)\b)")
"""Readers also write markers, for collectives and Triton kernels; pyprof.init() marks every op."""
_NUMBER = re.compile(r", (?:seq|op_id) = (?:-?\d+)?")


class Statement:
    """What one or more ranges state. Statements of equal texts are equal.

    `text` may lack the numbers that differ from call to call (see `templates`).
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Statement) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Statement({self.text!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return statement, (self.text,)

    @cached_property
    def kind(self) -> Kind:
        """Which kind of marker the text is."""
        return classify(self.text)

    @cached_property
    def marked_call(self) -> Call | None:
        """The call that an op marker describes; None for any other text."""
        return decode_op(self.text)

    @cached_property
    def call(self) -> Call | None:
        """The call of an op marker or of one of PyTorch's own ranges; None for the engine's."""
        return self.marked_call if self.kind == Kind.OP else decode_seq(self.text).call

    @cached_property
    def names_op(self) -> bool:
        """Whether it is an op marker that names an op."""
        return self.marked_call is not None and self.marked_call.op not in NOT_OPS

    @property
    def is_ddp(self) -> bool:
        """Whether it is DDP's op marker, which states its process group."""
        call = self.marked_call
        return call is not None and (call.mod, call.op) == DDP

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """The `file:line` frames of a trace marker, outermost first; () for any other text."""
        return decode_trace(self.text)

    @property
    def optimizer(self) -> str:
        """The optimizer's name in PyTorch's range around its step; "" around its closure."""
        return "" if self.text == CLOSURE else self.text.partition("#")[2]

    @property
    def tells_shapes(self) -> bool:
        """Whether ops of its kind have shapes: one of PyTorch's with sizes, or a marker of ours."""
        return ", sizes = [" in self.text or _OWN_MARKER.match(self.text) is not None

    # --- PyTorch's own ranges

    @cached_property
    def name(self) -> str:
        """The name of one of PyTorch's own ranges; any other text whole."""
        return decode_name(self.text)

    @cached_property
    def node(self) -> str:
        """The name of the op or autograd node, without the engine's prefix."""
        return self.name.removeprefix(EVALUATE)

    @cached_property
    def has_seq(self) -> bool:
        """Whether it has a sequence number."""
        return ", seq = " in self.text

    @cached_property
    def has_op_id(self) -> bool:
        """Whether it has an id, as all ops have since 2022."""
        return ", op_id = " in self.text

    @cached_property
    def is_engine(self) -> bool:
        """Whether it is the engine's range around a backward node."""
        return self.text.startswith(EVALUATE)

    @cached_property
    def is_node(self) -> bool:
        """Whether it is a backward node, not the engine's range around it."""
        name = self.name.split(", ", 1)[0]
        return name.startswith(_CUSTOM_NODE) or (
            _NODE.search(name) is not None and not name.startswith("autograd::engine")
        )

    @cached_property
    def is_backward(self) -> bool:
        """Whether what lies in it belongs to a backward pass."""
        return is_backward(self.name)

    @cached_property
    def is_old_node(self) -> bool:
        """Whether it is a backward node with the name that the first PyTorch versions gave it."""
        return _OLD_NODE.search(self.text) is not None and not self.is_engine

    @cached_property
    def is_checkpoint(self) -> bool:
        """Whether it is the node of reentrant checkpointing, which runs forward ops again."""
        return "CheckpointFunctionBackward" in self.name

    @property
    def accumulates(self) -> bool:
        """Whether it is the node that adds to a parameter's gradient."""
        return self.name.endswith("AccumulateGrad")

    @property
    def has_number(self) -> bool:
        """Whether its sequence number means something: before 2022 all ops had one."""
        return self.has_seq and self.has_op_id and not self.is_engine

    @property
    def is_subclass(self) -> bool:
        """Whether it is around the Python code by which a tensor subclass replaces an op."""
        return self.name == "PythonSubclass"

    @property
    def is_stopped(self) -> bool:
        """Whether it is an op that began and never ran."""
        return self.text.endswith(STOPPED)


@lru_cache(maxsize=1 << 18)
def statement(text: str) -> Statement:
    """Return the statement of a text, the same object for the same text."""
    return Statement(text)


def unnumbered(text: str) -> str:
    """Return a text without its sequence number and id."""
    return _NUMBER.sub("", text)
