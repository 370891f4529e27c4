"""The desk's training documents as a memory, and what the offline teacher makes of it; both made once."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from synthesis_runs import Output, collect

from quintain.synthesis.config import FASConfig
from quintain.synthesis.documents import Document
from quintain.synthesis.fas import draw
from quintain.synthesis.memory import Memory, build
from quintain.synthesis.offline.teacher import OfflineTeacher
from quintain.worlds.desk import Desk


@pytest.fixture(scope="session")
def atlas_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "memory.sqlite"
    build(path, (Document(title, text, "atlas") for title, text in Desk.corpus("train", ("en", "zh"))), Counter())
    return path


@pytest.fixture(scope="session")
def made(atlas_memory: Path) -> Output:
    """What the offline teacher makes of 200 memories, two fifths of them Chinese."""
    config = FASConfig(memories=200, chinese=0.4)
    with closing(Memory(atlas_memory)) as memory:
        return collect(OfflineTeacher(), Desk().toolset(), config, draw(memory, config, Counter()))
