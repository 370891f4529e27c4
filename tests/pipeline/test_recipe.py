"""A wrong recipe is one line that names the key and what is allowed."""

from __future__ import annotations

import pytest

from quintain.commands.commands import recipes_folder
from quintain.interface.errors import InputError
from quintain.recipe import load_recipe


@pytest.mark.parametrize("path", sorted(recipes_folder().glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_shipped_is_valid(path):
    assert load_recipe(path).name == path.stem


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 3", "sead = 3", "unknown key 'sead'; allowed: name, seed, concurrency"),
        ("seed = 3", "seed = 1.5", "seed: input should be a valid integer, found 1.5"),
        ("turns = 3", "turn = 3", "unknown key 'budget.turn'; allowed: turns, tool_calls"),
        ("turns = 3", "turns = 0", "budget.turns: input should be greater than or equal to 1, found 0"),
        ("learning_rate", "lr", "unknown key 'stages.2.train.lr'; allowed: learning_rate"),
        ("learning_rate = 1e-3", 'learning_rate = "fast"', "stages.2.train.learning_rate: input should be a valid"),
        ('data = ["demos"]', 'data = ["demo"]', "data = 'demo' is not known there; allowed: demos"),
        ('model = "sft"', 'model = "stf"', "model = 'stf' is not known there; allowed: base, sft"),
        ('pool = "train"', 'pool = "trian"', "pool = 'trian'; pools: train, eval"),
        ('kind = "rollout"', 'kind = "roll"', "stages.1.kind: must be one of rollout, recover, fas, has, cpt, curate,"),
        ('name = "tuned"', 'name = "base"', "two stages are named 'base'"),
        ('name = "tuned"', 'name = "../x"', "stages.3.name: string should match pattern"),
        ('name = "tuned"', 'name = "pools"', "the eval stage can't be named 'pools'"),
        ('name = "small"', 'name = "../up"', "name: string should match pattern"),
        ('name = "small"', 'name = "a\\u0000b"', "name: string should match pattern"),
        ("[pools.train]", '[pools."../train"]', "pools.../train.[key]: string should match pattern"),
        ("turns = 3", "seconds = inf", "budget.seconds: inf is beyond what JSON keeps exactly"),
        ("learning_rate = 1e-3", "learning_rate = inf", "stages.2.train.learning_rate: inf is beyond"),
        ("tokens = 60", "tokens = 9007199254740992", "budget.tokens: 9007199254740992 is beyond"),
        ('pool = "eval"', 'pool = "eval"\nfaults = "bad"', "faults = 'bad' is not known there; allowed: none yet"),
        (
            'pool = "train"',
            'pool = "train"\nfaults = "f"\n[faults.f]\nwordings = "held_out"',
            "stage 'sft': faults = 'f' has held-out wordings, which training may not see",
        ),
        (
            "[budget]",
            "[faults.f]\nepisodes = 1.5\n[budget]",
            "faults.f.episodes: input should be less than or equal to 1",
        ),
        ("[budget]", "[faults.f]\nkinds = { fire = 1 }\n[budget]", "faults.f.kinds.fire.[key]: input should be"),
        ('split = "train"', 'file = "tasks.jsonl"', "pools.train.file: no such file"),
        ('split = "train"', "", "pools.train: needs exactly one of `file`, `split` and `sealed`"),
        ("[budget]", "[budget", "not valid TOML"),
        ('name = "small"', "", "missing key 'name'"),
        (
            "[pools.train]",
            '[[targets]]\nmeasure = "pass1"\nat_most = 1.0\n[pools.train]',
            "is no evaluation stage; allowed: base, tuned",
        ),
        ("[pools.train]", '[[targets]]\nmeasure = "minutes"\n[pools.train]', "targets.0: needs either `at_least` or"),
    ],
)
def test_a_mistake_is_named_with_its_key_and_what_is_allowed(recipe_file, old, new, message):
    recipe_file.write_text(recipe_file.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_recipe(recipe_file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_recipe_needs_a_stage(recipe_file):
    head = recipe_file.read_text().split("[[stages]]")[0]
    recipe_file.write_text("stages = []\n" + head)
    with pytest.raises(InputError, match="stages: list should have at least 1 item"):
        load_recipe(recipe_file)


def test_a_training_stage_is_not_named_like_what_every_recipe_has(recipe_file):
    text = recipe_file.read_text().replace('name = "base"', 'name = "before"').replace('name = "sft"', 'name = "base"')
    recipe_file.write_text(text)
    with pytest.raises(InputError, match="the sft stage can't be named 'base'"):
        load_recipe(recipe_file)


def test_a_name_may_be_chinese(recipe_file):
    recipe_file.write_text(recipe_file.read_text().replace('name = "small"', 'name = "小模型 1"'), encoding="utf-8")
    assert load_recipe(recipe_file).name == "小模型 1"


def test_a_missing_recipe_is_named(tmp_path):
    with pytest.raises(InputError, match="recipe not found"):
        load_recipe(tmp_path / "none.toml")
