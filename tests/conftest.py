"""Fixtures of all tests: terminal width, hypothesis' effort, the folder of real captures."""

import gc
import multiprocessing
import os
import pkgutil
import signal
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import HealthCheck, settings

from pyprof.inputs import processes
from tests import forks
from tests.analysis import captured

# A test has one core: others run beside it, and tensors as small as those here gain nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

# Hundreds of processes begin here, and each would compile its imports again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell lets what it runs in the background ignore Ctrl-C, and nohup that a terminal is closed;
# some tests send both to programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What helpers assert says what they found, as in tests.
_HELPERS = {f"tests.{path.stem}" for path in Path(__file__).parent.iterdir()}
pytest.register_assert_rewrite(*_HELPERS - sys.modules.keys())

CAPTURES = Path(__file__).resolve().parents[1] / ".." / "shared" / "captures"

WORKERS = 2
LARGE_BYTES = 1 << 18
"""A trace of this size, compressed, is 6 MB to read."""


def real(paths: Iterable[Path]) -> list[ParameterSet]:
    """Make parameters of real captures; what tests of large ones show, others show faster."""
    found = []
    for path in sorted(paths):
        is_large = path.suffix == ".gz" and path.exists() and path.stat().st_size > LARGE_BYTES
        marks = pytest.mark.long if is_large else ()
        found.append(pytest.param(path, marks=marks, id=f"{path.parent.name}-{path.name}"))
    return found


def long_except(values: Iterable[str], *kept: str) -> list[ParameterSet]:
    """Make parameters of texts; those that are kept show most of what the others, long ones, do."""
    return [pytest.param(text, marks=() if text in kept else pytest.mark.long) for text in values]


settings.register_profile("dev", max_examples=10, deadline=None)
settings.register_profile(
    "ci",
    max_examples=25,
    deadline=None,  # a shared machine may stop at any moment
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make `long` what `few` leaves out of a test's parameters; those kept are evenly spaced.

    Whatever the order in which tests run, which may be random, the same ones are kept.
    """
    families: dict[str, list[pytest.Function]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("long"):
            assert isinstance(item, pytest.Function)
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for family in families.values():
        family.sort(key=lambda item: (*item.callspec.indices.values(), item.nodeid))
        (count,) = next(family[0].iter_markers("few")).args
        kept = {len(family) * place // count for place in range(count)}
        for place, item in enumerate(family):
            if place not in kept:
                item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Exclude the tests and all that they import from garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    forks.stop()


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    """Share two workers among the tests of a module."""
    spawn = multiprocessing.get_context("spawn")
    own = processes.Processes._start_pool

    def started(executor: processes.Processes, captures: int) -> ProcessPoolExecutor:
        return pool if executor._workers == WORKERS else own(executor, captures)

    with (
        ProcessPoolExecutor(
            WORKERS, spawn, initializer=processes._prepare, initargs=(spawn.Event(), 1)
        ) as pool,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(processes.Processes, "_start_pool", started)
        yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the test's own folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return a capture of four steps on an A100: a copy, elementwise ops, a kernel of nobody."""
    return captured.capture(tmp_path / "net.sqlite", steps=4)


@pytest.fixture
def nothing_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what `pyprof peaks` measures in an empty folder of the user's settings."""
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set every test, and what it starts, up with a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


PATCHED = (
    *("torch", "torch:Tensor", "torch:autocast", "torch.amp:GradScaler", "torch.autograd"),
    *("torch.autograd.profiler", "torch.cuda", "torch.cuda.memory", "torch.cuda.profiler"),
    *("torch.nn:Module", "torch.nn.functional"),
    *("torch.optim.optimizer:Optimizer", "torch.profiler:profile"),
)
"""Modules and classes whose functions pyprof replaces in a script's process."""


def _functions() -> dict[tuple[str, str], object]:
    return {
        (owner, name): value
        for owner in PATCHED
        if owner.split(":")[0] in sys.modules
        for name, value in vars(pkgutil.resolve_name(owner)).items()
        if callable(value)
    }


def _is_installed(function: object) -> bool:
    """Whether another package defines it: torch._dynamo and Lightning replace some on import."""
    code = getattr(function, "__code__", None)
    return code is not None and "site-packages" in Path(code.co_filename).parts


@pytest.fixture(autouse=True, scope="module")
def _torch_is_left_as_it_was() -> Iterator[None]:
    """Fail the last test of a module that leaves functions of torch replaced for later ones."""
    before = _functions()
    yield
    replaced = [
        ".".join(key)
        for key, function in _functions().items()
        if function is not before.get(key, function) and not _is_installed(function)
    ]
    assert not replaced, f"left by the tests of this module: {', '.join(replaced)}"


@pytest.fixture(scope="session")
def captures() -> Path:
    if not CAPTURES.is_dir():
        pytest.skip("no folder of real captures beside the project")
    return CAPTURES.resolve()
