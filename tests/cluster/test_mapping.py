"""Work mapped over Ray Data on a local cluster of several nodes gives what one process gives, in the same order."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quintain import Task
from quintain.cluster.mapping import mapped
from quintain.cluster.placement import Placement
from quintain.curation.contamination import BATCH, Scanner, batches
from quintain.curation.items import read_items
from quintain.curation.leak_index import LeakIndex
from quintain.interface.errors import InputError
from quintain.pipeline import fas
from quintain.pipeline.run import run_recipe
from quintain.pipeline.stages import STAGES
from quintain.recipe import recipe_from_table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

WORDS = [first + second + third for first in "bdfgk" for second in ("a", "or", "ine") for third in ("lt", "sh", "mer")]


def sentence(draw: random.Random, length: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(length))


@pytest.fixture
def corpus(tmp_path: Path) -> tuple[Scanner, Path]:
    """Forty tasks, and two files in which every fifth line holds one of them."""
    draw = random.Random(5)
    tasks = [Task(f"eval-{n}", "desk", sentence(draw, 30), cluster=str(n)) for n in range(40)]
    for name in ("a", "b"):
        with (tmp_path / f"{name}.jsonl").open("w") as file:
            for number in range(400):
                leak = draw.choice(tasks).prompt if number % 5 == 0 else ""
                file.write(json.dumps({"text": f"{sentence(draw, 300)} {leak} {sentence(draw, 300)}"}) + "\n")
    return Scanner(LeakIndex({"eval": tasks})), tmp_path


def read_batches(folder: Path) -> Any:
    return batches(read_items(folder))


def test_a_contamination_scan_is_that_of_one_process_batch_by_batch(cluster: Any, corpus: tuple[Scanner, Path]):
    scanner, folder = corpus
    expected = [scanner.batch(batch) for batch in read_batches(folder)]
    assert sum(one.bytes for one in expected) > 8 * BATCH
    assert sum(len(one.findings) for one in expected) >= 160
    assert list(mapped(scanner.batch, partial(read_batches, folder), Placement(workers=3, cpus=1))) == expected


def test_a_file_that_cannot_be_read_there_is_the_same_one_line(cluster: Any, corpus: tuple[Scanner, Path]):
    scanner, folder = corpus
    (folder / "b.jsonl").write_text("{}\nno JSON\n")
    with pytest.raises(InputError, match=r"b\.jsonl:2: not valid JSON"):
        list(mapped(scanner.batch, partial(read_batches, folder), Placement(workers=1)))


def test_samples_made_on_a_cluster_are_those_of_one_process(cluster: Any, tmp_path: Path, monkeypatch):
    table: dict[str, Any] = {
        "name": "made",
        "world": {"world": "quintain.worlds.desk:Desk"},
        "pools": {"train": {"split": "train", "count": 2}},
        "stages": [{"kind": "fas", "name": "fas", "make": {"memories": 30, "chinese": 0.3}}],
    }
    monkeypatch.setattr(fas, "SHARE", 20)
    for name, more in (("here", {}), ("there", {"cluster": {"workers": 2}})):
        run_recipe(recipe_from_table(table | more, "recipe"), "", tmp_path, tmp_path / name, STAGES)
    for file in ("samples.jsonl", "rejected.jsonl", "synthesis.json"):
        here, there = ((tmp_path / name / "fas" / file).read_text() for name in ("here", "there"))
        assert here == there
        assert here
