"""Tests of pyprof.instrument.ops.targets: what is wrapped, and what is not."""

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch.overrides import get_overridable_functions

from pyprof import marker
from pyprof.instrument.ops import targets

TARGETS = list(targets.find_targets())
NAMES = {(target.mod, target.name) for target in TARGETS}


def test_functions_that_launch_work_are_found() -> None:
    wanted = [
        "torch.relu", "torch.relu_", "torch.add", "torch.bmm", "torch.addmm",
        "torch.einsum", "torch.zeros", "torch.randn", "torch.tensor", "torch.arange",
        "torch.cat", "torch.where", "torch._foreach_add_", "torch._fused_adamw_",
        "torch._scaled_mm", "torch._int_mm", "torch.norm", "torch.softmax",
        "torch.dropout_", "Tensor.add", "Tensor.add_", "Tensor.to", "Tensor.contiguous",
        "Tensor.type", "Tensor.cpu", "Tensor.cuda", "Tensor.item", "Tensor.copy_",
        "Tensor.clone", "Tensor.half", "Tensor.__getitem__", "Tensor.__setitem__",
        "Tensor.__add__", "Tensor.__radd__", "Tensor.__iadd__", "Tensor.__matmul__",
        "Tensor.__rsub__", "Tensor.__lt__", "Tensor.__eq__", "Tensor.__invert__",
        "Tensor.__pow__", "Tensor.__neg__", "Tensor.new_zeros", "Tensor.reshape",
        "Tensor.expand", "Tensor.split", "Tensor.fill_", "Tensor.zero_",
        "Tensor.normal_", "torch.nn.functional.linear", "torch.nn.functional.conv2d",
        "torch.nn.functional.relu_", "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.functional.hardswish", "torch.nn.functional.cross_entropy",
        "torch.nn.functional.interpolate",
        "torch.nn.functional.multi_head_attention_forward", "torch.nn.functional.pad",
        "torch.linalg.norm", "torch.linalg.solve", "torch.fft.rfft",
        "torch.special.expit", "torch.nn.utils.clip_grad_norm_",
    ]  # fmt: skip
    if torch.distributed.is_available():
        wanted += [f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "send")]
    missing = [name for name in wanted if tuple(name.rsplit(".", 1)) not in NAMES]
    assert missing == []


def test_functions_that_launch_nothing_are_left_alone() -> None:
    never = {
        "__getattr__", "__getattribute__", "__torch_function__", "__torch_dispatch__", "__init__",
        "__new__", "__len__", "__bool__", "__hash__", "__repr__", "__iter__", "__deepcopy__",
        "__reduce_ex__", "__setstate__", "__array__", "__dlpack__", "__index__", "__format__",
        "size", "dim", "stride", "is_contiguous", "numel", "data_ptr", "is_tensor", "backward",
        "manual_seed", "save", "load", "compile", "no_grad", "set_grad_enabled", "get_rng_state",
        "is_grad_enabled", "view", "transpose", "detach", "register_hook", "has_torch_function",
        "handle_torch_function", "set_default_dtype", "vmap", "typename", "init_process_group",
    }  # fmt: skip
    assert never & {target.name for target in TARGETS} == set()


def test_every_overridable_function_is_wrapped_or_has_a_reason() -> None:
    found = {id(target.original) for target in TARGETS}
    lists = get_overridable_functions()
    unexplained = {
        name
        for home in (torch, F, torch.linalg, torch.fft, torch.special, torch.Tensor)
        for function in lists[home]
        if id(function) not in found
        for name in [getattr(function, "__name__", "")]
        if not name.startswith("__") and name not in targets._NO_WORK
    }
    # hidden ones, and names that a public function goes by inside torch
    assert {name for name in unexplained if not name.startswith("_")} <= {
        "autocast", "sym_float", "sym_int", "real", "imag", "log_sigmoid",
    }  # fmt: skip


def test_each_target_is_a_function_in_its_namespace() -> None:
    for target in TARGETS:
        assert getattr(target.home, target.name) is target.original
        assert callable(target.original)
        assert target.name not in marker.NOT_OPS
