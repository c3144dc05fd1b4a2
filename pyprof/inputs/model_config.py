"""A model's config.json, as Hugging Face writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof import cli
from pyprof.errors import PyprofError
from pyprof.ops import model_config

if TYPE_CHECKING:
    from pyprof.ops.model_config import ModelConfig

_NAME = "config.json"
_MOST_BYTES = 1 << 22
"""Such a file has some KB; another one is not read to its end."""


def read(file: str) -> ModelConfig:
    """Read the sizes of a model: from the file, or that of the folder. Raises PyprofError."""
    path = Path(file)
    path = path / _NAME if path.is_dir() else path
    cli.register_inputs([str(path)])
    try:
        return model_config.read(_document(path))
    except OSError as error:
        raise PyprofError(f"{path}: {error.strerror or error}; give a model's {_NAME}") from None
    except ValueError as error:
        raise PyprofError(f"{path} is not a model configuration: {error}") from None


def _document(path: Path) -> object:
    """Read JSON; raises OSError, and ValueError with a reason where it is none."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a regular file")
    with path.open("rb") as opened:
        text = opened.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES >> 20} MiB")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:  # also for numbers of thousands of digits
        raise ValueError("it is not JSON") from None
