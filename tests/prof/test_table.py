"""Impossible devices in a capture."""

from pathlib import Path

import pytest

from pyprof.parse import parse
from pyprof.prof.table import Table
from tests.readers.kineto_json import kernel, launch, read


def _device(folder: Path, sms: object) -> object:
    described = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": sms}
    net = read(folder, [launch(1, 10), kernel(1, 20)], deviceProperties=[described])
    return Table(parse(net)).device_of("NVIDIA A100-SXM4-80GB")


@pytest.mark.parametrize("sms", [-108, -1, 2**31 - 1, 1 << 20])
def test_a_device_with_impossible_numbers_is_unknown(sms: int, tmp_path: Path) -> None:
    """A negative number of SMs would make peaks and MFU negative."""
    assert _device(tmp_path, sms) == _device(tmp_path, None)
    assert _device(tmp_path, sms) != _device(tmp_path, 54)  # half a card, as MIG gives it
