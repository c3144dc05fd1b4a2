import _thread
import contextlib
import sys
import threading
import weakref
from collections.abc import Iterator
from random import Random
from types import FrameType

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so

import pyprof
from pyprof import marker
from pyprof.instrument.ops import caller
from pyprof.instrument.ranges import open_ranges, stack
from tests.instrument.conftest import Recorder


def here() -> FrameType:
    return sys._getframe(1)


def made(file: str) -> str:
    """Return the trace of code that is made on the fly, in a file of this name."""
    space = {"trace": lambda: stack.find(2).text}
    exec(compile("text = trace()", file, "exec"), space)  # noqa: S102 - as it says
    return str(space["text"])


def test_frames_are_outermost_first_with_the_line_that_runs() -> None:
    text = stack.find(1).text; line = here().f_lineno  # fmt: skip # noqa: E702
    assert marker.decode_trace(text)[-1] == f"{__file__}:{line}"
    functions = marker.decode_functions(text)
    assert functions[-1] == "test_frames_are_outermost_first_with_the_line_that_runs"
    assert len(functions) == len(marker.decode_trace(text))


def test_two_lines_of_one_function_differ() -> None:
    """A cached stack is not reused for the next call."""
    first = marker.decode_trace(stack.find(1).text)[-1]
    second = marker.decode_trace(stack.find(1).text)[-1]
    assert first != second
    lines = {marker.decode_trace(stack.find(1).text)[-1] for _ in range(3)}
    assert len(lines) == 1


def test_deep_stacks_are_bounded() -> None:
    def recurse(left: int) -> str:
        return recurse(left - 1) if left else stack.find(1).text

    frames = marker.decode_trace(recurse(500))
    assert len(frames) == stack.MAX_FRAMES
    assert len(set(frames)) == 1


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs may generate code."""
    monkeypatch.setattr(stack, "_MAX_STACKS", 10)
    stack.forget()
    for number in range(50):
        assert marker.decode_trace(made(f"made_{number}.py"))[-1] == f"made_{number}.py:1"
    assert len(stack._stacks) <= 10


def test_surrogates_in_a_file_name_are_replaced() -> None:
    """Tools could not take them."""
    assert made("odd\udcff.py").encode()


def test_frames_of_a_prompt_are_the_users() -> None:
    """Interactive sessions have no file."""
    for name in ("<stdin>", "<ipython-input-3-abc>", "<string>"):
        assert marker.decode_trace(made(name))[-1] == f"{name}:1"


def test_frames_of_torch_of_ours_and_of_generated_code_are_not_the_users() -> None:
    assert stack.is_users(__file__)
    assert stack.is_users("/home/me/torch_model.py")
    assert not stack.is_users(torch.nn.functional.__file__)
    assert not stack.is_users(stack.__file__)
    assert not stack.is_users(caller.__file__)
    assert not stack.is_users("<frozen runpy>")
    assert not stack.is_users("/cache/torchinductor_me/ab/cabc.py")


class Box:
    """An argument that reports when it is released."""


def ignore(box: object) -> None:
    """Do nothing."""


def test_without_a_users_frame_there_is_no_trace(listening: Recorder) -> None:
    """A thread may call only an op or a module."""
    pyprof.wrap(sys.modules[__name__], "ignore")
    for target in (ignore, torch.nn.Identity()):
        box, over = Box(), threading.Semaphore(0)
        weakref.finalize(box, over.release)
        _thread.start_new_thread(target, (box,))
        del box
        assert over.acquire(timeout=60)
    assert (listening.layers, listening.ops) == (["Identity"], ["ignore"])
    assert listening.traces == []


def test_stacks_that_lead_to_one_instruction_differ() -> None:
    def inner(left: int) -> str:
        return inner(left - 1) if left else stack.find(1).text

    def first() -> str:
        return inner(0)

    def second() -> str:
        return inner(0)

    for _ in range(2):
        for way in (first, second):
            assert marker.decode_functions(way())[-2:] == (way.__name__, "inner")
    for left in (3, 1, 2, 1, 3):
        assert marker.decode_functions(inner(left)).count("inner") == left + 1


def test_a_trace_inside_an_op_includes_the_call_of_the_op(listening: Recorder) -> None:
    x = torch.ones(1, 2)

    def distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a - b).sum(1)

    listening.clear()
    F.triplet_margin_with_distance_loss(x, x, x, distance_function=distance); line = here().f_lineno  # fmt: skip # noqa: E501, E702
    mine = [frames for frames in listening.traces if frames[-1].startswith(__file__)]
    back = f"{__file__}:{distance.__code__.co_firstlineno + 1}"
    assert mine[0][-1] == f"{__file__}:{line}"
    assert mine[1][-2:] == (f"{__file__}:{line}", back)


def test_a_trace_inside_a_module_includes_the_call_of_the_module(listening: Recorder) -> None:
    net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))

    def call() -> None:
        net(torch.ones(1))

    for _ in range(2):
        call()
    net[0](torch.ones(1))
    del listening.pushed[:]
    call(); first = here().f_lineno  # fmt: skip # noqa: E702
    call(); second = here().f_lineno  # fmt: skip # noqa: E702
    line = call.__code__.co_firstlineno + 1
    expected = [(f"{__file__}:{number}", f"{__file__}:{line}") for number in (first, second)]
    found = [frames[-2:] for frames in listening.traces]
    assert found == [frames for frames in expected for _ in range(2)]  # ones, relu


def test_an_op_inside_an_op_repeats_no_trace(listening: Recorder) -> None:
    """F.relu calls torch.relu from the same line of the user: one range for both."""
    torch.nn.functional.relu(torch.ones(1))
    kinds = [marker.classify(text) for text in listening.texts[2:]]
    assert kinds == [marker.Kind.TRACE, marker.Kind.OP, marker.Kind.OP]
    assert [depth for depth, _ in listening.pushed[2:]] == [0, 1, 2]
    torch.ones(1)
    assert marker.classify(listening.texts[-2]) is marker.Kind.TRACE


@pytest.mark.slow
def test_a_module_call_does_not_keep_its_frame(listening: Recorder) -> None:
    class Held(torch.nn.Module):
        def forward(self, box: list[object]) -> None:
            torch.ones(1)
            if box:
                raise KeyError

    class Witness:
        pass

    for raises in (False, True):
        witness = Witness()
        gone = weakref.ref(witness)
        with contextlib.suppress(KeyError):
            Held()([witness] if raises else [])
        del witness
        assert gone() is None
    assert open_ranges.THREAD.here.frame is None
    assert listening.depth == 0


def test_a_generator_is_seen_where_it_was_called_last() -> None:
    """Its frame is the same but its callers change, so it is not cached."""

    def traced() -> str:
        return stack.find(1).text

    def endless() -> Iterator[str]:
        while True:
            yield traced()

    texts = endless()

    def first() -> str:
        return next(texts)

    def second() -> str:
        return next(texts)

    for way in (first, first, second, second, first):
        assert marker.decode_functions(way())[-3:] == (way.__name__, "endless", "traced")


def test_cached_stacks_equal_walked_ones() -> None:
    random = Random(5)  # noqa: S311 - to be the same each time

    def walk(frame: FrameType) -> str:
        steps, _ = stack._walk(frame, None)
        return stack._describe(frame, steps, stack.NO_FRAMES).text

    def call(left: int) -> None:
        for _ in range(random.randrange(1, 4)):
            found, walked = stack.find(1).text, walk(here())
            assert found == walked
            if left:
                random.choice((call, other))(left - 1)

    def other(left: int) -> None:
        call(left)
        assert marker.decode_functions(stack.find(1).text)[-1] == "other"

    for _ in range(20):
        call(3)


def test_stacks_cached_before_stop_are_walked_again() -> None:
    texts: list[str] = []
    for _ in range(4):
        for _ in range(3):
            found = stack.find(1)
            stack.find(1)
        texts.append(found.text)
        assert any(known is found for known in stack._stacks.values())
        stack.forget()
    assert len({*texts}) == 1
