"""The timeline of the page."""

from tests.render.page.parts.conftest import Made


def test_every_row_is_drawn_or_counted(made: Made) -> None:
    """By itself if there is room; causes of idle time are explained."""
    part = made["timeline"]
    assert (part["single"], part["joined"], part["captures"]) == (10, 0, 1)
    assert {name for name, *_ in part["causes"]} == {"launch", "queue"}
    assert not any(part[f"{what}_left_out"] for what in ("gaps", "devices", "streams", "marks"))
