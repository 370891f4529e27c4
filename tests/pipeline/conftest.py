"""A small run: a tiny random model learns nothing useful, but every stage really runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

RECIPE = """
name = "small"
seed = 3
concurrency = 4

[model]
base = "{model}"
dialect = "hermes-compact"

[world]
world = "counter:Counter"

[[world.probes]]
tool = "add"
arguments = {{ a = 1, b = 2 }}

[budget]
turns = 3
tokens = 60

[pools.train]
split = "train"
count = 12

[pools.eval]
split = "eval"
count = 4

[[stages]]
kind = "eval"
name = "base"
pool = "eval"
samples = 1
sampling = {{ max_tokens = 12 }}

[[stages]]
kind = "rollout"
name = "demos"
pool = "train"

[[stages]]
kind = "sft"
name = "sft"
data = ["demos"]
train = {{ learning_rate = 1e-3, batch_trajectories = 4, epochs = 1 }}

[[stages]]
kind = "eval"
name = "tuned"
model = "sft"
pool = "eval"
samples = 2
sampling = {{ max_tokens = 12 }}
"""


@pytest.fixture
def recipe_file(tmp_path: Path, model_folder: Path) -> Path:
    """A recipe with its world beside it, in a folder of its own."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(Path(__file__).parent / "counter.py", home)
    path = home / "recipe.toml"
    path.write_text(RECIPE.format(model=model_folder), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a run goes."""
    return tmp_path / "run"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Path:
    """A finished run whose sft stage has an adapter; read-only by convention."""
    from quintain.commands.commands import run

    home = tmp_path_factory.mktemp("finished")
    shutil.copy(Path(__file__).parent / "counter.py", home)
    recipe = home / "recipe.toml"
    text = RECIPE.format(model=model_folder).replace("epochs = 1 }", "epochs = 1, lora_rank = 2 }")
    recipe.write_text(text, encoding="utf-8")
    run(recipe, home / "run")
    return home / "run"
