import asyncio
import inspect
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
import torch

import pyprof
from tests.instrument.conftest import Recorder


def test_a_with_block_is_a_layer(listening: Recorder) -> None:
    with pyprof.annotate("attention"):
        torch.ones(1)
    assert listening.pushed[0] == (0, "layer:attention")
    assert listening.pushed[1][0] == 1


@pytest.mark.slow
def test_blocks_nest_and_can_be_used_again(listening: Recorder) -> None:
    scope = pyprof.annotate("again")
    with scope, scope:
        pass
    with scope:
        pass
    assert listening.pushed == [(0, "layer:again"), (1, "layer:again"), (0, "layer:again")]


def test_a_decorated_function_keeps_name_signature_and_result(listening: Recorder) -> None:
    @pyprof.annotate()
    def double(x: int) -> int:
        """Double it."""
        return 2 * x

    assert double(3) == 6
    assert (double.__name__, double.__doc__) == ("double", "Double it.")
    assert list(inspect.signature(double).parameters) == ["x"]
    assert listening.layers == [
        "test_a_decorated_function_keeps_name_signature_and_result.<locals>.double"
    ]


def test_methods_and_classes(listening: Recorder) -> None:
    class Work:
        @pyprof.annotate("method")
        def method(self) -> object:
            return self

        @staticmethod
        @pyprof.annotate("static")
        def static() -> int:
            return 1

    work = Work()
    assert work.method() is work
    assert Work.static() == 1
    assert listening.layers == ["method", "static"]


def test_names_that_are_not_utf8_are_replaced(listening: Recorder) -> None:
    """Tools could not take them."""
    with pyprof.annotate("odd\udcff\0\n name"):
        pass
    assert listening.layers == ["odd??? name"]
    assert listening.texts[0].encode()


def test_coroutines_that_take_turns(listening: Recorder) -> None:
    @pyprof.annotate("task")
    async def work(number: int) -> int:
        for _ in range(2):
            assert listening.depth == 1
            await asyncio.sleep(0)
        return number

    async def both() -> list[int]:
        return list(await asyncio.gather(work(1), work(2)))

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(both()) == [1, 2]
    assert {depth for depth, _ in listening.pushed} == {0}
    assert listening.layers == ["task"] * 6


def test_generators_are_in_their_layer_only_while_they_run(listening: Recorder) -> None:
    @pyprof.annotate("steps")
    def steps(n: int) -> Generator[int, str | None, str]:
        got = []
        for i in range(n):
            try:
                got.append((yield i) or "-")
            except ValueError:  # noqa: PERF203 - once a step
                got.append("error")
        return "".join(got)

    running = steps(4)
    assert inspect.isgeneratorfunction(steps)
    assert (next(running), listening.depth) == (0, 0)
    assert running.send("a") == 1
    assert running.throw(ValueError()) == 2
    assert next(running) == 3
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "aerror--"
    assert listening.layers == ["steps"] * 5


def test_closing_a_generator_closes_what_it_holds(listening: Recorder) -> None:
    cleaned = []

    @pyprof.annotate("held")
    def held() -> Generator[int, None, None]:
        try:
            yield 1
        finally:
            cleaned.append(listening.depth)

    running = held()
    next(running)
    running.close()
    assert cleaned == [1]


def test_async_generators_are_in_their_layer_only_while_they_run(listening: Recorder) -> None:
    cleaned = []

    @pyprof.annotate("stream")
    async def stream() -> AsyncGenerator[int, int | None]:
        got: Any = 0
        try:
            while True:
                await asyncio.sleep(0)
                try:
                    got = (yield (got or 0) + 1) or 0
                except ValueError:
                    got = 100
        finally:
            cleaned.append(True)

    async def use() -> list[int]:
        running = stream()
        found = [await running.__anext__(), await running.asend(5)]
        found.append(await running.athrow(ValueError()))
        assert listening.depth == 0
        await running.aclose()
        return found

    assert inspect.isasyncgenfunction(stream)
    assert asyncio.run(use()) == [1, 6, 101]
    assert cleaned == [True]
    assert set(listening.layers) == {"stream"}


def test_async_iteration_ends(listening: Recorder) -> None:
    @pyprof.annotate("count")
    async def count() -> AsyncGenerator[int, None]:
        yield 1
        yield 2

    async def use() -> list[int]:
        return [item async for item in count()]

    assert asyncio.run(use()) == [1, 2]
    assert listening.depth == 0
