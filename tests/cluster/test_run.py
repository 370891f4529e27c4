"""A recipe on a cluster, killed and run again: the command's own process is one that may be lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quintain.cluster.placement import Placement, connect
from quintain.interface.errors import InputError
from quintain.interface.reading import read_records
from quintain.recipe import recipe_from_table
from quintain.training.rows import METRICS, read_rows

STEPS = 4
RECIPE = """
name = "pick"

[model]
base = "{model}"

[cluster]
workers = 2
episodes_per_worker = 8

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

[stages.train]
learning_rate = 0.01
group_size = 4
groups = 2
steps = {steps}
ahead = 1
refill = 0
checkpoint_seconds = 0.0

[[stages]]
kind = "eval"
name = "after"
model = "grpo"
pool = "train"
samples = 1
sampling = {{ max_tokens = 1 }}
"""


def rows(folder: Path) -> list[dict[str, Any]]:
    return read_rows(folder / "grpo" / METRICS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_killed_run_goes_on_its_metrics_continue_and_no_episode_is_lost_or_twice(
    cluster: Any, tmp_path: Path, model_folder: Path
):
    recipe, folder = tmp_path / "pick.toml", tmp_path / "run"
    recipe.write_text(RECIPE.format(model=model_folder, steps=STEPS))
    shutil.copy(Path(__file__).parents[1] / "pipeline" / "picker.py", tmp_path)
    command = [sys.executable, "-m", "quintain", "run", str(recipe), "--out", str(folder)]
    environment = os.environ | {"RAY_ADDRESS": cluster.address}
    first = subprocess.Popen(command, env=environment)
    while len(rows(folder)) < 2:
        assert first.poll() is None, "the run ended by itself"
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    before = rows(folder)
    subprocess.run(command, env=environment, check=True)
    after = rows(folder)
    assert [row["step"] for row in after] == list(range(1, STEPS + 1))
    assert after[: len(before) - 1] == before[:-1]  # the last may have been written after its checkpoint
    assert all(0 <= row["trainer_idle"] <= 1 for row in after)
    # a step that was over between two looks at the workers has none
    assert all(0 <= row["engine_idle"] <= 1 for row in after if "engine_idle" in row)
    assert all(row.get("staleness", 0) <= 1 for row in after)
    for step in range(1, STEPS + 1):
        journal = folder / "grpo" / "rollouts" / f"step-{step:06d}" / "journal.jsonl"
        ends = Counter(one["episode"] for one in read_records(journal) if one["kind"] == "end")
        assert set(ends.values()) == {1}
        assert len(ends) == 8
    evaluated = read_records(folder / "after" / "journal" / "journal.jsonl")
    assert Counter(one["kind"] for one in evaluated) == {"start": 4, "turn": 4, "end": 4}


def test_without_ray_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"\[cluster\] needs the package ray: pip install 'quintain\[cluster\]'"):
        connect(Placement(1))


def test_a_cluster_needs_workers():
    table = {"name": "x", "pools": {"p": {"split": "train"}}, "stages": [], "cluster": {"workers": 0}}
    with pytest.raises(InputError, match=r"cluster\.workers.*1"):
        recipe_from_table(table, "recipe")
