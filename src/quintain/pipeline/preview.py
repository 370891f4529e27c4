"""What `quintain synth --preview` does: shows some samples of each kind, and what the whole would cost."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from quintain.agents.oracle import OracleAgent
from quintain.harness.journal import Journal
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.reading import JOURNAL
from quintain.interface.sample import Sample
from quintain.pipeline.auditing import Auditor, document_items
from quintain.pipeline.fas import MEMORY, documents, first_order, held_out
from quintain.pipeline.has import open_journal, recorded, samples_of, tasks_of, tell
from quintain.pipeline.run import only_user_of
from quintain.pipeline.workshop import Workshop
from quintain.recipe import SYNTHESIS, FASStage, HASStage, RolloutStage, load_recipe
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.fas import Made, Spent, draw
from quintain.synthesis.memory import Memory, build

PREVIEWED = 2000
"""Documents read for a preview: it must not take as long as the run."""


def preview(path: Path, folder: Path, count: int) -> dict[str, Any]:
    """Shows samples of each kind of every synthesis stage, and what the whole would cost. Replies are kept for the run.

    Args:
        path: of the recipe.
        folder: of the run.
        count: samples of each kind.

    Raises:
        InputError: the recipe has no synthesis stage, or its input is wrong.
    """
    if count < 1:
        raise InputError(f"--preview {count}: give at least 1")
    recipe = load_recipe(path)
    stages = [stage for stage in recipe.stages if isinstance(stage, FASStage | HASStage)]
    if not stages:
        raise InputError(f"recipe {recipe.name!r} has no synthesis stage to preview; kinds: {', '.join(SYNTHESIS)}")
    folder.mkdir(parents=True, exist_ok=True)
    workshop = Workshop(recipe, path.parent.resolve(), folder.absolute())
    with only_user_of(folder):
        shown = {stage.name: _preview_stage(workshop, stage, count) for stage in stages}
    return {"stages": shown, "lines": [line for one in shown.values() for line in one.pop("lines")]}


def _preview_stage(workshop: Workshop, stage: FASStage | HASStage, count: int) -> dict[str, Any]:
    if isinstance(stage, FASStage):
        return _plans(workshop, stage, count)
    return _decisions(workshop, stage, count)


def _plans(workshop: Workshop, stage: FASStage, count: int) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        memory = Path(scratch) / MEMORY
        sources = stage.model_copy(update={"data": [], "tools": []})  # no episode is there before the run
        read = list(islice(documents(workshop, sources, counts), PREVIEWED))
        Auditor(workshop).refuse_sealed(stage.name, partial(document_items, read))
        build(memory, iter(read), counts, held_out(workshop))
        made = asyncio.run(_some(workshop, stage, memory, count))
    if not made:
        raise InputError(f"stage {stage.name!r}: no memory to ask about; {_reasons(counts)}")
    spent = Spent()
    for one in made:
        spent.merge(one.spent)
        counts.update(one.counts)
    groups = {
        "planning": [sample for one in made for sample in one.kept if sample.source == "planning"],
        "rejected": [sample for one in made for sample in one.rejected],
        "reasoning": [sample for one in made for sample in one.kept if sample.source == "reasoning"],
    }
    chosen = {name: samples[:count] for name, samples in groups.items()}
    memories = stage.make.memories
    price = {"memories": memories, **_price(stage.teacher, spent, memories / len(made))}
    lines = [line for name, samples in chosen.items() for line in _show(name, samples)]
    return {
        "samples": {name: [one.to_json() for one in samples] for name, samples in chosen.items()},
        "counts": dict(sorted(counts.items())),
        "whole_run": price,
        "lines": [*lines, _price_line(stage, f"all {memories:,} memories", price)],
    }


def _decisions(workshop: Workshop, stage: HASStage, count: int) -> dict[str, Any]:
    """Decisions of the run's episodes, or of a few reference solutions where none was played yet."""
    skipped: Counter[str] = Counter()
    spent = Spent()
    homes = {name: home for name in stage.data if ((home := workshop.folder / name) / JOURNAL).is_file()}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as files:
        played = {name: open_journal(home, files) for name, home in homes.items()}
        played = played or {"references": _references(workshop, stage, Path(scratch) / "references", count, files)}
        episodes = _some_of_each(recorded(played, skipped), count)
        own = open_journal(Path(scratch) / stage.name, files)
        told, _ = tell(workshop, stage, episodes, (played, own), skipped, spent)
    if not told:
        return {"samples": {}, "lines": [f"{stage.name}: {_nothing_told(stage, episodes, bool(homes))}"]}
    pairs = list(zip(samples_of(stage, told), (episode.success for episode, _ in told), strict=True))
    groups = {
        "right": [sample for sample, right in pairs if right][:count],
        "wrong": [sample for sample, right in pairs if not right][:count],
    }
    planned = _planned(workshop, stage)
    price = {"decisions": planned, **_price(stage.teacher, spent, planned / len(told))}
    lines = [line for name, chosen in groups.items() for line in _show_texts(name, chosen)]
    return {
        "samples": {name: [one.to_json() for one in chosen] for name, chosen in groups.items()},
        "counts": dict(+skipped),
        "whole_run": price,
        "lines": [*lines, _price_line(stage, f"at most {planned:,} decisions", price)],
    }


def _references(workshop: Workshop, stage: HASStage, folder: Path, count: int, files: ExitStack) -> Journal:
    """A journal of reference solutions of the first tasks told of."""
    journal = open_journal(folder, files)
    tasks = dict(islice(tasks_of(workshop, stage).items(), count))
    agent = OracleAgent(workshop.solution, tasks)
    asyncio.run(workshop.harness(journal).rollout(list(tasks.values()), agent))
    return journal


def _planned(workshop: Workshop, stage: HASStage) -> int:
    """Decisions that the whole stage makes at most."""
    rollouts = [one for one in workshop.recipe.stages if isinstance(one, RolloutStage) and one.name in stage.data]
    episodes = sum(len(workshop.pool(one.pool)) * one.samples for one in rollouts)
    return episodes * (2 if stage.detours else 1)


def _some_of_each(episodes: list[Episode], count: int) -> list[Episode]:
    successes = [one for one in episodes if one.success]
    failures = [one for one in episodes if not one.success]
    return [*successes[:count], *failures[:count]]


def _nothing_told(stage: HASStage, episodes: list[Episode], played: bool) -> str:
    successes = sum(one.success for one in episodes)
    where = "" if played else f" (of reference solutions: {', '.join(stage.data)} not played yet)"
    return (
        f"no preview: {successes} successes and {len(episodes) - successes} failures{where}; "
        "decisions need both in one language of one world"
    )


async def _some(workshop: Workshop, stage: FASStage, path: Path, count: int) -> list[Made]:
    """Excerpts worked on until there are enough samples of each kind."""
    found: list[Made] = []
    with closing(Memory(path)) as memory:
        async with first_order(workshop, stage) as maker:
            async for made in maker.run(draw(memory, stage.make, Counter()), min(count, stage.teacher.concurrency)):
                found.append(made)
                kinds = Counter(sample.source for one in found for sample in one.kept)
                if min(kinds["planning"], kinds["reasoning"]) >= count or len(found) >= 4 * count:
                    break
    return found


def _price(teacher: TeacherConfig, spent: Spent, factor: float) -> dict[str, Any]:
    """The whole stage, by what was previewed of it. Replies from the cache count as if they were asked."""
    endpoint = teacher.endpoint
    prices = (endpoint.price_in, endpoint.price_out) if endpoint else (0.0, 0.0)
    tokens = (spent.prompt_tokens * factor, spent.completion_tokens * factor)
    return {
        "requests": round(spent.requests * factor),
        "prompt_tokens": round(tokens[0]),
        "completion_tokens": round(tokens[1]),
        "price": (tokens[0] * prices[0] + tokens[1] * prices[1]) / 1e6,
    }


def _price_line(stage: FASStage | HASStage, whole: str, price: dict[str, Any]) -> str:
    if stage.teacher.endpoint is None:
        free = "the offline teacher costs" if isinstance(stage, FASStage) else "borrowed alternatives cost"
        return f"{stage.name}: {whole}: {free} nothing"
    return (
        f"{stage.name}: {whole}: about {price['requests']:,} requests, "
        f"{price['prompt_tokens']:,} + {price['completion_tokens']:,} tokens, price {price['price']:.2f}"
    )


def _show(name: str, samples: list[Sample]) -> list[str]:
    lines = [f"--- {name}: {len(samples)} samples"]
    for one in samples:
        question, action = one.messages[0], one.messages[-1]
        said = getattr(action, "thought", "")
        calls = " ".join(f"{call.tool} {call.arguments}" for call in getattr(action, "calls", ()))
        done = f"-> {calls}" if calls else f"-> answer: {getattr(action, 'answer', '')}"
        lines += [f"[{', '.join(one.tags)}] {getattr(question, 'text', '')}", f"    {said}", f"    {done}"]
    return lines


def _show_texts(name: str, samples: list[Sample]) -> list[str]:
    return [f"--- {name}: {len(samples)} samples", *(line for one in samples for line in ("", *one.text.splitlines()))]


def _reasons(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items())) or "nothing was read"
