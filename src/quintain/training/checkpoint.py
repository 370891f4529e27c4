"""Checkpoints: a folder appears whole or not at all, and resuming from it continues exactly.

A checkpoint holds the trainable parameters (with LoRA only the adapters), AdamW's moments, the random
states and the position in the data. What is frozen comes from the base model.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from quintain.interface.errors import InfraError

STATE = "state.json"
KEEP = 2
"""Checkpoints kept: the newest, and the one before in case the newest turns out to be a bad place to be."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands.

    Attributes:
        step: optimiser steps done; batches are a function of it, so it is the position in the data too.
        seconds: wall seconds of training so far.
    """

    step: int = 0
    seconds: float = 0.0


def save(folder: Path, model: Any, optimizer: torch.optim.Optimizer, position: Position) -> Path:
    """Writes `folder/step-NNNNNN` and removes all but the newest `KEEP`; returns its path."""
    target = folder / f"step-{position.step:06d}"
    with_gradient = _trainable(model)
    moments = {
        f"{key}.{name}": value
        for name, parameter in with_gradient.items()
        for key, value in optimizer.state[parameter].items()
    }
    with atomic_folder(target) as scratch:
        save_file(contiguous(with_gradient), scratch / "weights.safetensors")
        save_file(contiguous(moments), scratch / "optimizer.safetensors")
        save_file(_random_tensors(), scratch / "random.safetensors")
        sizes = {path.name: path.stat().st_size for path in scratch.iterdir()}
        state = {**asdict(position), "python_random": random.getstate(), "files": sizes}
        (scratch / STATE).write_text(json.dumps(state))
    for old in complete(folder)[:-KEEP]:
        shutil.rmtree(old)
    return target


def complete(folder: Path) -> list[Path]:
    """Usable checkpoints, oldest first; a torn one (a missing or short file) is left out."""
    return sorted(path for path in folder.glob("step-*") if _is_whole(path))


def latest(folder: Path) -> Path | None:
    """The newest usable checkpoint."""
    return next(reversed(complete(folder)), None)


def restore(path: Path, model: Any, optimizer: torch.optim.Optimizer) -> Position:
    """Puts weights, moments and random states back; returns where the run stood."""
    state = json.loads((path / STATE).read_text())
    with_gradient = _trainable(model)
    weights = load_file(path / "weights.safetensors")
    moments = load_file(path / "optimizer.safetensors")
    with torch.no_grad():
        for name, parameter in with_gradient.items():
            parameter.copy_(weights[name])
    for key, value in moments.items():
        kind, name = key.split(".", 1)
        parameter = with_gradient[name]
        optimizer.state[parameter][kind] = _as_adamw_wants(value, parameter)
    _restore_random(load_file(path / "random.safetensors"), state["python_random"])
    return Position(state["step"], state["seconds"])


class atomic_folder:
    """A scratch folder that takes its final name, in one step, once the block has ended without an error."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._scratch = target.parent / f".{target.name}.partial"

    def __enter__(self) -> Path:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        return self._scratch

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            if isinstance(error, SafetensorError):  # how safetensors reports a full disk
                raise InfraError(
                    f"{self._target} can't be written: {error}; free space and run the same command again"
                ) from error
            return
        for path in (*self._scratch.rglob("*"), self._scratch):
            sync(path)
        shutil.rmtree(self._target, ignore_errors=True)
        self._scratch.rename(self._target)
        sync(self._target.parent)


def sync(path: Path) -> None:
    """Waits until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as safetensors wants them: detached and dense."""
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}


def _as_adamw_wants(value: Tensor, parameter: Tensor) -> Tensor:
    """On the parameter's device, and a moment in its layout too: the fused kernel reads both in memory's order."""
    if value.shape != parameter.shape:  # the step counter
        return value.to(parameter.device)
    return torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def _trainable(model: Any) -> dict[str, torch.nn.Parameter]:
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _is_whole(path: Path) -> bool:
    state = path / STATE
    if not state.is_file():
        return False
    files = json.loads(state.read_text())["files"]
    return all((path / name).is_file() and (path / name).stat().st_size == size for name, size in files.items())


def _random_tensors() -> dict[str, Tensor]:
    tensors = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        tensors |= {f"cuda.{index}": state for index, state in enumerate(torch.cuda.get_rng_state_all())}
    return tensors


def _restore_random(tensors: Mapping[str, Tensor], python: list[Any]) -> None:
    torch.set_rng_state(tensors["cpu"])
    for name, state in tensors.items():
        if name.startswith("cuda."):
            torch.cuda.set_rng_state(state, int(name.removeprefix("cuda.")))
    version, internal, gauss = python
    random.setstate((version, tuple(internal), gauss))
