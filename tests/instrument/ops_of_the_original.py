"""The calls that the original's acceptance suite made, with small tensors: op -> arguments."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so


class Made(NamedTuple):
    """One call: where it is found, under which name, with what."""

    home: Any
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Tensors:
    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __call__(self, *shape: int) -> torch.Tensor:
        """Return numbers from 0 to 1."""
        return torch.rand(shape).to(self.dtype)

    def index(self, high: int, *shape: int) -> torch.Tensor:
        return torch.randint(high, shape)


def call(name: str, *args: object, home: Any = F, **kwargs: object) -> Made:
    return Made(home, name, args, kwargs)


def convolutions(t: Tensors) -> Iterator[Made]:
    """Plain, with bias, stride, dilation, groups, padding, in one to three dimensions."""
    for dims in (1, 2, 3):
        name, sizes = f"conv{dims}d", (9,) * dims
        weight, three = t(4, 3, *(3,) * dims), t(2, 3, *sizes)
        yield call(name, three, weight)
        yield call(name, three, weight, bias=t(4))
        yield call(name, three, weight, stride=2)
        yield call(name, three, weight, dilation=2)
        yield call(name, t(2, 6, *sizes), weight, groups=2)
        yield call(name, three, weight, padding=2)
        name, weight, four = f"conv_transpose{dims}d", t(4, 6, *(3,) * dims), t(2, 4, *(5,) * dims)
        yield call(name, four, weight)
        yield call(name, four, weight, bias=t(6))
        yield call(name, four, weight, stride=2)
        yield call(name, four, weight, padding=2)
        yield call(name, four, weight, output_padding=2, dilation=3)
        yield call(name, four, weight, groups=2)
        yield call(name, four, weight, dilation=2)


def pools(t: Tensors) -> Iterator[Made]:
    """Average, maximum, adaptive, power-average, and their inverses."""
    for dims in (1, 2, 3):
        x = t(1, 4, *(12,) * dims)
        pooling = {"kernel_size": 5, "stride": 2, "padding": 2, "ceil_mode": True}
        yield call(f"avg_pool{dims}d", x, **pooling, count_include_pad=False)
        yield call(f"max_pool{dims}d", x, **pooling, return_indices=True)
        yield call(f"adaptive_avg_pool{dims}d", x, output_size=5)
        yield call(f"adaptive_max_pool{dims}d", x, output_size=5, return_indices=True)
        float32 = torch.rand(x.shape)
        pooled, indices = getattr(F, f"max_pool{dims}d")(float32, 2, return_indices=True)
        yield call(f"max_unpool{dims}d", pooled.to(t.dtype), indices, kernel_size=2)
    yield call("lp_pool1d", t(1, 4, 16), 2, 3, stride=2, ceil_mode=True)
    yield call("lp_pool2d", t(1, 4, 16, 16), 2, 3, stride=2, ceil_mode=True)


def activations(t: Tensors) -> Iterator[Made]:
    """Pointwise functions, in place and not, and the softmax family."""
    x = t(1, 3, 4, 4)
    for name in (
        "relu", "relu6", "selu", "logsigmoid", "tanhshrink", "softsign", "relu_",
    ):  # fmt: skip
        yield call(name, x.clone())
    for name, named in (
        ("threshold", {"threshold": 0.5, "value": 6.0}),
        ("threshold_", {"threshold": 0.5, "value": 6.0}),
        ("hardtanh", {"min_val": -1.0, "max_val": 1.0}),
        ("hardtanh_", {"min_val": -1.0, "max_val": 1.0}),
        ("elu", {"alpha": 1.0}), ("elu_", {"alpha": 1.0}), ("celu", {"alpha": 1.0}),
        ("leaky_relu", {"negative_slope": 0.01}), ("leaky_relu_", {"negative_slope": 0.01}),
        ("rrelu", {"lower": 0.125, "upper": 0.25, "training": False}),
        ("rrelu_", {"lower": 0.125, "upper": 0.25, "training": False}),
        ("glu", {"dim": -1}), ("hardshrink", {"lambd": 0.5}), ("softshrink", {"lambd": 0.5}),
        ("softplus", {"beta": 1, "threshold": 20}),
        ("softmin", {"dim": 1}), ("softmax", {"dim": 1}),
        ("log_softmax", {"dim": -1}), ("gumbel_softmax", {"tau": 1, "dim": -1}),
    ):  # fmt: skip
        yield call(name, x.clone(), **named)
    yield call("prelu", x, t(1))
    yield call("tanh", x, home=torch)
    yield call("sigmoid", x, home=torch)


def layers(t: Tensors) -> Iterator[Made]:
    """Norms, linear, dropouts, embeddings, distances."""
    x = t(2, 3, 4, 4)
    yield call("batch_norm", x, t(3), t(3), weight=None, bias=None, momentum=0.1, eps=1e-5)
    yield call("instance_norm", x, t(3), t(3), use_input_stats=True, momentum=0.1, eps=1e-5)
    yield call("layer_norm", x, x.size()[1:], weight=None, bias=None, eps=1e-5)
    yield call("local_response_norm", x, 2, alpha=1e-4, beta=0.75, k=1.0)
    yield call("normalize", x, p=2, dim=1, eps=1e-12, out=None)
    yield call("linear", t(4, 5, 6), t(7, 6), bias=None)
    for name in ("dropout", "alpha_dropout", "dropout2d"):
        yield call(name, x, p=0.5, training=True, inplace=False)
    yield call("dropout3d", t(2, 3, 4, 4, 4), p=0.5, training=True, inplace=False)
    words, table = t.index(10, 4, 3), t(10, 5)
    yield call("embedding", words, table, padding_idx=None, max_norm=None, norm_type=2.0)
    yield call("embedding_bag", words, table, offsets=None, mode="mean", sparse=False)
    yield call("one_hot", words, num_classes=10)
    yield call("pairwise_distance", t(4, 5), t(4, 5), p=2.0, eps=1e-6, keepdim=False)
    yield call("cosine_similarity", t(4, 5), t(4, 5), dim=1, eps=1e-8)
    yield call("pdist", torch.rand(4, 5), p=2)


def losses(t: Tensors) -> Iterator[Made]:
    """Every loss, as its documentation calls it."""
    a, b, sign = t(4, 5), t(4, 5), torch.tensor([1, -1, 1, -1])
    classes = t.index(5, 4)
    yield call("binary_cross_entropy", torch.rand(4, 5), torch.rand(4, 5))
    yield call("poisson_nll_loss", a, b, log_input=True, full=False, eps=1e-8, reduction="mean")
    yield call("cosine_embedding_loss", a, b, sign, margin=0, reduction="mean")
    yield call("cross_entropy", a, classes, weight=None, ignore_index=-100, reduction="mean")
    lengths = torch.full((2,), 6), torch.tensor([3, 4])
    log_probabilities = torch.rand(6, 2, 5).log_softmax(2)
    yield call("ctc_loss", log_probabilities, t.index(4, 2, 4) + 1, *lengths)
    yield call("hinge_embedding_loss", a, sign[:, None], margin=1.0, reduction="mean")
    for name in ("binary_cross_entropy_with_logits", "mse_loss", "smooth_l1_loss", "l1_loss"):
        yield call(name, a, b, reduction="mean")
    yield call("kl_div", a, b, reduction="batchmean")
    yield call("soft_margin_loss", a, b, reduction="mean")
    yield call("margin_ranking_loss", t(4), t(4), sign, margin=0, reduction="mean")
    yield call("multilabel_margin_loss", a, t.index(5, 4, 5), reduction="mean")
    yield call("multilabel_soft_margin_loss", a, b, reduction="mean")
    yield call("multi_margin_loss", a, classes, reduction="mean")
    yield call("nll_loss", a, classes, weight=None, ignore_index=-100, reduction="mean")
    yield call("triplet_margin_loss", a, b, t(4, 5), margin=1.0, p=2, swap=False)


def images(t: Tensors) -> Iterator[Made]:
    x = t(2, 8, 6, 6)
    yield call("unfold", x, (2, 3), dilation=2)
    yield call("unfold", x, (2, 3), padding=2)
    yield call("unfold", x, (2, 3), stride=2)
    yield call("fold", t(3, 20, 20), (4, 5), (1, 1))
    yield call("pixel_shuffle", x, 2)
    yield call("pad", x, (3, 3), mode="constant", value=0)
    yield call("interpolate", x, size=None, scale_factor=2, mode="nearest", align_corners=None)
    yield call("grid_sample", x, t(2, 5, 5, 2), mode="bilinear", padding_mode="zeros")
    yield call("affine_grid", t(2, 2, 3), (2, 8, 4, 4))
    yield call("bilinear", t(4, 5), t(4, 6), t(7, 5, 6))


FAMILIES: tuple[Callable[[Tensors], Iterator[Made]], ...] = (
    convolutions, pools, activations, layers, losses, images,
)  # fmt: skip
