"""Readers are found by being in their package, and state what they read."""

from pyprof import readers


def test_every_reader_names_its_files() -> None:
    """The message about a file that nobody reads lists all formats."""
    for reader in readers.readers():
        name = getattr(reader, "__name__", reader)
        described = getattr(reader, "FORMAT", "")
        article, _, rest = described.partition(" ")
        assert article in ("a", "an", "the"), (
            f"{name}: add FORMAT, the files that it reads, with an article: "
            'FORMAT = "an nsys export (.sqlite)"'
        )
        assert rest
        assert described in readers.expected()


def test_formats_of_tools_come_first() -> None:
    assert readers.expected() == (
        "expected an nsys export (.sqlite), an nsys report (.nsys-rep), an nvprof database, "
        "a rocpd database of rocprofv3 (.db), a torch.profiler trace (.json, .json.gz) or the CSV "
        "of Nsight Compute"
    )
