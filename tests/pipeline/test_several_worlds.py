"""A recipe with several worlds: one model learns from all of them and is measured in each."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from quintain.cli.main import main
from quintain.commands.commands import rescore, run
from quintain.doctor.doctor import examine
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError, InterfaceDrift
from quintain.interface.lock import read_lock
from quintain.pipeline.workshop import Workshop
from quintain.recipe import load_recipe
from quintain.recipe.worlds import divide

RECIPE = """
name = "mixed"
concurrency = 4

[model]
base = "{model}"
dialect = "hermes-compact"

[budget]
turns = 3
tokens = 40

[worlds.counter]
world = "counter:Counter"
probes = [{{ tool = "add", arguments = {{ a = 1, b = 2 }} }}]

[worlds.picker]
world = "picker:Picker"
budget = {{ turns = 2, tokens = 9 }}

[pools.train]
split = "train"
count = 8
shares = {{ counter = 1.0 }}

[pools.practice]
split = "train"
count = 4

[pools.eval]
split = "eval"
count = 10
shares = {{ counter = 0.4, picker = 0.6 }}

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

[[stages]]
kind = "grpo"
name = "practised"
start = "sft"
pool = "practice"
max_tokens = 4
train = {{ steps = 1, groups = 4, group_size = 4, refill = 0 }}

[[stages]]
kind = "eval"
name = "after"
model = "practised"
pool = "eval"
samples = 2
sampling = {{ max_tokens = 12 }}
"""


def forget() -> None:
    """Makes the next import of the two worlds read their files."""
    for module in ("counter", "picker"):
        sys.modules.pop(module, None)


def write(home: Path, model: Path) -> Path:
    forget()  # another test's worlds may have the same names
    home.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).parent / "counter.py", home)
    picker = (Path(__file__).parent / "picker.py").read_text(encoding="utf-8")
    (home / "picker.py").write_text(picker.replace('f"{split}-{n}"', 'f"pick-{split}-{n}"'), encoding="utf-8")
    path = home / "recipe.toml"
    path.write_text(RECIPE.format(model=model), encoding="utf-8")
    return path


@pytest.fixture
def mixed(tmp_path, model_folder):
    """A recipe of two worlds that lie beside it."""
    yield write(tmp_path / "home", model_folder)
    forget()


@pytest.fixture(scope="module")
def done(tmp_path_factory, model_folder):
    """A finished run of it; read-only by convention."""
    path = write(tmp_path_factory.mktemp("mixed"), model_folder)
    run(path, path.parent / "run")
    forget()
    return path.parent / "run"


def test_a_pool_divides_its_tasks_by_the_shares(done):
    lines = (done / "pools" / "eval.jsonl").read_text().splitlines()
    worlds = [json.loads(line)["world"] for line in lines]
    assert worlds == ["counter"] * 4 + ["picker"] * 6
    assert json.loads((done / "pools" / "eval.manifest.json").read_text())["world"] == "counter, picker"


@pytest.mark.parametrize(
    ("count", "shares", "parts"),
    [
        (10, {"a": 0.4, "b": 0.6}, {"a": 4, "b": 6}),
        (10, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, {"a": 4, "b": 3, "c": 3}),
        (7, {"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 4, "b": 2, "c": 1}),  # 3.5, 2.1, 1.4
        (1, {"a": 0.25, "b": 0.75}, {"a": 0, "b": 1}),
    ],
)
def test_largest_remainders_take_what_rounding_leaves(count, shares, parts):
    assert divide(count, shares) == parts


def test_every_episode_is_played_in_the_world_of_its_task_with_its_tools_and_budget(done):
    episodes, _ = read_journal(done / "tuned" / "journal")
    digests = {one.world: one.toolset for one in read_lock(done / "tools.lock")}
    assert {one.world: one.digests.toolset for one in episodes} == digests
    assert len(set(digests.values())) == 2
    assert max(one.usage.tokens for one in episodes if one.world == "picker") <= 9


def test_the_report_has_pass_1_and_pass_k_of_each_world_with_intervals(done):
    episodes, _ = read_journal(done / "tuned" / "journal")
    found = json.loads((done / "report.json").read_text())["stages"][2]["evaluation"]["by_world"]
    assert {world: one["counts"]["tasks"] for world, one in found.items()} == {"counter": 4, "picker": 6}
    picked = Counter(one.task_id for one in episodes if one.world == "picker" and one.success)
    assert found["picker"]["pass1"]["value"] == pytest.approx(picked.total() / 12)
    assert found["picker"]["pass_k"]["2"]["value"] == pytest.approx(len(picked) / 6)
    assert found["picker"]["pass1"]["low"] < found["picker"]["pass1"]["high"]
    # no success in 4 tasks: the exact bound of Clopper and Pearson, 1 - (a / 2) ** (1 / n)
    none = {"value": 0.0, "low": 0.0, "high": pytest.approx(1 - 0.025 ** (1 / 4))}
    assert none.items() <= found["counter"]["pass1"].items()


def test_the_line_of_an_evaluation_names_the_worlds(done):
    line = json.loads((done / "tuned" / "manifest.json").read_text())["result"]["line"]
    assert "over 10 tasks" in line
    assert "; counter 0.000 [" in line
    assert "; picker 0." in line


def test_a_model_knows_the_worlds_it_learnt_from_and_the_interfaces_of_all(done):
    trained = json.loads((done / "sft" / "model" / "training.json").read_text())["digests"]
    locks = {one.world: one.toolset for one in read_lock(done / "sft" / "model" / "tools.lock")}
    assert [one["toolset"] for one in trained] == [locks["counter"]]
    assert set(locks) == {"counter", "picker"}


def test_groups_are_played_in_both_worlds(done):
    episodes, _ = read_journal(done / "practised" / "rollouts" / "step-000001")
    assert Counter(one.world for one in episodes) == {"counter": 8, "picker": 8}


def test_two_evaluations_are_compared_as_a_whole_and_in_each_world(done):
    compared = json.loads((done / "report.json").read_text())["comparisons"]
    assert [(one["before"], one["after"], one["world"], one["tasks"]) for one in compared] == [
        ("tuned", "after", "", 10),
        ("tuned", "after", "counter", 4),
        ("tuned", "after", "picker", 6),
    ]


def test_stored_episodes_are_judged_again_each_in_its_world(done, tmp_path):
    result = rescore(done.parent / "recipe.toml", done / "tuned", "eval", tmp_path / "again")["stages"]["eval"]
    forget()
    before = {one.id: (one.world, one.verdict) for one in read_journal(done / "tuned" / "journal")[0]}
    after = {one.id: (one.world, one.verdict) for one in read_journal(tmp_path / "again" / "eval" / "journal")[0]}
    assert after == before
    assert result["judged"] > 10, "both worlds have episodes to judge"


def test_a_second_run_does_nothing_again(done):
    before = (done / "sft" / "model" / "training.json").stat().st_mtime_ns
    run(done.parent / "recipe.toml", done)
    assert (done / "sft" / "model" / "training.json").stat().st_mtime_ns == before
    assert not list(done.glob("*.old*"))


def change_a_tool(home: Path) -> None:
    world = home / "counter.py"
    text = world.read_text().replace("b: int) -> int", "c: int) -> int")
    world.write_text(text.replace("a + b", "a + c").replace('"b": 1', '"c": 1'))
    sys.modules.pop("counter", None)


def test_drift_in_one_of_two_worlds_stops_with_its_name_and_the_difference(mixed, tmp_path):
    assert main(["tools", "lock", str(mixed)]) == 0
    change_a_tool(mixed.parent)
    with pytest.raises(InterfaceDrift, match='counter: add: parameter "b" renamed to "c"') as caught:
        run(mixed, tmp_path / "run")
    assert "picker" not in str(caught.value)


def test_a_trained_model_meets_a_changed_world_among_those_it_knows(done, mixed, tmp_path):
    change_a_tool(mixed.parent)
    text = mixed.read_text().replace("b = 2", "c = 2")
    base = load_recipe(mixed).model.base
    mixed.write_text(text.replace(base, str(done / "sft" / "model")))
    with pytest.raises(
        InterfaceDrift, match='trained on another interface: counter: add: parameter "b" renamed to "c"'
    ):
        run(mixed, tmp_path / "run")


def test_a_world_that_is_new_in_a_recipe_is_a_difference_to_its_lock(mixed, tmp_path):
    text = mixed.read_text()
    alone = text.replace('[worlds.picker]\nworld = "picker:Picker"\nbudget = { turns = 2, tokens = 9 }\n', "")
    mixed.write_text(alone.replace("shares = { counter = 0.4, picker = 0.6 }", "shares = { counter = 1.0 }"))
    assert main(["tools", "lock", str(mixed)]) == 0
    mixed.write_text(text)
    with pytest.raises(InterfaceDrift, match="picker: world added"):
        run(mixed, tmp_path / "run")


def test_a_model_of_several_worlds_is_measured_in_one_of_them_alone(done, mixed, tmp_path):
    text = mixed.read_text().replace(str(load_recipe(mixed).model.base), str(done / "sft" / "model"))
    head, _, tables = text.replace('model = "sft"', 'model = "base"').partition("[worlds.counter]")
    (measured,) = [one for one in tables.split("[[stages]]") if 'name = "tuned"' in one]
    pools = '[world]\nworld = "counter:Counter"\n[pools.eval]\nsplit = "eval"\ncount = 2\n'
    mixed.write_text(f"{head}{pools}[[stages]]{measured}")
    assert run(mixed, tmp_path / "run")["stages"]["tuned"]["line"].endswith("4 of 4 episodes scored")


def test_the_doctor_examines_tasks_of_every_world(mixed):
    mixed.write_text(mixed.read_text().replace("count = 10", "count = 40"))
    found = {one["name"]: one for one in examine(mixed)["checks"]}
    # counter: 8 to learn from, two of which are practised, and 8 of evaluation's 16; picker: 2, and 8 of its 24
    assert found["silent fails"]["detail"] == "26 of 26 silent episodes fail"
    assert found["gold passes"]["detail"] == "16 of 16 reference solutions succeed"  # picker has none


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("picker = 0.6", "pickr = 0.6", "pools.eval.shares: no world 'pickr'; worlds: counter, picker"),
        ("picker = 0.6", "picker = 0.5", "`shares` must sum to 1: 0.4 + 0.5 = 0.9"),
        ("counter = 0.4, picker = 0.6", "counter = 1.5, picker = -0.5", "less than or equal to 1, found 1.5"),
        ("picker = 0.6", "picker = 0.0", "greater than 0, found 0.0"),
        ("[worlds.picker]", "[worlds.counter]", "not valid TOML"),
        ("[worlds.picker]", "[worlds.chooser]", "no world 'picker'; worlds: counter, chooser"),
        ("[budget]", '[world]\nworld = "a:B"\n[budget]', "either `[world]` or `[worlds.NAME]` tables, not both"),
        ("turns = 2", "turn = 2", "unknown key 'worlds.picker.budget.turn'; allowed: turns, tool_calls"),
        ('world = "picker:Picker"', "", "missing key 'worlds.picker.world'"),
    ],
)  # fmt: skip
def test_a_wrong_recipe_is_one_line(mixed, old, new, says):
    text = mixed.read_text()
    assert old in text
    mixed.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_recipe(mixed)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_is_named_as_its_tasks_spell_the_world(mixed):
    mixed.write_text(
        mixed.read_text().replace("picker = 0.6", "chooser = 0.6").replace("worlds.picker", "worlds.chooser")
    )
    recipe = load_recipe(mixed)
    with pytest.raises(InputError, match=r"worlds.chooser: .* spell their world 'picker'; write \[worlds.picker\]"):
        Workshop(recipe, mixed.parent, mixed.parent).pool("train")
