"""Stored episodes judged again by a changed verifier: no model, nothing stored is touched."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from quintain.commands.commands import rescore, run
from quintain.commands.pools import seal_pool
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError


@pytest.fixture
def played(recipe_file, tmp_path):
    """A run with one evaluation of the base model."""
    text = recipe_file.read_text()
    start, stop = text.index('[[stages]]\nkind = "rollout"'), text.index('[[stages]]\nkind = "eval"\nname = "tuned"')
    recipe_file.write_text(text[:start] + text[stop:].replace('model = "sft"', 'model = "base"'))
    run(recipe_file, tmp_path / "run")
    return tmp_path / "run" / "tuned"


def test_the_same_verifier_gives_the_same_verdicts_and_the_stored_run_stays_byte_for_byte(
    recipe_file, played, tmp_path
):
    before = (played / "journal" / "journal.jsonl").read_bytes()
    result = rescore(recipe_file, played, "eval", tmp_path / "again")["stages"]["eval"]
    assert result["changed"] == 0
    old, _ = read_journal(played / "journal")
    new, unfinished = read_journal(tmp_path / "again" / "eval" / "journal")
    assert unfinished == []
    assert {one.id: (one.verdict, str(one.outcome)) for one in new} == {
        one.id: (one.verdict, str(one.outcome)) for one in old
    }
    assert result["judged"] == sum(one.outcome.kind != "agent_error" and one.outcome.limit != "context" for one in old)
    assert (played / "journal" / "journal.jsonl").read_bytes() == before


def test_a_mended_verifier_judges_what_was_played_before(recipe_file, played, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(recipe_file.parent, other)
    source = (other / "counter.py").read_text()
    (other / "mended.py").write_text(source.replace("return Verdict(", "return Verdict(True) or Verdict("))
    recipe = other / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("counter:Counter", "mended:Counter"))
    command = [sys.executable, "-m", "quintain", "eval", str(recipe), "--rescore", str(played), "--json"]
    done = subprocess.run([*command, "--out", str(tmp_path / "again")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["stages"]["eval"]
    assert result["judged"] > 0
    assert result["changed"] == result["judged"]
    assert json.loads((tmp_path / "again" / "eval" / "evaluation.json").read_text())["overall"]["pass1"]["value"] == 1.0


def test_a_verifier_that_judges_nothing_is_one_line_and_the_stored_run_stays(recipe_file, played, tmp_path):
    source = (recipe_file.parent / "counter.py").read_text()
    (recipe_file.parent / "gone.py").write_text(
        source.replace("return Verdict(", "raise OSError('no disk') or Verdict(")
    )
    recipe_file.write_text(recipe_file.read_text().replace("counter:Counter", "gone:Counter"))
    with pytest.raises(InputError, match="none of 8 episodes has a score now, 8 of them: verify failed"):
        rescore(recipe_file, played, "eval", tmp_path / "again")
    assert len(read_journal(played / "journal")[0]) == 8


def test_a_sealed_pool_is_opened_for_it_and_its_log_names_the_stored_run(recipe_file, tmp_path):
    keep = (tmp_path / "eval.sealed", tmp_path / "eval.key")
    seal_pool(recipe_file, "eval", *keep)
    text = recipe_file.read_text().replace('split = "eval"\ncount = 4', f'sealed = "{keep[0]}"\nkey = "{keep[1]}"')
    start, stop = text.index('[[stages]]\nkind = "rollout"'), text.index('[[stages]]\nkind = "eval"\nname = "tuned"')
    recipe_file.write_text(text[:start] + text[stop:].replace('model = "sft"', 'model = "base"'))
    run(recipe_file, tmp_path / "run")
    assert (
        rescore(recipe_file, tmp_path / "run" / "tuned", "eval", tmp_path / "again")["stages"]["eval"]["changed"] == 0
    )
    last = json.loads((tmp_path / "eval.sealed.log").read_text().splitlines()[-1])
    assert (last["purpose"], last["checkpoint"]) == ("evaluation", str(tmp_path / "run" / "tuned"))


def test_what_cant_be_judged_again_is_one_line(recipe_file, played, tmp_path):
    with pytest.raises(InputError, match="is no finished eval stage; give RUN/STAGE"):
        rescore(recipe_file, played.parent, "eval", tmp_path / "a")
    with pytest.raises(InputError, match=r"pool 'train' lacks task"):
        rescore(recipe_file, played, "train", tmp_path / "b")
    rescore(recipe_file, played, "eval", tmp_path / "c")
    with pytest.raises(InputError, match="holds an evaluation already"):
        rescore(recipe_file, played, "eval", tmp_path / "c")
