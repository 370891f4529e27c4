"""Checkpoints: whole or not there, even when the process is killed while it writes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from training_models import example, tiny

from quintain.inference.products import lay_by_columns
from quintain.training import checkpoint
from quintain.training.checkpoint import Position
from quintain.training.config import TrainConfig
from quintain.training.loop import Trainer
from quintain.training.lora import add_lora
from quintain.training.objective import cross_entropy

BATCH = [example([5, 6, 7, 8]), example([5, 6, 9])]

KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
import torch
from quintain.training import checkpoint

folder = Path(sys.argv[1])
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
written = []

def save_file(tensors, path):
    real(tensors, path)
    written.append(path)
    if len(written) == 5:  # the second file of the second checkpoint
        os.truncate(path, path.stat().st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

real, checkpoint.save_file = checkpoint.save_file, save_file
for step in (1, 2):
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.save(model.state_dict(), folder / f"after-{step}.pt")
    checkpoint.save(folder / "checkpoints", model, optimizer, checkpoint.Position(step, step * 2.0))
"""


def trained(steps: int, model: torch.nn.Module | None = None) -> Trainer:
    trainer = Trainer(tiny() if model is None else model, cross_entropy, TrainConfig(learning_rate=1e-3))
    for _ in range(steps):
        trainer.step(BATCH, 1.0)
    return trainer


def save(folder: Path, trainer: Trainer, step: int) -> Path:
    return trainer.save(folder, Position(step, step * 2.0))


def test_sigkill_while_a_checkpoint_is_written_leaves_the_one_before(tmp_path):
    command = [sys.executable, "-c", KILLED_WHILE_WRITING, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    folder = tmp_path / "checkpoints"
    assert {path.name for path in folder.iterdir()} == {"step-000001", ".step-000002.partial"}

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    assert checkpoint.restore(checkpoint.latest(folder), model, optimizer) == Position(1, 2.0)
    assert torch.equal(model.weight, torch.load(tmp_path / "after-1.pt")["weight"])
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    assert torch.equal(model.weight, torch.load(tmp_path / "after-2.pt")["weight"])

    checkpoint.save(folder, model, optimizer, Position(2, 4.0))
    assert {path.name for path in folder.iterdir()} == {"step-000001", "step-000002"}


@pytest.mark.parametrize("damage", ["short", "missing", "no state"])
def test_a_torn_checkpoint_is_ignored(tmp_path, damage):
    trainer = trained(1)
    whole = save(tmp_path, trainer, 1)
    torn = save(tmp_path, trainer, 2)
    weights = torn / "weights.safetensors"
    if damage == "short":
        os.truncate(weights, weights.stat().st_size - 1)
    else:
        (weights if damage == "missing" else torn / checkpoint.STATE).unlink()
    assert checkpoint.latest(tmp_path) == whole


def test_an_empty_folder_has_no_checkpoint(tmp_path):
    assert checkpoint.latest(tmp_path) is None


def test_old_checkpoints_are_removed_but_two(tmp_path):
    trainer = trained(1)
    for step in (1, 2, 3):
        save(tmp_path, trainer, step)
    assert [path.name for path in checkpoint.complete(tmp_path)] == ["step-000002", "step-000003"]


def test_random_states_come_back(tmp_path):
    trainer = trained(1)
    path = save(tmp_path, trainer, 1)
    expected = (torch.rand(3).tolist(), random.random())
    trainer.restore(path)
    assert (torch.rand(3).tolist(), random.random()) == expected


def test_with_adapters_only_adapters_are_in_a_checkpoint(tmp_path):
    path = save(tmp_path, trained(1, add_lora(tiny(), 2, seed=0)), 1)
    names = list(load_file(path / "weights.safetensors"))
    assert names
    assert all("lora_" in name for name in names)


def test_a_folder_whose_writing_fails_does_not_appear(tmp_path):
    def write_half() -> None:
        with checkpoint.atomic_folder(tmp_path / "target") as scratch:
            (scratch / "half").write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert list(tmp_path.iterdir()) == []


def test_resuming_continues_exactly_where_weights_lie_column_by_column(tmp_path):
    whole, first, second = tiny(), tiny(), tiny()
    for model in (whole, first, second):
        lay_by_columns(model)
    path = save(tmp_path, trained(1, first), 1)
    resumed = trained(0, second)
    resumed.restore(path)
    resumed.step(BATCH, 1.0)
    expected = trained(2, whole).model.state_dict()
    for name, value in resumed.model.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0)


def test_training_does_not_depend_on_the_layout_of_the_weights():
    rows, columns = tiny(), tiny()
    lay_by_columns(columns)
    expected = trained(3, rows).model.state_dict()
    for name, value in trained(3, columns).model.state_dict().items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-5)
