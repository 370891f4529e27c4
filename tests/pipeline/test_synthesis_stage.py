"""The fas stage and `quintain synth`: from documents to samples, with nothing of the evaluation in them."""

from __future__ import annotations

import json
import pickle
import re
import resource
import subprocess
import sys
from collections import Counter
from contextlib import closing

import pytest

from loopback import serve
from quintain.cli.main import main
from quintain.interface.errors import InputError
from quintain.interface.sample import read_samples
from quintain.pipeline.fas import OfflineWork, with_earlier_names
from quintain.pipeline.workshop import Workshop
from quintain.recipe import load_recipe
from quintain.synthesis.fas import draw
from quintain.synthesis.memory import Memory
from quintain.worlds.desk import Desk

RECIPE = """
name = "small"
[world]
world = "quintain.worlds.desk:Desk"
[pools.train]
split = "train"
count = 6
[pools.eval]
split = "eval"
count = 2
[[stages]]
kind = "rollout"
name = "demos"
pool = "train"
[[stages]]
kind = "fas"
name = "fas"
documents = ["handbook.md"]
data = ["demos"]
tools = ["open"]
make = { memories = 40, chinese = 0.25 }
"""
HANDBOOK = """# Front desk
Opening hour: 7
Phone: 555-0100
Colour of the badge: blue

# Canteen
Opening hour: 11
Phone: 555-0199
Price of soup in euros: 4
"""


@pytest.fixture
def recipe_file(tmp_path):
    (tmp_path / "handbook.md").write_text(HANDBOOK)
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def synth(*arguments):
    return main(["synth", *map(str, arguments)])


def test_synth_makes_samples_from_documents_world_and_episodes(recipe_file, tmp_path, capsys):
    assert synth(recipe_file, "--out", tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert "planning en" in said
    assert re.search(r"words alone tell right plans from wrong: 0\.\d\d en, 0\.\d\d zh \(chance 0\.50\)", said)
    folder = tmp_path / "run" / "fas"
    samples = list(read_samples(folder / "samples.jsonl"))
    assert {one.source for one in samples} == {"planning", "reasoning"}
    assert {one.language for one in samples} == {"en", "zh"}
    assert len({one.id for one in samples}) == len(samples)
    assert {one.toolset for one in samples} == {Desk().toolset().digest, None}
    rejected = list(read_samples(folder / "rejected.jsonl"))
    assert all(any(tag.startswith("rejected:") for tag in one.tags) for one in rejected)
    result = json.loads((folder / "manifest.json").read_text())["result"]
    # of the world's training split in either language; two chapters of the handbook; what the oracle opened
    assert result["documents"]["documents en"] > 493 + 2
    assert 480 < result["documents"]["documents zh"] <= 493  # a few hold more Latin letters than Chinese characters
    assert result["documents"]["duplicate documents"] > 0
    assert result["samples"]["planning en"] == sum((one.source, one.language) == ("planning", "en") for one in samples)
    assert result["counts"]["memories en"] == 30
    assert result["counts"]["memories zh"] == 10
    assert set(result["bag_of_words"]) == {"en", "zh"}
    assert result["openings"]["en"]["share"] <= 0.1  # of few samples; the 5 % are tested on many


def test_no_name_of_the_evaluation_stands_in_a_sample(recipe_file, tmp_path):
    names = [title for title, _ in Desk.corpus("eval", ("en", "zh"))]
    text = recipe_file.read_text() + "world_documents = true\n"
    (tmp_path / "handbook.md").write_text("".join(f"# {name}\nPrice of soup in euros: 4\n" for name in names))
    recipe_file.write_text(text.replace('data = ["demos"]\ntools = ["open"]\n', ""))
    assert synth(recipe_file, "--out", tmp_path / "run") == 0
    result = json.loads((tmp_path / "run" / "fas" / "manifest.json").read_text())["result"]
    assert result["documents"]["about an entity held out for evaluation"] == len(names)
    clusters = {one.cluster.partition(":")[2] for one in read_samples(tmp_path / "run" / "fas" / "samples.jsonl")}
    assert clusters
    assert clusters & set(names) == set()


def test_a_stage_that_plays_the_evaluation_pool_gives_no_memory(recipe_file):
    recipe_file.write_text(recipe_file.read_text().replace('pool = "train"', 'pool = "eval"'))
    with pytest.raises(InputError, match="data = 'demos' plays the evaluation pool 'eval'"):
        load_recipe(recipe_file)


def test_a_second_run_does_nothing_and_changed_documents_are_read_again(recipe_file, tmp_path, capsys):
    run = ["--out", tmp_path / "run"]
    assert synth(recipe_file, *run) == 0
    samples = (tmp_path / "run" / "fas" / "samples.jsonl").read_bytes()
    assert synth(recipe_file, *run) == 0
    assert "fas: done before" in capsys.readouterr().err
    assert (tmp_path / "run" / "fas" / "samples.jsonl").read_bytes() == samples
    (tmp_path / "handbook.md").write_text(HANDBOOK.replace("blue", "green and white"))
    assert synth(recipe_file, *run) == 0
    assert "the recipe changed" in capsys.readouterr().err


def test_preview_shows_samples_of_each_kind(recipe_file, tmp_path, capsys):
    assert synth(recipe_file, "--preview", 3, "--out", tmp_path / "run") == 0
    shown = capsys.readouterr().out
    for kind in ("planning", "rejected", "reasoning"):
        assert re.search(rf"^--- {kind}: \d samples$", shown, re.MULTILINE)
    assert "the offline teacher costs nothing" in shown
    assert not (tmp_path / "run" / "fas" / "samples.jsonl").exists()


def test_preview_of_an_endpoint_says_what_the_whole_run_would_cost(recipe_file, tmp_path, capsys):
    question = {"style": "factual", "question": "What is asked?", "answer": ["x"], "statements": [1]}
    replies = {
        "You write questions": {"questions": [question]},
        "You are an agent": {"analysis": "I look it up.", "tool": "search", "arguments": {"query": "x"}},
        "An agent was asked": {"right": True},
        "Answer this question": {"steps": [{"question": "What?", "answer": "It."}], "answer": "x"},
        "Somebody thought": {"reasoning": "It is known from the sources that it is x.", "answer": "x"},
    }

    def respond(request):
        prompt = request["messages"][0]["content"]
        return {"content": json.dumps(next(replies[start] for start in replies if prompt.startswith(start)))}

    with serve(respond) as server:
        text = recipe_file.read_text()
        text += f'teacher = {{ endpoint = {{ model = "m", url = "{server.url}", price_in = 1, price_out = 2 }} }}\n'
        recipe_file.write_text(text.replace("chinese = 0.25", "chinese = 0.0"))
        assert synth(recipe_file, "--preview", 2, "--json", "--out", tmp_path / "run") == 0
        first = json.loads(capsys.readouterr().out)["stages"]["fas"]
        asked = len(server.requests)
        assert synth(recipe_file, "--preview", 2, "--json", "--out", tmp_path / "run") == 0
        again = json.loads(capsys.readouterr().out)["stages"]["fas"]
        assert len(server.requests) == asked
    assert {kind: len(found) for kind, found in first["samples"].items()} == {
        "planning": 2,
        "rejected": 0,
        "reasoning": 2,
    }
    price = first["whole_run"]
    assert price["requests"] == 5 * 40
    assert price["price"] == pytest.approx((price["prompt_tokens"] + 2 * price["completion_tokens"]) / 1e6)
    assert again["whole_run"] == price


def test_other_settings_ask_for_nothing_that_was_asked_before(recipe_file, tmp_path):
    def respond(request):
        return {"content": json.dumps({"questions": [], "invalid": "nothing to ask"})}

    with serve(respond) as server:
        text = recipe_file.read_text().replace("memories = 40, chinese = 0.25", "memories = 3, chinese = 0.0")
        text += f'teacher = {{ endpoint = {{ model = "m", url = "{server.url}" }} }}\n'
        for memories in (3, 5):
            recipe_file.write_text(text.replace("memories = 3", f"memories = {memories}"))
            assert synth(recipe_file, "--out", tmp_path / "run") == 0
        assert (tmp_path / "run" / "fas.old1").is_dir()
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('kind = "fas"\nname = "fas"', 'kind = "rollout"\nname = "more"\npool = "train"', "unknown key"),
        ('tools = ["open"]\n', "", "`data` and `tools` go together"),
        ('documents = ["handbook.md"]', 'documents = ["none.md"]', "documents: no such file or folder"),
        ("chinese = 0.25", "chinese = 2", "chinese"),
        ("memories = 40", 'styles = ["rhyming"]', "styles"),
    ],
)
def test_a_wrong_key_is_one_line(recipe_file, tmp_path, capsys, old, new, complaint):
    recipe_file.write_text(recipe_file.read_text().replace(old, new))
    assert synth(recipe_file, "--out", tmp_path / "run") == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.strip().splitlines()) == 1


def test_documents_without_a_statement_end_the_preview_with_the_reasons(recipe_file, tmp_path, capsys):
    (tmp_path / "handbook.md").write_text("# Hi\n\n!\n")
    text = recipe_file.read_text().replace('data = ["demos"]\ntools = ["open"]\n', "world_documents = false\n")
    recipe_file.write_text(text)
    assert synth(recipe_file, "--preview", 1, "--out", tmp_path / "run") == 2
    assert "no memory to ask about; 1 documents en, 1 documents without a statement" in capsys.readouterr().err


def test_tools_the_world_does_not_have_are_refused(recipe_file, tmp_path, capsys):
    recipe_file.write_text(recipe_file.read_text().replace('tools = ["open"]', 'tools = ["opne"]'))
    assert synth(recipe_file, "--out", tmp_path / "run") == 2
    assert "no tool 'opne'; the world has search, open, calculate" in capsys.readouterr().err


def test_own_prompts_make_the_stage_run_again_when_they_change(recipe_file, tmp_path):
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "questions.md").write_text("Ask about $entity.")
    recipe_file.write_text(recipe_file.read_text() + 'teacher = { prompts = "prompts" }\n')
    manifest = tmp_path / "run" / "fas" / "manifest.json"
    found = []
    for text in ("Ask about $entity.", "Ask about $entity.", "Ask of $entity."):
        (prompts / "questions.md").write_text(text)
        assert synth(recipe_file, "--out", tmp_path / "run") == 0
        found.append(json.loads(manifest.read_text())["fingerprint"])
    assert found[0] == found[1] != found[2]


def test_a_stage_without_a_sample_says_why(recipe_file, tmp_path, capsys):
    text = recipe_file.read_text().replace('data = ["demos"]\ntools = ["open"]\n', "world_documents = false\n")
    recipe_file.write_text(text)
    (tmp_path / "handbook.md").write_text("Nothing here.")
    assert synth(recipe_file, "--out", tmp_path / "run") == 0
    assert "no sample; 0 plans rejected; why: " in capsys.readouterr().err


def test_synth_takes_one_recipe(recipe_file, capsys):
    assert synth(recipe_file, recipe_file) == 2
    assert "give one recipe" in capsys.readouterr().err


def test_excerpts_made_apart_give_what_one_teacher_makes_of_all(recipe_file, tmp_path):
    """As on a cluster: the stage, each excerpt and what comes of it go from process to process."""
    assert synth(recipe_file, "--out", tmp_path / "run") == 0
    folder = tmp_path / "run" / "fas"
    recipe = load_recipe(recipe_file)
    stage = recipe.stages[-1]
    work = pickle.loads(pickle.dumps(OfflineWork(Workshop(recipe, tmp_path, tmp_path / "run"), stage)))
    with closing(Memory(folder / "memory.sqlite")) as memory:
        rows = list(with_earlier_names(draw(memory, stage.make, Counter())))
        made = [pickle.loads(pickle.dumps(work(row))) for row in rows]
        kept = [one for part in made for one in part.kept if memory.is_new(one.id)]
    assert kept == list(read_samples(folder / "samples.jsonl"))
    assert [one for part in made for one in part.rejected] == list(read_samples(folder / "rejected.jsonl"))


def test_a_preview_refuses_documents_of_a_sealed_pool_before_any_teacher_reads_them(recipe_file, tmp_path, capsys):
    canary = "quintain-canary-" + 8 * "07af"
    (tmp_path / "handbook.md").write_text(f"{HANDBOOK}\n# Leak\nTags: {canary}\n")
    assert synth(recipe_file, "--preview", 1, "--out", tmp_path / "run") == 2
    assert "holds a task of a sealed pool (canary)" in capsys.readouterr().err


@pytest.mark.parametrize("kilobytes", [60, 500])
def test_a_disk_that_fills_up_under_a_memory_is_one_line_and_the_next_run_goes_on(recipe_file, tmp_path, kilobytes):
    command = [sys.executable, "-m", "quintain", "synth", str(recipe_file), "--out", str(tmp_path / "run")]

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, resource.RLIM_INFINITY))

    ended = subprocess.run(command, preexec_fn=small, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "mend that and run the same command again" in ended.stderr.splitlines()[-1]
    assert synth(recipe_file, "--out", tmp_path / "run") == 0
