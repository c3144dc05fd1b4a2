"""File systems: missing packages are named in one line."""

import sys

import pytest

from pyprof.errors import PyprofError
from pyprof.inputs.find import find


def test_urls_need_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(PyprofError, match="URLs need fsspec: pip install fsspec"):
        find(["s3://bucket/*.sqlite"])


@pytest.mark.parametrize("url", ["reference://x", "dir://x", "generic://x", "async_wrapper://x"])
def test_file_systems_that_need_more_packages_are_an_error(url: str) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(PyprofError, match=f"^{url}: "):
        find([url])
