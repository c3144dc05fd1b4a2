import importlib
import sys
import types
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
import torch

from pyprof.instrument import lifecycle
from pyprof.instrument.ops import compiled
from pyprof.marker import Call, Tensor
from tests.instrument.conftest import Recorder

SOURCE = 'extern "C" void kernel() { RECORD_FUNCTION("graph_0_cpp_fused_add_relu_0", {}); }'


class Later:
    """What Inductor gives while a kernel is being compiled."""

    def __init__(self, made: Callable[..., object]) -> None:
        self._made = made

    def result(self, timeout: float | None = None) -> Callable[..., object]:
        return self._made


class Inductor(types.ModuleType):
    def __init__(self, *, later: bool) -> None:
        super().__init__("inductor")

        class AsyncCompile:
            def cpp_pybinding(self, argtypes: list[str], source_code: str) -> Any:
                def made(*args: object) -> int:
                    return len(args)

                return Later(made) if later else made

        self.AsyncCompile = AsyncCompile


def kernel(source: str) -> Any:
    made = sys.modules[compiled.CPP].AsyncCompile().cpp_pybinding(["float*"], source)  # type: ignore[attr-defined]
    return made.result(timeout=1) if isinstance(made, Later) else made


@pytest.mark.parametrize("later", [False, True])
def test_a_compiled_kernel_has_a_marker_with_name_and_arguments(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, *, later: bool
) -> None:
    monkeypatch.setitem(sys.modules, compiled.CPP, Inductor(later=later))
    lifecycle.init(force=True)
    x = torch.ones(2, 3)
    recorder.clear()
    assert kernel(SOURCE)(x, x, 4) == 3
    (call,) = recorder.calls
    assert (call.mod, call.op) == ("cpp", "cpp_fused_add_relu_0")
    assert [getattr(arg, "shape", arg) for arg in call.args] == [(2, 3), (2, 3), 4]
    assert recorder.traces[-1][-1].startswith(__file__)
    lifecycle.stop()
    assert type(kernel(SOURCE)) is types.FunctionType


def test_a_kernel_without_a_name_is_left_alone(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile could not be tied to it."""
    monkeypatch.setitem(sys.modules, compiled.CPP, Inductor(later=False))
    lifecycle.init(force=True)
    kernel('extern "C" void kernel() {}')(1)
    assert recorder.calls == []


class Autotuner:
    """Stands for Inductor's launcher of a kernel in Triton."""

    inductor_meta = MappingProxyType({"kernel_name": "triton_poi_fused_add_0"})

    def run(self, *args: object, stream: int) -> tuple[int, int]:
        """Count the arguments; fail where there are none."""
        if not args:
            raise ValueError("nothing to launch")
        return len(args), stream


@pytest.mark.parametrize("stack", [False, True])
def test_a_triton_kernel_has_a_marker_with_name_and_arguments(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, *, stack: bool
) -> None:
    monkeypatch.setitem(sys.modules, compiled.CPP, types.ModuleType("inductor"))
    heuristics = types.SimpleNamespace(CachingAutotuner=Autotuner)
    monkeypatch.setitem(sys.modules, compiled.TRITON, heuristics)  # type: ignore[arg-type]
    plain = Autotuner.run
    lifecycle.init(force=True, stack=stack)
    assert Autotuner().run(torch.ones(2, 3), 6, stream=7) == (2, 7)
    (call,) = (call for call in recorder.calls if call.mod == "triton")
    assert call == Call("triton", "triton_poi_fused_add_0", (Tensor((2, 3), "float32"), 6))
    assert [depth for depth, text in recorder.pushed if "'mod': 'triton'" in text] == [stack]
    with pytest.raises(ValueError, match="nothing to launch"):
        Autotuner().run(stream=7)
    lifecycle.stop()
    assert Autotuner.run is plain


@pytest.mark.parametrize("backend", ["inductor", "eager"])
@pytest.mark.usefixtures("recorder")
def test_inductor_is_loaded_only_for_compiling(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    loaded: list[str] = []
    monkeypatch.delitem(sys.modules, compiled.CPP, raising=False)
    monkeypatch.setattr(torch, "compile", lambda **_: None)

    def load(name: str) -> object:
        loaded.append(name)
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", load)
    lifecycle.init(force=True)
    assert loaded == []
    assert torch.compile(backend=backend) is None  # where Inductor cannot be loaded, too
    torch.compile(backend=backend)
    assert loaded == ([compiled.CPP, compiled.TRITON] if backend == "inductor" else [])  # once
