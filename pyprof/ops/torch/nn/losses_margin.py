"""Losses with a margin: of rankings, angles, triplets and classes; forward and backward.

As though one kernel did each: an element's and a row's operations, and the reduction at the end as
in `losses`. The backward passes compute only the gradients of the predictions. Bytes: all inputs
read once, the loss written once; backward the inputs and the incoming gradient read, each gradient
written.
"""

from dataclasses import dataclass

from pyprof.marker import Tensor
from pyprof.ops.examples import NN, Example, f16, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.torch.nn.losses import reduced, reduction
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.work import Args, Work, broadcast, fresh, like, row_count

FAMILY = "loss"

_X = f16(4, 6)
_LABELS = i64(4)
_CLASSES = i64(4, 6)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The inputs' names, and operations: forward an element and a row, backward an element."""

    inputs: tuple[str, str, str]
    each: int
    row: int | None
    """None if there is a loss for each element."""
    back: int
    gradients: int


_RULES = {
    # max(0, margin - y (x1 - x2)); compare and a sign for either
    "margin_ranking_loss": _Rule(("input1", "input2", "target"), 4, None, 4, 2),
    # three dot products; their root and quotient, 1 minus that, the margin and the choice
    "cosine_embedding_loss": _Rule(("input1", "input2", "target"), 6, TRANSCENDENTAL + 5, 12, 2),
    # two distances; two roots, their difference, the margin, the comparison
    "triplet_margin_loss": _Rule(
        ("anchor", "positive", "negative"), 6, 2 * TRANSCENDENTAL + 3, 9, 3
    ),
}
_PAIR = "Tensor input1, Tensor input2, Tensor target, float margin"
_TRIPLET = (
    "Tensor anchor, Tensor positive, Tensor negative, float margin, float p, float eps, bool swap"
)
_OLD = "any size_average, any reduce, str reduction"
_ATEN = "any reduction"
_NAMES = ("margin_ranking_loss", "cosine_embedding_loss")


# 4 operations, the sum and the quotient: 24 * 5 + 1; 3 * 24 read, 1 written of 2 bytes
@op(
    *_NAMES,
    signature=(f"{_PAIR}, {_OLD}", f"{_PAIR}, {_ATEN}"),
    example=Example((_X, _X, _X), flops=121, bytes=146, mod=NN),
)
# 6 operations an element, 43 and the sum for each of 4 rows, one quotient: 144 + 176 + 1; as above
@op(
    "triplet_margin_loss",
    signature=(f"{_TRIPLET}, {_OLD}", f"{_TRIPLET}, {_ATEN}"),
    example=Example((_X, _X, _X), flops=321, bytes=146, mod=NN),
)
def margin_loss(a: Args) -> Work:
    """A loss for each element, or for each row."""
    rule, inputs, broadcasted, losses = _compared(a)
    flops = rule.each * broadcasted.numel + (rule.row or 0) * losses
    return reduced(a, flops, losses, broadcasted.dtype, inputs)


# 4 for each of 24; 3 * 24 and go read, 2 * 24 written of 2 bytes
@op(*_NAMES, direction=BPROP, flops=96, bytes=242)
# 9 for each of 24; 3 * 24 and go read, 3 * 24 written of 2 bytes
@op("triplet_margin_loss", direction=BPROP, flops=216, bytes=290)
def margin_loss_backward(a: Args) -> Work:
    """The gradients of the compared inputs, but not of labels."""
    rule, inputs, broadcasted, losses = _compared(a)
    go = fresh((losses,) if reduction(a) == "none" else (), broadcasted.dtype)
    writes = tuple(map(like, inputs[: rule.gradients]))
    return Work(rule.back * broadcasted.numel, (*inputs, go), writes)


def _compared(a: Args) -> tuple[_Rule, tuple[Tensor, ...], Tensor, int]:
    """Return the rule, the inputs, what they broadcast to and the number of losses."""
    rule = _RULES[a.op]
    inputs = tuple(a.tensor(name) for name in rule.inputs)
    rows = inputs[:2] if a.op == "cosine_embedding_loss" else inputs
    broadcasted = fresh(broadcast(t.shape for t in rows), inputs[0].dtype)
    losses = broadcasted.numel if rule.row is None else row_count(broadcasted)
    return rule, inputs, broadcasted, losses


# --- of classes ---------------------------------------------------------------------------------
_MULTI = "Tensor input, Tensor target, any p, any margin, Tensor? weight"
_LABELLED = "Tensor input, Tensor target"


# less the target's 1, margin 1, comparison 1, sum 1: 24 * 4; over the classes 1 and the sum 1 for
# each of 4 rows, one quotient; 24 of 2 bytes and 4 of 8 read, 1 of 2 written
@op(
    "multi_margin_loss",
    signature=(f"{_MULTI}, {_OLD}", f"{_MULTI}, {_ATEN}"),
    example=Example((_X, _LABELS), flops=105, bytes=82, mod=NN),
)
def multi_margin(a: Args) -> Work:
    """Every class's score against the right one's."""
    x, target = a.tensor("input"), a.tensor("target")
    each = 5 if a.values.get("p") == 2 else 4  # noqa: PLR2004 - the square
    losses = row_count(x)
    return reduced(a, each * x.numel + losses, losses, x.dtype, (x, target, *a.present("weight")))


# compare 1, scale 1, the sum for the right class 1: 24 * 3; 24 and go of 2 bytes and 4 of 8 read,
# 24 of 2 written
@backward_of(multi_margin, flops=72, bytes=130)
@op(
    "aten::multi_margin_loss_backward",
    signature=f"Tensor grad_output, {_MULTI}, {_ATEN}",
    example=Example((f16(), _X, _LABELS, 1, 1, None, 1), flops=72, bytes=130),
)
def multi_margin_backward(a: Args) -> Work:
    """One sign for each class that is too near, their sum for the right one."""
    x, target = a.tensor("input"), a.tensor("target")
    losses = row_count(x)
    go = fresh((losses,) if reduction(a) == "none" else (), x.dtype)
    return Work(3 * x.numel, (go, x, target, *a.present("weight")), (like(x),))


# how many classes are right decides the comparisons; 24 of 2 bytes and 24 of 8 read, 1 of 2 written
@op(
    "multilabel_margin_loss",
    signature=(f"{_LABELLED}, {_OLD}", f"{_LABELLED}, {_ATEN}"),
    example=Example((_X, _CLASSES), bytes=242, mod=NN),
)
# and 24 marks of the right classes of 2 bytes
@op(
    "aten::multilabel_margin_loss_forward",
    signature=f"{_LABELLED}, {_ATEN}",
    example=Example((_X, _CLASSES, 1), bytes=290),
)
def multilabel_margin(a: Args) -> Work:
    """Each right class against each wrong one."""
    x, target = a.tensor("input"), a.tensor("target")
    work = reduced(a, 0, row_count(x), x.dtype, (x, target))
    marks = (like(x),) if a.op.endswith("_forward") else ()
    why = "how many labels there are depends on the data"
    return Work(None, work.reads, (*work.writes, *marks), no_flops=why)


@op(
    "multilabel_margin_loss",
    direction=BPROP,
    # 24, 24 marks and go of 2 bytes and 24 of 8 read, 24 of 2 written
    bytes=338,
)
@op(
    "aten::multilabel_margin_loss_backward",
    signature=f"Tensor grad_output, {_LABELLED}, {_ATEN}",
    example=Example((f16(), _X, _CLASSES, 1, _X), bytes=338),
)
def multilabel_margin_backward(a: Args) -> Work:
    """A sign for each pair that is too near."""
    x, target = a.tensor("input"), a.tensor("target")
    go = multilabel_margin(a).writes[0]
    why = "how many labels there are depends on the data"
    return Work(None, (go, x, target, like(x)), (like(x),), no_flops=why)
