"""Changes by name, as on the command line."""

import pytest

from pyprof.analysis.advice.registry import rules
from pyprof.errors import PyprofError
from pyprof.trial.change import Chosen, change, changes, parse


def test_a_change_is_parsed_with_its_value() -> None:
    assert parse("threads=3") == Chosen("threads", "3")
    assert str(parse("env=A=b=c")) == "env=A=b=c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thread=2", "no change 'thread'; did you mean 'threads'?"),
        ("threads", "threads needs a value; write --change threads=N"),
        ("threads=0", "--change threads=0: the value must be a whole number from 1 up"),
        ("env=A", "--change env=A: write env=NAME=VALUE"),
        ("patch=missing.py", "--change patch=missing.py: no file missing.py"),
    ],
)
def test_an_unknown_change_is_refused_with_an_example(text: str, message: str) -> None:
    with pytest.raises(PyprofError) as error:
        parse(text)
    assert str(error.value) == message


@pytest.mark.parametrize("name", sorted(changes()))
def test_each_change_says_what_it_does_and_what_to_write(name: str) -> None:
    entry = changes()[name]
    assert entry.help.endswith(".")
    code = entry.code("1") if callable(entry.code) else entry.code
    assert code
    assert ("{value}" in code) <= bool(entry.takes)
    assert set(entry.advised_by) <= set(rules())


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="there is a change threads already"):
        change("threads", code="")(lambda _: None)
