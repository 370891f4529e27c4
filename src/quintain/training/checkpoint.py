"""Checkpoints: a folder appears whole or not at all, and resuming from it continues exactly.

A checkpoint holds the trainable parameters (with LoRA only the adapters), AdamW's moments, the random
states and the position in the data. What is frozen comes from the base model.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from quintain.interface.errors import InfraError
from quintain.interface.tensors import need_same_model
from quintain.training import ranks
from quintain.training.ranks import first_row, rows

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
    """Writes `folder/step-NNNNNN` and removes all but the newest `KEEP`; returns its path.

    Every rank calls it and writes the rows it holds into a file of its own, so `folder` must be one that all see.
    """
    target = folder / f"step-{position.step:06d}"
    with_gradient = trained_parameters(model)
    moments = {
        f"{key}.{name}": value
        for name, parameter in with_gradient.items()
        for key, value in optimizer.state[parameter].items()
    }
    with _written_together(target, position) as scratch:
        save_file(contiguous(with_gradient), scratch / _part("weights"))
        save_file(contiguous(moments), scratch / _part("optimizer"))
    if ranks.rank() == 0:
        for old in complete(folder)[:-KEEP]:
            shutil.rmtree(old)
    return target


@contextmanager
def _written_together(target: Path, position: Position) -> Iterator[Path]:
    """Rank 0 makes the folder, and gives it its name once every rank has written what it holds."""
    if ranks.rank():
        ranks.barrier()
        yield atomic_folder(target).scratch
        ranks.barrier()
        return
    with atomic_folder(target) as scratch:
        ranks.barrier()
        yield scratch
        save_file(_random_tensors(), scratch / "random.safetensors")
        ranks.barrier()
        sizes = {path.name: path.stat().st_size for path in scratch.iterdir()}
        state = {**asdict(position), "python_random": random.getstate(), "files": sizes}
        (scratch / STATE).write_text(json.dumps(state))


def _part(kind: str) -> str:
    """This rank's file; one process writes a whole one."""
    count = ranks.size()
    return f"{kind}.safetensors" if count == 1 else f"{kind}-{ranks.rank() + 1:05d}-of-{count:05d}.safetensors"


def complete(folder: Path) -> list[Path]:
    """Usable checkpoints, oldest first; a torn one (a missing or short file) is left out."""
    return sorted(path for path in folder.glob("step-*") if _is_whole(path))


def latest(folder: Path) -> Path | None:
    """The newest usable checkpoint."""
    return next(reversed(complete(folder)), None)


def restore(path: Path, model: Any, optimizer: torch.optim.Optimizer) -> Position:
    """Puts weights, moments and random states back, on however many ranks; returns where the run stood.

    Raises:
        InputError: the checkpoint is one of another model.
    """
    state = json.loads((path / STATE).read_text())
    with_gradient = trained_parameters(model)
    weights, moments = Parts(path, "weights"), Parts(path, "optimizer")
    found = {name: torch.empty(weights.shape(name), device="meta") for name in weights.names}
    need_same_model(str(path), found, with_gradient, "give another --out, or remove the folder to train from the start")
    for name, parameter in with_gradient.items():
        rows(parameter).copy_(weights.rows_of(name, parameter))
    optimizer.state.clear()
    for key in moments.names:
        kind, name = key.split(".", 1)
        optimizer.state[with_gradient[name]][kind] = _moment(moments, key, with_gradient[name])
    _restore_random(load_file(path / "random.safetensors"), state["python_random"])
    return Position(state["step"], state["seconds"])


class Parts:
    """Tensors whose rows lie in one file or several, in the order of the ranks that wrote them.

    Args:
        folder: of the checkpoint.
        kind: `weights` or `optimizer`.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._files: list[Any] = [safe_open(path, "pt") for path in sorted(folder.glob(f"{kind}*.safetensors"))]
        self.names: list[str] = list(self._files[0].keys())

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of the whole tensor."""
        shapes = [file.get_slice(name).get_shape() for file in self._files]
        return (sum(shape[0] for shape in shapes), *shapes[0][1:]) if shapes[0] else ()

    def rows_of(self, name: str, like: Tensor) -> Tensor:
        """Those rows that this rank holds of `like`; a scalar is the same in every file."""
        if not self.shape(name):
            whole: Tensor = self._files[0].get_tensor(name)
            return whole
        wanted = range(first_row(like), first_row(like) + len(rows(like)))
        found, start = [], 0
        for part in (file.get_slice(name) for file in self._files):
            count = part.get_shape()[0]
            low, high = (min(count, max(0, edge - start)) for edge in (wanted.start, wanted.stop))
            found.append(part[low:high])
            start += count
        return torch.cat(found)


class atomic_folder:
    """A scratch folder that takes its final name, in one step, once the block has ended without an error."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self.scratch = target.parent / f".{target.name}.partial"

    def __enter__(self) -> Path:
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        return self.scratch

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)
            if isinstance(error, SafetensorError):  # how safetensors reports a full disk
                raise InfraError(
                    f"{self._target} can't be written: {error}; free space and run the same command again"
                ) from error
            return
        for path in (*self.scratch.rglob("*"), self.scratch):
            sync(path)
        shutil.rmtree(self._target, ignore_errors=True)
        self.scratch.rename(self._target)
        sync(self._target.parent)


def sync(path: Path) -> None:
    """Waits until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def contiguous(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as safetensors wants them: detached and dense; of sharded ones this rank's rows."""
    return {name: rows(tensor).contiguous() for name, tensor in tensors.items()}


def _moment(moments: Parts, key: str, parameter: Tensor) -> Tensor:
    """On the parameter's device, and in its layout too: the fused kernel reads both in memory's order."""
    value = moments.rows_of(key, parameter)
    if not value.ndim:  # the step counter
        return value.to(parameter.device)
    moment = torch.empty_like(parameter, dtype=value.dtype)
    rows(moment).copy_(value)
    return moment


def trained_parameters(model: Any) -> dict[str, torch.nn.Parameter]:
    """The parameters that training changes, by name: with LoRA only the adapters."""
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
