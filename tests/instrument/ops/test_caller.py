"""Warnings name the same line as without `init()`."""

import inspect
import threading
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody does
from torch import nn

import pyprof
from pyprof.instrument.ops.caller import caller, hide_frames


@pytest.fixture(autouse=True)
def _always() -> Iterator[None]:
    """Make C++ warn each time, not once in a process."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@pytest.fixture
def marked() -> Iterator[None]:
    pyprof.init(force=True)
    yield
    pyprof.stop()


class _Says(nn.Module):
    def forward(self, value: object) -> object:
        warnings.warn("of a module", stacklevel=4)  # past torch's own two frames
        return value


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, value: torch.Tensor) -> torch.Tensor:
        del ctx
        warnings.warn("of a function", stacklevel=3)
        return value


@pyprof.annotate("named")
def _annotated() -> None:
    warnings.warn("of what is annotated", stacklevel=2)


@pyprof.annotate("steps")
def _generator() -> Iterator[int]:
    warnings.warn("of a generator", stacklevel=2)
    yield 1


ONES = torch.ones(2, 2)
CASES: list[Callable[[], object]] = [
    lambda: torch.add(ONES, ONES, out=torch.ones(5)),  # from C++, of a function
    lambda: torch.ones(2, dtype=torch.complex64).to(torch.float32),  # of a method
    lambda: torch.tensor(ONES),
    lambda: F.softmax(ONES),  # from Python, with a depth of its own
    lambda: nn.Softmax()(ONES),  # the same from further inside
    lambda: F.mse_loss(ONES[:, :1], ONES[:, 0]),
    lambda: nn.MSELoss()(ONES[:, :1], ONES[:, 0]),
    lambda: F.upsample(torch.ones(1, 1, 2, 2), scale_factor=2),
    lambda: _Says()(1),
    lambda: _Function.apply(ONES),
    _annotated,
    lambda: list(_generator()),
]


def _blamed(case: Callable[[], object]) -> list[tuple[str, int, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        case()
    assert caught
    return [(each.filename, each.lineno, str(each.message)) for each in caught]


@pytest.mark.few(4)
@pytest.mark.parametrize("case", CASES)
def test_a_warning_names_the_users_line(
    case: Callable[[], object], request: pytest.FixtureRequest
) -> None:
    plain = _blamed(case)
    request.getfixturevalue("marked")
    assert _blamed(case) == plain


@pytest.mark.parametrize("module", [__name__, r"pyprof\..*"])
@pytest.mark.usefixtures("marked")
def test_filters_by_module(module: str) -> None:
    """A filter for the user's module applies to ops called from it; one for ours to nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=module)
        torch.ones(2, dtype=torch.complex64).to(torch.float32)
        F.softmax(ONES)
    assert len(caught) == (0 if module == __name__ else 2)


@pytest.mark.usefixtures("marked")
def test_a_warning_is_shown_once_per_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            F.softmax(ONES)
            F.softmax(ONES)
    assert len({each.lineno for each in caught}) == len(caught) == 2


def test_a_namespace_of_exec_is_not_kept_alive() -> None:
    """Only its name is kept, which the warning shows."""

    class Large:
        pass

    space = {"__name__": "elsewhere", "caller": caller, "warn": warnings.warn, "large": Large()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile("\n\nrun = caller(1)\nrun(warn, ('x',), {})", "made.py", "exec"), space)  # noqa: S102
    assert [(each.filename, each.lineno) for each in caught] == [("made.py", 3)]
    assert space["run"].__globals__.keys() <= {"__name__", "__warningregistry__", "__builtins__"}  # type: ignore[attr-defined]


def test_a_thread_that_calls_nothing_but_an_op() -> None:
    """It has no frame of the user's; the op is still called."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(caller(99)(len, ("four",), {})))
    thread.start()
    thread.join()
    assert found == [4]


def test_a_skipped_function_keeps_its_file() -> None:
    def function() -> None:
        """Do nothing."""

    assert hide_frames(function) is function
    assert function.__code__.co_filename.startswith(__file__)


@pytest.mark.parametrize(
    "get", [lambda: F.relu, lambda: nn.Module.__call__, lambda: nn.Flatten().__call__, lambda: len]
)
def test_a_wrapper_has_the_source_of_the_original(
    get: Callable[[], Callable[..., object]], request: pytest.FixtureRequest
) -> None:
    def source() -> str | None:
        try:
            return inspect.getsourcefile(get())
        except TypeError:
            return "none"

    before = source()
    request.getfixturevalue("marked")
    assert source() == before
