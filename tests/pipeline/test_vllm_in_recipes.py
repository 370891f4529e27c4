"""`[engine]` of a recipe: which engine plays, what it refuses, and GRPO with vLLM end to end."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tiny
from quintain.commands.commands import run
from quintain.interface.errors import InputError
from quintain.recipe import load_recipe

RECIPE = """
name = "pick"
seed = 3
concurrency = 8
kv_tokens = 4096

[engine]
{engine}

[model]
base = "{model}"

[world]
world = "picker:Picker"

[budget]
turns = 1
tokens = 4

[pools.train]
split = "train"
count = 4

[[stages]]
kind = "grpo"
name = "grpo"
pool = "train"
max_tokens = 1
train = {{ {train} }}

[[stages]]
kind = "eval"
name = "after"
model = "grpo"
pool = "train"
samples = 1
sampling = {{ max_tokens = 2 }}
"""
TRAIN = "learning_rate = 0.03, warmup = 0.0, group_size = 8, groups = 4, steps = 2, kl = 0.0, refill = 0"


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with four heads of 32, the smallest that vLLM computes on CPUs."""
    return Path(tiny.save_tiny(tmp_path_factory.mktemp("tiny"), hidden=128))


@pytest.fixture
def recipe(tmp_path: Path, model_folder: Path):
    """Writes a recipe: `recipe(engine, train)`."""
    shutil.copy(Path(__file__).parent / "picker.py", tmp_path)

    def write(engine: str, train: str = TRAIN) -> Path:
        path = tmp_path / "pick.toml"
        path.write_text(RECIPE.format(model=model_folder, engine=engine, train=train))
        return path

    return write


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ('kind = "sglang"', r"engine.kind: input should be 'local'"),
        ("options = { tensor_parallel_size = 2 }", r"engine: `options` are those of a vLLM that is begun here"),
        ('kind = "vllm"\nendpoint = { model = "m" }', r'engine: `endpoint` needs `kind = "server"`'),
        ('kind = "vllm"\ncores = 2', r"unknown key 'engine.cores'; allowed: kind, options, endpoint"),
        ('kind = "server"', r"a server keeps its weights, but stage 'grpo' trains; use kind = \"vllm\""),
    ],
)
def test_a_wrong_engine_is_one_line(recipe, engine, message):
    with pytest.raises(InputError, match=message):
        load_recipe(recipe(engine))


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_run_says_what_to_install(recipe, tmp_path):
    with pytest.raises(InputError, match=r"needs the package `vllm`: pip install 'quintain\[vllm\]'"):
        run(recipe('kind = "vllm"'), tmp_path / "run")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "grpo" / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
@pytest.mark.parametrize("adapters", [0, 4])
def test_grpo_learns_from_what_vllm_plays(recipe, tmp_path, adapters):
    folder = tmp_path / "run"
    path = recipe('kind = "vllm"', f"{TRAIN}, lora_rank = {adapters}")
    result = run(path, folder)["stages"]
    found = rows(folder)
    assert [row["version"] for row in found] == [1, 2], "an update in each step"
    assert all(row["mismatch"] < 1e-3 for row in found), "the trainer computes what the engine reported"
    assert all(row["clipped"] == 0 for row in found), "fresh tokens are those of the policy that learns from them"
    assert all(0 < row["probe_mismatch"] < 1e-3 for row in found), "and the engine holds what was learnt"
    assert result["after"]["line"].endswith("4 of 4 episodes scored")
