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
_MOST_BYTES = 1 << 24
"""Such a file has some KB; another one is not read to its end."""


def read(file: str) -> ModelConfig:
    """Read the sizes of a model: from the file, or that of the folder. Raises PyprofError."""
    path = Path(file)
    path = path / _NAME if path.is_dir() else path
    cli.reading([str(path)])
    try:
        with path.open("rb") as opened:
            text = opened.read(_MOST_BYTES)
        document = json.loads(text)
        return model_config.read(document)
    except OSError as error:
        raise PyprofError(f"{path}: {error.strerror or error}; give a model's {_NAME}") from None
    except (ValueError, RecursionError) as error:
        why = (
            "it is not JSON"
            if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))
            else (error if isinstance(error, ValueError) else "it is nested too deeply")
        )
        raise PyprofError(f"{path} is not a model configuration: {why}") from None
