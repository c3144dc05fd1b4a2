"""Records as the lines of a file of dict lines."""

import io

from pyprof.records import dict_lines
from pyprof.records.records import Records


def record_lines(records: Records) -> list[str]:
    """Give the lines, without line ends; texts may hold other separators."""
    file = io.BytesIO()
    dict_lines.write(records, file)
    return file.getvalue().decode().split("\n")[:-1]
