"""What ranges state and name."""

from pyprof.marker import Kind
from pyprof.parse.ranges import texts


def test_only_a_layer_named_as_a_part_of_the_step_implies_a_direction() -> None:
    """A module of a bidirectional RNN may have `backward` in its name."""
    assert texts.direction_hint("rnn.backward_cell", Kind.LAYER) == ""
    directions = [texts.direction_hint("backward", kind) for kind in (Kind.LAYER, Kind.USER)]
    assert directions == ["bprop"] * 2
