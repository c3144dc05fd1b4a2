"""Tests of pyprof.instrument.ranges.annotate and driven."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import torch

import pyprof

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder


def test_a_with_block_is_a_layer(listening: Recorder) -> None:
    """The name is a layer around all that is launched inside."""
    with pyprof.annotate("attention"):
        torch.ones(1)
    assert listening.pushed[0] == (0, "layer:attention")
    assert listening.pushed[1][0] == 1
    assert listening.depth == 0


def test_blocks_nest_and_can_be_used_again(listening: Recorder) -> None:
    """One annotate object may be entered many times, even inside itself."""
    scope = pyprof.annotate("again")
    with scope, scope:
        pass
    with scope:
        pass
    assert listening.pushed == [(0, "layer:again"), (1, "layer:again"), (0, "layer:again")]


def test_functions(listening: Recorder) -> None:
    """A decorated function keeps name, signature and result; without a name it gives its own."""

    @pyprof.annotate()
    def double(x: int) -> int:
        """Double it."""
        return 2 * x

    assert double(3) == 6
    assert (double.__name__, double.__doc__) == ("double", "Double it.")
    assert list(inspect.signature(double).parameters) == ["x"]
    assert listening.layers == ["test_functions.<locals>.double"]


def test_methods_and_classes(listening: Recorder) -> None:
    """Methods, static methods and class methods can be decorated."""

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


def test_names_that_are_not_utf8(listening: Recorder) -> None:
    """A name that no tool could take is made one that can be."""
    with pyprof.annotate("odd\udcff\0\n name"):
        pass
    assert listening.layers == ["odd??? name"]
    assert listening.texts[0].encode()


def test_nothing_is_pushed_before_init(recorder: Recorder) -> None:
    """Annotations in a program that is not instrumented are free of ranges."""
    with pyprof.annotate("early"):
        pass
    assert recorder.texts == []
