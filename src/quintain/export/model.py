"""A trained model as a folder that transformers, vLLM and llama.cpp serve as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quintain.agents.chat import described
from quintain.export.card import KnownWorld, model_card
from quintain.export.licence import Licence, licence_of
from quintain.interface.dialects import get as get_dialect
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.dialects.template import chat_template
from quintain.interface.errors import InputError
from quintain.interface.lock import Lock, read_lock
from quintain.interface.tools import Tool, Toolset
from quintain.pipeline.lineage import measured_sampling, split_stage, trained_stage
from quintain.pipeline.workshop import LOCK, Workshop
from quintain.recipe.tables import SamplingSection


@dataclass(frozen=True, slots=True)
class Source:
    """What is exported.

    Attributes:
        workshop: of its run.
        stage: name of the stage that trained it.
        worlds: those it knows, as it knows them.
        tokenizer: its transformers tokenizer.
        stop: ids that end a turn.
        licence: of its base model.
        sampling: how its tokens were drawn when it was last measured.
    """

    workshop: Workshop
    stage: str
    worlds: Sequence[KnownWorld]
    tokenizer: Any
    stop: tuple[int, ...]
    licence: Licence
    sampling: SamplingSection

    @property
    def model(self) -> Path:
        """The folder with its weights."""
        return self.workshop.folder / self.stage / "model"

    @property
    def dialect(self) -> str:
        """Name of its dialect."""
        return self.workshop.recipe.model.dialect


def export_model(path: Path, form: str, out: Path) -> str:
    """Writes a trained model for other programs; returns what was done in one line.

    Args:
        path: `RUN/STAGE`, or `RUN` for its last finished training stage.
        form: `model` (a folder with all weights), `adapter` (the same with a LoRA stage's adapter alone) or `gguf` (one
            file for llama.cpp).
        out: the new folder or file.

    Raises:
        InputError: `out` is there, the run has no such stage, or the form can't hold this model.
    """
    if out.exists():
        raise InputError(f"{out} is there already; give another --out")
    run, wanted = split_stage(path)
    source = _source(run, wanted)
    if form == "gguf":
        from quintain.export.gguf import write_gguf

        out.parent.mkdir(parents=True, exist_ok=True)
        write_gguf(source.model, out, template=chat_template(source.dialect), stop=source.stop, licence=source.licence)
        return f"{out}: {source.stage} of {run}, {out.stat().st_size / 1e6:.1f} MB"
    from quintain.training.checkpoint import atomic_folder

    weights = source.model if form == "model" else _adapter(source)
    with atomic_folder(out) as folder:
        _write_weights(weights, folder)
        _write_tokenizer(source, folder)
        _write_interface(source, folder)
        _write_json(folder / "generation_config.json", _generation(source))
        for name, text in source.licence.files.items():
            (folder / name).write_bytes(text)
        card = model_card(source.workshop, source.stage, source.worlds, form, source.licence, source.sampling)
        (folder / "README.md").write_text(card, encoding="utf-8")
    tools = sum(len(one.toolset) for one in source.worlds)
    return f"{out}: {source.stage} of {run}, {form}, {tools} tools, dialect {source.dialect}"


def _source(run: Path, wanted: str | None) -> Source:
    from transformers import AutoTokenizer

    recipe, home, stage = trained_stage(run, wanted)
    workshop = Workshop(recipe, home, run, accept_drift=True)
    folder = run / stage / "model"
    if not (folder / "tokenizer.json").is_file():
        raise InputError(f"{folder}: it has no tokenizer.json, so no other program can read its text")
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    dialect = get_dialect(recipe.model.dialect, TokenizerCodec(tokenizer))
    locks = read_lock(folder / LOCK)
    worlds = [
        KnownWorld(one.world, workshop.world(one.world).make().instructions, _toolset(workshop, one), len(locks) == 1)
        for one in locks
    ]
    sampling = measured_sampling(run, recipe, stage)
    return Source(workshop, stage, worlds, tokenizer, dialect.stop, licence_of(recipe.model.base), sampling)


def _toolset(workshop: Workshop, lock: Lock) -> Toolset:
    """The locked tools, in the world's order where the world still has them."""
    now = workshop.toolset(lock.world)
    if now.digest == lock.toolset:
        return now
    return Toolset(Tool(one["name"], one["description"], one["parameters"], one["result"]) for one in lock.tools)


def _adapter(source: Source) -> Path:
    folder = source.model.with_name("adapter")
    if not (folder / "adapter_config.json").is_file():
        raise InputError(
            f"{source.stage} trained all weights, so it has no adapter (lora_rank is 0); take --format model"
        )
    return folder


def _write_weights(source: Path, folder: Path) -> None:
    for path in sorted(source.iterdir()):
        if path.suffix == ".safetensors" or path.name in _CONFIGS or path.name.endswith(".index.json"):
            shutil.copyfile(path, folder / path.name)  # not its rights: weights are written for their owner alone


_CONFIGS = ("config.json", "adapter_config.json")


def _write_tokenizer(source: Source, folder: Path) -> None:
    source.tokenizer.chat_template = chat_template(source.dialect)
    source.tokenizer.save_pretrained(folder)


def _write_interface(source: Source, folder: Path) -> None:
    shutil.copy(source.model / LOCK, folder / LOCK)
    for one in source.worlds:
        _write_json(folder / one.tools_file, described(one.toolset, {}))
        if one.instructions:
            (folder / one.system_file).write_text(one.instructions, encoding="utf-8")


def _generation(source: Source) -> dict[str, Any]:
    """Settings as the model was measured with; servers take them where a request says nothing."""
    sampling = source.sampling
    settings: dict[str, Any] = {"eos_token_id": list(source.stop), "max_new_tokens": sampling.max_tokens}
    if source.tokenizer.pad_token_id is not None:
        settings["pad_token_id"] = source.tokenizer.pad_token_id
    if not sampling.temperature:
        return settings | {"do_sample": False}
    drawn = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": sampling.top_k}
    return settings | drawn


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
