"""A model's config.json, as Hugging Face writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.errors import PyprofError
from pyprof.ops import model_config
from pyprof.process import overwrite_guard

if TYPE_CHECKING:
    from pyprof.ops.model_config import ModelConfig

NAME = "config.json"
_MAX_BYTES = 1 << 22
"""Larger files are refused: a configuration has some KB."""


def read(file: str) -> ModelConfig:
    """Read the sizes of a model from its config.json, or the folder of that. Raises PyprofError."""
    path = Path(file)
    path = path / NAME if path.is_dir() else path
    overwrite_guard.current().reads([str(path)])
    try:
        return model_config.read(_document(path))
    except OSError as error:
        raise PyprofError(f"{path}: {error.strerror or error}; give a model's {NAME}") from None
    except ValueError as error:
        raise PyprofError(f"{path} is not a model configuration: {error}") from None


def _document(path: Path) -> object:
    """Parse JSON; raises OSError, or ValueError with a reason."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a regular file")
    with path.open("rb") as opened:
        text = opened.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES >> 20} MiB")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:  # also for numbers of thousands of digits
        raise ValueError("it is not JSON") from None
