"""The network whose training `generate.py` pretends: its ops, their kernels and texts.

Facts only: shapes, kernel names as CUDA 12 and PyTorch 2 write them, times as an A100 might take.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

TOKENS, WIDTH, HIDDEN = 4096, 1024, 4096
_DTYPE = "float16"

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel as it appears in a capture."""

    name: str
    duration_ns: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    aten: str = ""
    """The op inside the backward node that launches it, where there is one."""
    sizes: tuple[Shape, ...] = ()
    """That op's inputs."""


@dataclass(frozen=True)
class Op:
    """A forward call, and what its backward node launches."""

    mod: str
    name: str
    args: tuple[dict[str, object], ...]
    aten: str
    node: str
    forward: tuple[Kernel, ...]
    backward: tuple[Kernel, ...]
    sizes: tuple[Shape, ...]
    line: int
    flops: int = 0
    """Of the products alone, forward and backward together."""

    @property
    def marker(self) -> str:
        """The text that PyProf pushes around the call."""
        return repr({"mod": self.mod, "op": self.name, "args": list(self.args)})

    def trace(self, more: int = 0) -> str:
        """Format the stack that PyProf pushes for the call, with `more` frames in between."""
        between = [f"/home/user/blocks/nested_{place}.py:{self.line}" for place in range(more)]
        frames = ["/home/user/train.py:61", *between, f"/home/user/model.py:{self.line}"]
        return repr({"traceMarker": frames})


def _tensor(shape: Shape, name: str = "") -> dict[str, object]:
    return {"name": name, "type": "tensor", "shape": shape, "dtype": _DTYPE}


def _value(name: str, kind: str, value: object) -> dict[str, object]:
    return {"name": name, "type": kind, "value": value}


def _gemm(layout: str, rows: int, columns: int, inner: int) -> Kernel:
    name = f"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_{layout}"
    time_ns = rows * columns * inner * 2 // 220_000  # at 220 TFLOP/s
    return Kernel(name, time_ns, (columns // 128, rows // 128, 1), (128, 1, 1))


def _elementwise(kernel: str, count: int, passes: int) -> Kernel:
    name = (
        f"void at::native::vectorized_elementwise_kernel<(int)4, at::native::{kernel}"
        "(at::TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const::"
        "[lambda(c10::Half) (instance 1)], std::array<char *, (unsigned long)2>>(int, T2, T3)"
    )
    time_ns = count * 2 * passes // 1300  # at 1,300 GB/s
    return Kernel(name, time_ns, (count // 512, 1, 1), (128, 1, 1))


def _linear(rows: int, inner: int, columns: int, line: int) -> Op:
    x, weight, bias = (rows, inner), (columns, inner), (columns,)
    upstream = (rows, columns)
    to_input = _gemm("nn", rows, inner, columns)
    to_weight = _gemm("nt", columns, inner, rows)
    to_bias = Kernel(
        "void at::native::reduce_kernel<(int)128, (int)4, at::native::ReduceOp<c10::Half,"
        " at::native::func_wrapper_t<c10::Half, at::native::sum_functor<c10::Half, float,"
        " c10::Half>>, unsigned int, c10::Half, (int)4, (int)4>>(T3)",
        rows * columns * 2 // 1100,
        (columns // 128, 1, 1),
        (32, 16, 1),
        "aten::sum",
        (upstream, (), (), ()),
    )
    return Op(
        "torch.nn.functional",
        "linear",
        (_tensor(x), _tensor(weight), _tensor(bias)),
        "aten::addmm",
        "Addmm",
        (_gemm("tn", rows, columns, inner),),
        (
            replace(to_input, aten="aten::mm", sizes=(upstream, weight)),
            replace(to_weight, aten="aten::mm", sizes=((columns, rows), x)),
            to_bias,
        ),
        (bias, x, (inner, columns), (), ()),
        line,
        3 * 2 * rows * columns * inner,  # y, and the gradients of x and of the weight
    )


def _relu(shape: Shape, line: int) -> Op:
    count = shape[0] * shape[1]
    return Op(
        "torch.nn.functional",
        "relu",
        (_tensor(shape), _value("inplace", "bool", value=False)),
        "aten::relu",
        "Relu",
        (_elementwise("launch_clamp_scalar", count, 2),),
        (_elementwise("threshold_kernel_cuda", count, 3),),
        (shape,),
        line,
    )


def _layer_norm(rows: int, width: int, line: int) -> Op:
    shape = (rows, width)
    time_ns = rows * width * 4 // 1200

    def kernel(name: str, factor: int) -> Kernel:
        return Kernel(
            f"void at::native::<unnamed>::{name}<c10::Half, float>(int, T2, const T1 *, T1 *)",
            time_ns * factor,
            (rows, 1, 1),
            (32, 4, 1),
        )

    return Op(
        "torch.nn.functional",
        "layer_norm",
        (
            _tensor(shape),
            _value("normalized_shape", "tuple", (width,)),
            _tensor((width,), "weight"),
            _tensor((width,), "bias"),
            _value("eps", "float", 1e-05),
        ),
        "aten::native_layer_norm",
        "NativeLayerNorm",
        (kernel("vectorized_layer_norm_kernel", 1),),
        (
            kernel("layer_norm_grad_input_kernel_vectorized", 2),
            kernel("GammaBetaBackwardCUDAKernelTemplate", 1),
        ),
        (shape, (), (width,), (width,), ()),
        line,
    )


def _mse_loss(shape: Shape, line: int) -> Op:
    count = shape[0] * shape[1]
    mean = Kernel(
        "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<c10::Half,"
        " at::native::MeanOps<c10::Half, float, float, c10::Half>, unsigned int, c10::Half,"
        " (int)4, (int)4>>(T3)",
        count * 2 // 900,
        (1, 64, 1),
        (512, 1, 1),
    )
    return Op(
        "torch.nn.functional",
        "mse_loss",
        (_tensor(shape), _tensor(shape), _value("reduction", "str", "mean")),
        "aten::mse_loss",
        "MseLoss",
        (_elementwise("mse_kernel_cuda", count, 3), mean),
        (_elementwise("mse_backward_cuda_kernel", count, 4),),
        (shape, shape, ()),
        line,
    )


BLOCK = (
    _layer_norm(TOKENS, WIDTH, 31),
    _linear(TOKENS, WIDTH, HIDDEN, 32),
    _relu((TOKENS, HIDDEN), 33),
    _linear(TOKENS, HIDDEN, WIDTH, 34),
)
"""The ops of one block of the network, in forward order."""

LOSS = _mse_loss((TOKENS, WIDTH), 48)

BATCH_BYTES = TOKENS * WIDTH * 2

UPDATE = Kernel(
    "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::"
    "TensorListMetadata<(int)2>, at::native::<unnamed>::BinaryOpListAlphaFunctor<c10::Half,"
    " (int)2, (int)2, (int)0>, std::plus<float>, float>(T1, T2, T3...)",
    42_000,
    (320, 1, 1),
    (512, 1, 1),
)
"""A kernel of the optimizer's step."""

ALL_REDUCE = Kernel(
    "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    180_000,
    (24, 1, 1),
    (544, 1, 1),
)
"""The kernel that adds up the gradients of several ranks."""
