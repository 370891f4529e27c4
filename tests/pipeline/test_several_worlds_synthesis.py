"""Several worlds in the stages that write and read texts, and in what is done with a trained model."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintain.cli.main import main
from quintain.commands.commands import run
from quintain.harness.journal import read_journal
from quintain.inference.models import load_model
from quintain.interface import dialects
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.errors import InputError
from quintain.interface.lock import read_lock
from quintain.interface.sample import read_samples
from quintain.recipe import load_recipe
from recipe_edits import set_stages

RECIPE = """
name = "two"
concurrency = 4

[model]
base = "{model}"
dialect = "hermes-compact"

[worlds.counter]
world = "counter:Counter"
budget = {{ turns = 3, tokens = 20 }}

[worlds.product]
world = "product:Product"
budget = {{ turns = 4, tokens = 20 }}

[pools.train]
split = "train"
count = 12

[[stages]]
kind = "rollout"
name = "demos"
pool = "train"

[[stages]]
kind = "has"
name = "decisions"
data = ["demos"]
executed = true

[[stages]]
kind = "cpt"
name = "cpt"
data = ["decisions"]
tokens = {{ has = 500 }}
train = {{ context = 1024, microbatch_tokens = 1024, batch_tokens = 1024, learning_rate = 1e-3 }}
"""

PRODUCT = '''
from counter import Counter

from quintain import Task, tool
from quintain.interface.messages import Action, Call
from quintain.interface.tools import Toolset


class Product(Counter):
    name = "product"
    instructions = "Multiply."

    @tool
    def times(self, a: int, b: int) -> int:
        """Multiplies two numbers."""
        return a * b

    def toolset(self):
        return Toolset([super().toolset()["times"]])

    @classmethod
    def generate(cls, split, count, seed, languages, templates, **options):
        return [
            Task(f"times-{split}-{n}", "product", f"{n} * 7?", {"a": n}, str(n * 7), f"times-{n}", "product")
            for n in range(count)
        ]

    def solution(self, task):
        (seen,) = yield Action(calls=(Call("a", "times", {"a": task.setup["a"], "b": 7}),))
        yield Action(answer=seen.content)
'''


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Iterator[Path]:
    """A finished run of two worlds; read-only by convention."""
    home = tmp_path_factory.mktemp("two")
    forget()
    shutil.copy(Path(__file__).parent / "counter.py", home)
    (home / "product.py").write_text(PRODUCT, encoding="utf-8")
    (home / "recipe.toml").write_text(RECIPE.format(model=model_folder), encoding="utf-8")
    run(home / "recipe.toml", home / "run")
    yield home / "run"
    forget()


def forget() -> None:
    """Makes the next import of the two worlds read their files."""
    for module in ("counter", "product"):
        sys.modules.pop(module, None)


def test_decisions_borrow_and_balance_within_a_world(done):
    samples = list(read_samples(done / "decisions" / "samples.jsonl"))
    tools = {one.toolset: ("add ", "times ")[one.world == "product"] for one in read_lock(done / "tools.lock")}
    ends = Counter((tools[one.toolset], one.text.splitlines()[-1]) for one in samples)
    assert set(tools.values()) == {"add ", "times "}
    assert set(ends.values()) == {6}, "as many right as wrong in each world"
    for one in samples:
        (other,) = set(tools.values()) - {tools[one.toolset]}
        assert other not in one.text


def test_options_are_tried_in_the_world_of_their_episode(done):
    text = "\n".join(one.text for one in read_samples(done / "decisions" / "samples.jsonl") if "times" in one.text)
    lines = text.splitlines()
    returned = [line for line in lines if " returns: " in line]
    assert returned
    assert {int(line.partition(" returns: ")[2]) % 7 for line in returned} == {0}, "products of 7"


def test_pre_training_reads_the_decisions_of_both_worlds_and_the_model_knows_both(done):
    assert json.loads((done / "cpt" / "manifest.json").read_text())["result"]["tokens"]["has"] >= 500
    trained = json.loads((done / "cpt" / "model" / "training.json").read_text())["digests"]
    assert {one["toolset"] for one in trained} == {one.toolset for one in read_lock(done / "tools.lock")}


def test_the_export_holds_for_each_world_what_its_prompts_were_made_of(done, tmp_path, capsys):
    folder = tmp_path / "agent"
    assert main(["export", str(done), "--format", "model", "--out", str(folder)]) == 0
    assert "2 tools" in capsys.readouterr().out
    _, tokenizer = load_model(str(done / "cpt" / "model"))
    dialect = dialects.get("hermes-compact", TokenizerCodec(tokenizer))
    exported = type(tokenizer).from_pretrained(folder)
    for episode in read_journal(done / "demos" / "journal")[0]:
        system = (folder / f"system-{episode.world}.txt").read_text(encoding="utf-8")
        tools = json.loads((folder / f"tools-{episode.world}.json").read_text(encoding="utf-8"))
        said = [{"role": "system", "content": system}, {"role": "user", "content": episode.messages[-1].text}]
        ids = exported.apply_chat_template(said, tools=tools, add_generation_prompt=True, return_dict=False)
        assert ids == list(dialect.prompt(episode.messages, world_tools(done, episode.world)))
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "- world `product`: `tools-product.json` as `tools`, `system-product.txt` as the system message" in card
    assert "Multiplies two numbers." in card
    assert "Adds two numbers." in card
    assert not (folder / "tools.json").exists()


def world_tools(run: Path, name: str):
    from quintain.pipeline.run import read_recipe
    from quintain.pipeline.workshop import Workshop

    recipe, home = read_recipe(run)
    return Workshop(recipe, home, run).toolset(name)


def test_a_chat_is_held_in_the_world_it_names(done, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("3 * 7?\n"))
    assert main(["chat", str(done), "--world", "product"]) == 0
    assert "world product. For example: 0 * 7?" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["chat"], ["serve", "--port", "0"]])
@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ([], "works in one world, and the recipe has 2 (counter, product): choose with --world NAME"),
        (["--world", "sum"], "the recipe has no world 'sum'; worlds: counter, product"),
    ],
)
def test_a_conversation_needs_one_world_of_the_recipe(done, capsys, command, chosen, says):
    assert main([command[0], str(done), *command[1:], *chosen]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_fas_stage_names_the_world_its_plans_are_for(tmp_path):
    path = tmp_path / "recipe.toml"
    stage = '[[stages]]\nkind = "fas"\nname = "plans"\n'
    path.write_text(RECIPE.format(model="m"))
    set_stages(path, stage)
    with pytest.raises(
        InputError, match=r"'plans': whose tools\? Name one world, `world = ...`; worlds: counter, prod"
    ):
        load_recipe(path)
    set_stages(path, stage + 'world = "sum"\n')
    with pytest.raises(InputError, match="'plans': no world 'sum'; worlds: counter, product"):
        load_recipe(path)
    set_stages(path, stage + 'world = "product"\n')
    assert load_recipe(path).stages[0].world == "product"


def test_plans_call_the_tools_of_the_world_named_and_hold_nothing_that_any_world_evaluates(tmp_path, model_folder):
    from quintain.worlds.desk import Desk

    shutil.copy(Path(__file__).parent / "counter.py", tmp_path)
    path = tmp_path / "recipe.toml"
    held_out = next(title for title, _ in Desk.corpus("eval", ("en",)))
    (tmp_path / "notes.md").write_text(f"# {held_out}\nPrice in euros: 4\n\n# Canteen\nPrice of soup in euros: 4\n")
    desk = RECIPE.format(model=model_folder).replace("worlds.product", "worlds.desk")
    path.write_text(desk.replace("product:Product", "quintain.worlds.desk:Desk"))
    stage = '[[stages]]\nkind = "fas"\nname = "plans"\nworld = "{}"\nworld_documents = false\n'
    set_stages(path, stage.format("desk") + 'documents = ["notes.md"]\nmake = { memories = 4, chinese = 0.0 }\n')
    assert main(["synth", str(path), "--out", str(tmp_path / "run")]) == 0
    samples = list(read_samples(tmp_path / "run" / "plans" / "samples.jsonl"))
    assert {one.toolset for one in samples} == {Desk().toolset().digest, None}
    documents = json.loads((tmp_path / "run" / "plans" / "synthesis.json").read_text())["documents"]
    assert documents["about an entity held out for evaluation"] == 1
