"""What ranges state and name."""

import pytest

from pyprof.marker import Kind, encode_layer
from pyprof.parse.ranges import texts


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (encode_layer("net.conv1"), Kind.LAYER, "net.conv1"),
        ("forward", Kind.USER, "forward"),
        ("step 17", Kind.STEP, "step"),
    ],
)
def test_a_range_names_its_layer_or_loop(text: str, kind: Kind, expected: str) -> None:
    assert texts.name(text, kind) == expected


def test_only_a_layer_named_as_a_part_of_the_step_implies_a_direction() -> None:
    """A module of a bidirectional RNN may have `backward` in its name."""
    assert texts.direction_hint("rnn.backward_cell", Kind.LAYER) == ""
    assert texts.direction_hint("backward", Kind.LAYER) == texts.direction_hint(
        "backward", Kind.USER
    )
    assert texts.direction_hint("backward", Kind.LAYER)
