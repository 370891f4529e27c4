"""The GRPO stage end to end: it learns, resumes, survives bad input, and is stopped when it collapses."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from quintain.commands.commands import run
from quintain.harness.journal import read_journal
from quintain.interface.errors import InfraError, InputError
from quintain.pipeline.gathering import Gathering
from quintain.recipe import load_recipe
from quintain.training.advantage import Group
from quintain.training.loop import Trainer

RECIPE = """
name = "pick"
seed = 3
concurrency = 32

[model]
base = "{model}"

[world]
world = "picker:{world}"

[budget]
turns = 1
tokens = 4

[pools.train]
split = "train"
count = 6

[[stages]]
kind = "grpo"
name = "grpo"
pool = "train"
validation = "train"
max_tokens = 1

[stages.train]
{train}
"""
TRAIN = {
    "learning_rate": 0.03,
    "warmup": 0.0,
    "group_size": 8,
    "groups": 4,
    "steps": 20,
    "kl": 0.005,
    "refill": 0,
    "validate_every": 5,
    "checkpoint_seconds": 0.0,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(Path(__file__).parent / "picker.py", folder)
    return folder


@pytest.fixture
def recipe(home: Path, model_folder: Path):
    """Writes a recipe: `recipe(world, **train)`."""

    def write(world: str = "Picker", **train: Any) -> Path:
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in (TRAIN | train).items())
        path = home / "pick.toml"
        path.write_text(RECIPE.format(model=model_folder, world=world, train=lines))
        return path

    return write


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "grpo" / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path) -> bytes:
    return (folder / "grpo" / "model" / "model.safetensors").read_bytes()


@pytest.fixture
def checkpoints_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage that is done leaves its checkpoints, as one does that is killed before."""
    monkeypatch.setattr("quintain.pipeline.run.drop_checkpoints", lambda folder: None)


def as_if_killed_at_its_end(folder: Path) -> None:
    shutil.rmtree(folder / "grpo" / "model")
    manifest = folder / "grpo" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"done"', '"running"'))


def test_reward_rises_and_every_step_is_on_record(recipe, tmp_path):
    folder = tmp_path / "run"
    result = run(recipe(), folder)["stages"]["grpo"]
    assert not {"checkpoints", "good"} & {one.name for one in (folder / "grpo").iterdir()}, "nothing resumes from them"
    found = rows(folder)
    assert [row["step"] for row in found] == list(range(1, 21))
    assert sum(row["success"] for row in found[:3]) / 3 < 0.4
    assert sum(row["success"] for row in found[-3:]) / 3 > 0.55
    assert [row["step"] for row in found if "validation_success" in row] == [5, 10, 15, 20]
    assert (result["rollbacks"], result["infra"], result["ended"]) == (0, 0, "")
    assert all(row["mismatch"] < 1e-4 for row in found if "mismatch" in row)
    monitors = {"reward_spread", "zero_variance", "entropy", "gradient_norm", "turns", "truncation", "kl"}
    assert monitors <= set(found[0])
    assert sorted(path.name for path in (folder / "grpo" / "sheets").iterdir()) == [
        f"step-{step:06d}.md" for step in (5, 10, 15, 20)
    ]
    assert "of 6 episodes succeed" in (folder / "grpo" / "sheets" / "step-000005.md").read_text()


def test_adapters_learn_without_a_second_model_and_are_merged_at_the_end(recipe, tmp_path, monkeypatch):
    copies = SimpleNamespace(deepcopy=lambda model: pytest.fail("a second copy of the model"))
    monkeypatch.setattr("quintain.training.worker.copy", copies)
    folder = tmp_path / "run"
    run(recipe(lora_rank=4, steps=4), folder)
    found = rows(folder)
    assert found[0]["kl"] == pytest.approx(0, abs=1e-6)
    assert found[-1]["kl"] > 1e-5
    names = {path.name for path in (folder / "grpo" / "model").iterdir()}
    assert {"config.json", "model.safetensors"} <= names
    summary = json.loads((folder / "grpo" / "model" / "training.json").read_text())
    assert summary["digests"] == [json.loads((folder / "grpo" / "manifest.json").read_text())["digests"]]
    assert "adapter_config.json" not in names


@pytest.mark.parametrize("ahead", [0, 1])
def test_steps_after_the_checkpoint_are_learnt_again_from_their_journals_bit_for_bit(
    recipe, tmp_path, monkeypatch, checkpoints_kept, ahead
):
    """The run's last checkpoint is of step 3 of 6; it is made to look as if it had died just before its end."""
    path, folder = recipe(steps=6, fresh_share=0.5, ahead=ahead), tmp_path / "run"
    save = Trainer.save

    def until_step_three(self, where, position):
        return save(self, where, position) if position.step <= 3 else where / "step-000003"

    monkeypatch.setattr(Trainer, "save", until_step_three)
    run(path, folder)
    before, expected = weights(folder), rows(folder)
    journals = {one: one.read_bytes() for one in folder.glob("grpo/rollouts/*/journal.jsonl")}
    as_if_killed_at_its_end(folder)
    run(path, folder)
    assert weights(folder) == before
    assert {one: one.read_bytes() for one in journals} == journals
    timing = {"seconds", "rollout_seconds", "training_seconds", "step_seconds", "tokens_per_second"}
    timing |= {"trainer_idle", "engine_idle"}
    for found, row in zip(rows(folder), expected, strict=True):
        assert {key: found[key] for key in found.keys() - timing} == {key: row[key] for key in row.keys() - timing}


@pytest.fixture
def far_ahead(monkeypatch):
    """Whatever is begun ahead is played to its end before the trainer learns from this step."""
    original = Gathering.take

    def take(self: Gathering, step: int) -> list[Group]:
        groups = original(self, step)
        for future in self._begun.values():
            future.result()
        return groups

    monkeypatch.setattr(Gathering, "take", take)


def test_a_step_played_ahead_is_one_update_old_and_no_step_is_played_that_the_run_does_not_reach(
    recipe, tmp_path, far_ahead
):
    folder = tmp_path / "run"
    run(recipe(ahead=1, steps=4, learning_rate=1e-3), folder)
    found = rows(folder)
    assert [row["staleness"] for row in found] == [0, 1, 1, 1]
    assert [row["version"] for row in found] == [1, 2, 3, 4]
    assert ["mismatch" in row for row in found] == [True, False, False, False]
    assert len(list(folder.glob("grpo/rollouts/*"))) == 4
    (third,) = {
        generation.version
        for episode in read_journal(folder / "grpo" / "rollouts" / "step-000003")[0]
        if (generation := episode.turns[0].action.generation)
    }
    assert third == 1  # begun when step 2's groups were there, one update before step 3's own


def test_what_was_played_ahead_by_weights_that_a_rollback_took_back_is_not_learnt_from(
    recipe, tmp_path, monkeypatch, far_ahead
):
    break_losses(monkeypatch, range(3, 6))
    folder = tmp_path / "run"
    run(recipe(ahead=1, steps=7, learning_rate=1e-4), folder)
    found = rows(folder)
    assert found[4]["rolled_back_to"] == 1
    assert found[5]["kept_groups"] > 0
    assert "loss" not in found[5]
    assert [row["version"] for row in found] == [1, 2, 2, 2, 3, 3, 4]
    assert found[6]["staleness"] == 0


def test_nor_does_a_resumed_run_reuse_them(recipe, tmp_path, monkeypatch, far_ahead, checkpoints_kept):
    """Step 6 is played by the weights that step 5 takes back; the run dies after it, and goes on with step 7."""
    break_losses(monkeypatch, range(3, 6))
    path, folder = recipe(ahead=1, steps=7, learning_rate=1e-4, fresh_share=0.5), tmp_path / "run"
    run(path, folder)
    before, expected = weights(folder), rows(folder)
    assert (expected[4]["rolled_back_to"], expected[5]["kept_groups"] > 0) == (1, True)
    assert (expected[6]["stale_groups"], expected[6]["staleness"]) == (0, 0)
    as_if_killed_at_its_end(folder)
    shutil.rmtree(folder / "grpo" / "checkpoints" / "step-000007")
    run(path, folder)
    assert rows(folder)[6]["stale_groups"] == 0
    assert weights(folder) == before


def test_kills_lose_no_finished_episode_and_interrupted_ones_go_on(recipe, tmp_path):
    path, folder = recipe(checkpoint_seconds=0.5), tmp_path / "run"
    command = [sys.executable, "-m", "quintain", "run", str(path), "--out", str(folder)]
    kept: dict[Path, dict[str, Any]] = {}
    for step, how in ((2, signal.SIGKILL), (5, signal.SIGINT)):
        process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
        journal = folder / "grpo" / "rollouts" / f"step-{step:06d}"
        while process.poll() is None and not list(folder.glob(f"grpo/rollouts/{journal.name}/journal.jsonl")):
            time.sleep(0.002)
        process.send_signal(how)
        process.wait()
        for one in sorted(folder.glob("grpo/rollouts/*")):
            kept.setdefault(one, {}).update({episode.id: episode for episode in read_journal(one)[0]})
    run(path, folder)
    assert [row["step"] for row in rows(folder)] == list(range(1, 21))
    assert len(kept) >= 5
    for one, episodes in kept.items():
        again, unfinished = read_journal(one)
        assert unfinished == []
        assert len({episode.id for episode in again}) == len(again) == 32
        assert {episode.id: episode for episode in again if episode.id in episodes} == episodes


def test_a_collapse_is_rolled_back_twice_and_then_stopped_saying_why(recipe, tmp_path, capsys, checkpoints_kept):
    """A learning rate of 3 turns the policy into noise or into one token: no group varies any more."""
    folder = tmp_path / "run"
    path = recipe("Halves", learning_rate=3.0, steps=60, validate_every=50, kl=0.02)
    result = run(path, folder)["stages"]["grpo"]
    found = rows(folder)
    rolled = [row for row in found if "rolled_back_to" in row]
    said = capsys.readouterr().err
    assert len(rolled) == 3
    assert result["rollbacks"] == 3
    assert "; rolled back 3 times; warnings: " in result["line"]
    assert result["ended"].startswith("stopped by the guard: ")
    assert "KL 0.04, learning rate 1.5 from here on" in said
    assert "KL 0.08, learning rate 0.75 from here on" in said
    after = next(row for row in found[rolled[0]["step"] :] if "learning_rate" in row)
    assert (after["kl_weight"], after["learning_rate"]) == (0.04, 1.5)
    # the model that is left is the last good one, not the collapsed one
    from safetensors.torch import load_file

    left = load_file(folder / "grpo" / "model" / "model.safetensors")
    good = load_file(folder / "grpo" / "good" / f"step-{rolled[-1]['rolled_back_to']:06d}" / "weights.safetensors")
    assert all(torch.equal(left[name], good[name]) for name in left)


def test_all_equal_rewards_are_counted_named_and_end_the_run_with_the_model_unchanged(recipe, tmp_path, capsys):
    folder = tmp_path / "run"
    result = run(recipe("Equal"), folder)["stages"]["grpo"]
    found = rows(folder)
    assert len(found) == 5
    assert all((row["kept_groups"], row["zero_variance"]) == (0, 1.0) for row in found)
    assert "no group has anything to teach: rule no_kept_group, steps 1 to 5" in result["ended"]
    assert result["warnings"]["no_kept_group"] == 4
    assert "warnings: no_kept_group (4)" in result["line"]


def test_episodes_that_all_break_stop_the_run_which_goes_on_once_the_world_is_mended(recipe, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    path = recipe("Broken", steps=7, validate_every=50)
    monkeypatch.setenv("PICKER_BROKEN", "1")
    with pytest.raises(InfraError, match=r"step 5: .*more episodes broke than were scored: mend the tools"):
        run(path, folder)
    assert [row["infra"] for row in rows(folder)] == [32] * 5
    monkeypatch.delenv("PICKER_BROKEN")
    result = run(path, folder)["stages"]["grpo"]
    assert result["steps"] == 7
    assert result["infra"] == 5 * 32
    assert rows(folder)[-1]["kept_groups"] > 0


def test_a_group_whose_verifier_dies_is_topped_up_and_left_out_while_the_others_are_learnt_from(recipe, tmp_path):
    folder = tmp_path / "run"
    result = run(recipe("Flaky", groups=6, steps=2), folder)["stages"]["grpo"]
    first = rows(folder)[0]
    assert first["groups"] == 6
    assert first["short_groups"] == 1
    assert first["infra"] == 9  # 7 of 8, and the 2 of the 3 that were played on top
    assert first["kept_groups"] >= 3
    assert result["steps"] == 2


def break_losses(monkeypatch: pytest.MonkeyPatch, updates: range) -> None:
    """The loss of these updates, counted from 1, is no number."""
    original = Trainer._accumulate
    count = iter(range(1, 1000))

    def breaks(self: Trainer, examples: Any) -> Any:
        metrics = original(self, examples)
        return metrics | ({"loss": float("nan")} if next(count) in updates else {})

    monkeypatch.setattr(Trainer, "_accumulate", breaks)


def test_a_loss_that_is_no_number_skips_the_update_and_three_roll_back(recipe, tmp_path, monkeypatch):
    break_losses(monkeypatch, range(3, 6))
    folder = tmp_path / "run"
    result = run(recipe(steps=7, learning_rate=1e-4), folder)["stages"]["grpo"]
    found = rows(folder)
    assert [row.get("not_finite", 0) for row in found] == [0, 0, 1, 1, 1, 0, 0]
    assert [row["version"] for row in found] == [1, 2, 2, 2, 3, 4, 5]
    assert found[4]["rolled_back_to"] == 1
    assert (result["skipped_updates"], result["rollbacks"]) == (3, 1)


def test_where_the_cache_is_full_episodes_wait(recipe, tmp_path):
    """Each of the 32 episodes takes more than half of the cache."""
    path = recipe(steps=1)
    path.write_text(path.read_text().replace("concurrency = 32", "concurrency = 32\nkv_tokens = 64"))
    run(path, tmp_path / "run")
    (row,) = rows(tmp_path / "run")
    assert (row["episodes"], row["infra"]) == (32, 0)
    played = read_journal(tmp_path / "run" / "grpo" / "rollouts" / "step-000001")[0]
    assert all(2 * sum(len(one.ids) for one in episode.segments) > 64 for episode in played)


def test_groups_that_teach_nothing_are_replaced_by_others(recipe, tmp_path):
    folder = tmp_path / "run"
    run(recipe(refill=2, steps=1, groups=3), folder)
    (row,) = rows(folder)
    assert row["groups"] >= 3
    assert row["groups"] == 3 or row["kept_groups"] <= 3


def test_recent_groups_join_a_batch_as_far_as_the_fresh_share_allows(recipe, tmp_path):
    folder = tmp_path / "run"
    run(recipe(fresh_share=0.5, steps=3, learning_rate=1e-4), folder)
    first, second, third = rows(folder)
    assert first["stale_groups"] == 0
    assert second["stale_groups"] == min(first["kept_groups"], second["kept_groups"])
    assert "mismatch" in first
    assert "mismatch" not in third


def test_nothing_is_held_from_step_to_step(recipe, tmp_path, monkeypatch):
    """Live tensors after each update, the cycle collector switched off: nothing waits for it."""
    held: list[int] = []

    def measure() -> None:
        held.append(sum(type(one) in (torch.Tensor, torch.nn.Parameter) for one in gc.get_objects()))

    monkeypatch.setattr("quintain.pipeline.grpo.give_back_memory", measure)
    gc.collect()
    gc.disable()
    try:
        run(recipe(steps=12, learning_rate=1e-3, fresh_share=0.5), tmp_path / "run")
    finally:
        gc.enable()
    after_updates = held[1::2]
    assert len(after_updates) == 12
    assert set(after_updates[1:]) == {after_updates[1]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('validation = "train"', 'validation = "tests"', "validation = 'tests'; pools: train"),
        ('name = "grpo"', 'name = "grpo"\nstart = "sft"', "start = 'sft' is not known there; allowed: base"),
        ("group_size = 8", "group_size = 3", "group_size: input should be greater than or equal to 4, found 3"),
        ("kl = 0.005", "ratio_cap = 1.1", "ratio_cap = 1.1 must be at least 1 + clip_high = 1.28"),
        ("kl = 0.005", "reward = { most_cost = 1.0 }", "reward.most_cost: input should be less than 1, found 1.0"),
        ("kl = 0.005", 'guard = { off = ["x"] }', "guard.off: no rule 'x'; rules: reward_spread"),
        ('pool = "train"', 'pool = "train"\nsampling = { grammar = true }', "unknown key 'stages.0.sampling'; allowed"),
        ("kl = 0.005", "reward = { call = 1.0 }", "unknown key 'stages.0.train.reward.call'; allowed: calls"),
    ],
)
def test_a_wrong_key_of_the_stage_is_one_line(recipe, old, new, message):
    path = recipe()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_recipe(path)
    assert message in str(caught.value)


CHECKPOINTS_KEPT = """
from quintain.cli.main import main
from quintain.pipeline import run

run.drop_checkpoints = lambda folder: None
raise SystemExit(main())
"""


def torchrun(count: int, program: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line on `count` gloo processes that talk over the loopback interface."""
    launch = ["--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(count), *program, *arguments]
    command = [sys.executable, "-m", "torch.distributed.run", *launch]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_same_recipe_learns_the_same_on_two_ranks_and_goes_on_with_one(recipe, model_folder, tmp_path):
    path, alone, folder = recipe(steps=2, learning_rate=1e-3), tmp_path / "alone", tmp_path / "two"
    run(path, alone)
    program = tmp_path / "program.py"
    program.write_text(CHECKPOINTS_KEPT)
    done = torchrun(2, [str(program)], "run", str(path), "--out", str(folder), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stages"]["grpo"]["steps"] == 2  # printed once, by rank 0
    for found, expected in zip(rows(folder), rows(alone), strict=True):
        same = ("success", "loss", "gradient_norm", "kl", "mismatch", "loss_weight")
        assert [found[key] for key in same] == pytest.approx([expected[key] for key in same], rel=1e-3, abs=1e-5)
    before, found, expected = (
        load_file(one / "model.safetensors")
        for one in (model_folder, folder / "grpo" / "model", alone / "grpo" / "model")
    )
    # AdamW's first steps have one size, also where a gradient is rounding alone: what is compared is the whole move.
    apart = sum((found[name] - value).square().sum() for name, value in expected.items())
    moved = sum((before[name] - value).square().sum() for name, value in expected.items())
    assert apart.sqrt() < 0.02 * moved.sqrt()

    as_if_killed_at_its_end(folder)
    assert run(path, folder)["stages"]["grpo"]["steps"] == 2
    assert load_file(folder / "grpo" / "model" / "model.safetensors").keys() == expected.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_wrong_input_on_two_ranks_is_said_once_and_ends_all(recipe, tmp_path):
    path = recipe(steps=2)
    path.write_text(path.read_text().replace("steps = 2", "stepz = 2"))
    done = torchrun(2, ["-m", "quintain"], "run", str(path), "--out", str(tmp_path / "run"))
    assert done.returncode == 1  # torchrun's own
    assert done.stderr.count("quintain: ") == 1
    assert "stepz" in next(line for line in done.stderr.splitlines() if line.startswith("quintain: "))
