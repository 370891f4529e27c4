"""Fixtures every test may use: `tokenizer`, `codec` and `model` are tiny, random and made on the fly."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

import tiny

# no assertion about time: the machine may be busy
settings.register_profile("quintain", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quintain")


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """A transformers fast tokenizer with ChatML tokens; 400 ids."""
    return tiny.tiny_tokenizer()


@pytest.fixture(scope="session")
def codec() -> Any:
    """The same tokenizer as a dialect's `Codec`."""
    return tiny.tiny_codec()


@pytest.fixture
def model() -> Any:
    """A fresh tiny Llama for that tokenizer: a test may train it."""
    return tiny.tiny_model()


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny model and its tokenizer, read-only by convention."""
    return Path(tiny.save_tiny(tmp_path_factory.mktemp("tiny")))
