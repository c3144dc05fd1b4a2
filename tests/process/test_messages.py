"""Messages on stderr: warnings and notes, inputs by the user's name."""

import click
import pytest

from pyprof.process import messages, overwrite_guard


def test_warnings_and_notes_name_inputs_as_the_user_did(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with click.Context(click.Command("summary")) as context:
        overwrite_guard.of_command(context).remember_spelling("/data/net.sqlite", "net.sqlite")
        messages.warn(["/data/net.sqlite: cut short", "note: /data/net.sqlite: one rank"])
        messages.say("/data/net.sqlite: read")
    assert capsys.readouterr().err.splitlines() == [
        "pyprof: warning: net.sqlite: cut short",
        "pyprof: note: net.sqlite: one rank",
        "pyprof: net.sqlite: read",
    ]
