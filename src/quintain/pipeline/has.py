"""The has stage: past episodes in, decisions as text out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from quintain.agents.oracle import OracleAgent
from quintain.harness.journal import Journal, read_journal, read_records
from quintain.harness.loop import Harness
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.sample import Sample, write_samples
from quintain.interface.tasks import Task
from quintain.pipeline.cpt import SAMPLES
from quintain.pipeline.fas import CACHE, teacher_of
from quintain.pipeline.workshop import Workshop
from quintain.progress import progress, say
from quintain.recipe import HASStage
from quintain.synthesis.choices import Alternatives, BorrowedActions, Choice, Step, choices_of, like, option_text
from quintain.synthesis.fas import Spent
from quintain.synthesis.has import Masks, balanced, decision_sample, shuffled_ends, usable
from quintain.synthesis.leaks import Leaks, Shown, find_leaks
from quintain.synthesis.rewinds import StateAt, tried, wrong_turns
from quintain.synthesis.taught import TaughtActions


def has(workshop: Workshop, stage: HASStage, folder: Path) -> dict[str, Any]:
    """Writes `samples.jsonl`; with `detours` also a journal of the wrong turns taken.

    Raises:
        InputError: there are not both successes and failures to tell of.
    """
    skipped: Counter[str] = Counter()
    spent = Spent()
    with ExitStack() as files:
        played = {name: open_journal(workshop.folder / name, files) for name in stage.data}
        own = open_journal(folder, files)
        episodes = recorded(played, skipped)
        told, detours = tell(workshop, stage, episodes, (played, own), skipped, spent)
    if not told:
        raise InputError(_unbalanced(stage, episodes))
    samples = samples_of(stage, told)
    write_samples(folder / SAMPLES, samples)
    return _result(told, samples, detours, skipped) | ({"spent": asdict(spent)} if spent.requests else {})


Played = Mapping[str, Journal]
"""Journals of the rollouts told of, by stage."""


def recorded(played: Played, skipped: Counter[str]) -> list[Episode]:
    """Episodes that can be told of, by their name here (`_name`); the others are counted."""
    found = [
        replace(episode, id=_name(stage, episode.id, played))
        for stage, journal in played.items()
        for episode in read_journal(journal.folder)[0]
    ]
    return usable(sorted(found, key=lambda one: one.id), skipped)


def _name(stage: str, episode: str, played: Played) -> str:
    """An episode's id, with its stage before it where there are several: they may have played the same tasks."""
    return f"{stage}/{episode}" if len(played) > 1 else episode


def tell(
    workshop: Workshop,
    stage: HASStage,
    episodes: Sequence[Episode],
    journals: tuple[Played, Journal],
    skipped: Counter[str],
    spent: Spent,
) -> tuple[list[tuple[Episode, list[Choice]]], int]:
    """As many successes as failures with their choices, and how many detours were taken; none if one kind is missing.

    Args:
        workshop: of the run.
        stage: what is wanted.
        episodes: that can be told of.
        journals: theirs, and the one that takes the detours.
        skipped: counts what is left out, by reason.
        spent: counts what the teacher took.
    """
    played, own = journals
    taken = _detours(workshop, stage, episodes, played, own) if stage.detours else []
    chosen = balanced([*episodes, *usable(taken, skipped)], stage.seed, skipped)
    if not chosen:
        return [], len(taken)
    alternatives = _alternatives(workshop, stage, chosen, skipped, spent)
    told = [(one, choices_of(one, alternatives, stage.alternatives, stage.seed)) for one in chosen]
    if stage.executed:
        told = _executed(workshop, stage, told, _states(played, own))
    return told, len(taken)


def samples_of(stage: HASStage, told: Sequence[tuple[Episode, list[Choice]]]) -> list[Sample]:
    """The texts."""
    masks = Masks(stage.mask_bad_steps, stage.mask_results)
    episodes = [episode for episode, _ in told]
    ends = shuffled_ends(episodes, stage.seed) if stage.shuffle_ends else [one.success for one in episodes]
    return [
        decision_sample(episode, choices, masks, right=end) for (episode, choices), end in zip(told, ends, strict=True)
    ]


def open_journal(folder: Path, files: ExitStack) -> Journal:
    """The journal of a stage's folder, closed with `files`."""
    journal = Journal(folder / "journal")
    files.callback(journal.close)
    return journal


def _detours(
    workshop: Workshop,
    stage: HASStage,
    recorded: Sequence[Episode],
    played: Played,
    journal: Journal,
) -> list[Episode]:
    """Failures to make up for those that are missing: successes with one wrong turn, played on by the oracle."""
    before = {one.id: one for one in read_journal(journal.folder)[0]}
    tasks = tasks_of(workshop, stage)
    oracle = OracleAgent(workshop.solution, tasks)
    harness, states, borrowed = workshop.harness(journal), _states(played), BorrowedActions(recorded)

    async def all_of_them() -> list[Episode]:
        made: list[Episode] = []
        for kind in sorted({like(one) for one in recorded}):
            alike = [one for one in recorded if like(one) == kind]
            successes = [one for one in alike if one.success]
            missing = 2 * len(successes) - len(alike)
            made += await wrong_turns(successes, missing, harness, tasks, oracle, borrowed, states, stage.seed, before)
        return made

    return asyncio.run(all_of_them())


def _alternatives(
    workshop: Workshop,
    stage: HASStage,
    episodes: Sequence[Episode],
    skipped: Counter[str],
    spent: Spent,
) -> Alternatives:
    """Borrowed ones, or those the stage's teacher writes; its replies are kept in the run's folder."""
    if stage.teacher.endpoint is None:
        return BorrowedActions(episodes)
    taught = TaughtActions({name: one.toolset() for name, one in workshop.worlds.items()}, skipped, spent)
    steps = [Step(episode, index) for episode in episodes for index in range(len(episode.turns))]

    async def ask() -> None:
        async with teacher_of(stage.teacher, workshop.home, workshop.folder / CACHE, stage.seed) as teacher:
            with progress("alternatives", total=len(steps), unit="steps") as advance:
                await taught.ask(teacher, steps, stage.alternatives, stage.teacher.concurrency, advance)

    asyncio.run(ask())
    return taught


def _executed(
    workshop: Workshop, stage: HASStage, told: Sequence[tuple[Episode, list[Choice]]], state_at: StateAt
) -> list[tuple[Episode, list[Choice]]]:
    """The choices with what every option returns."""
    tasks = tasks_of(workshop, stage)

    def harness(world: str, turns: int) -> Harness:
        one = workshop.worlds[world]
        return Harness(one.make, budget=replace(one.budget, turns=turns), seed=workshop.recipe.seed, judge=False)

    async def all_of_them() -> list[tuple[Episode, list[Choice]]]:
        with progress("options", total=len(told), unit="episodes") as advance:
            found = []
            for episode, choices in told:
                found.append((episode, await tried(episode, choices, harness, tasks[episode.task_id], state_at)))
                advance()
            return found

    return asyncio.run(all_of_them())


def tasks_of(workshop: Workshop, stage: HASStage) -> dict[str, Task]:
    """Tasks of the rollouts told of, by id."""
    pools = [one.pool for one in workshop.recipe.stages if one.kind == "rollout" and one.name in stage.data]
    return {task.id: task for pool in pools for task in workshop.pool(pool)}


def _states(played: Played, *detours: Journal) -> StateAt:
    """Snapshots by episode and number of turns, each journal's records read once."""
    index: dict[tuple[str, int], tuple[Journal, dict[str, Any] | None]] = {}
    for stage, journal in [*played.items(), *(("", one) for one in detours)]:
        for record in read_records(journal.path):
            if record["kind"] != "end":
                at = record["index"] + (record["kind"] != "start")
                episode = _name(stage, record["episode"], played) if stage else record["episode"]
                index[episode, at] = (journal, record["snapshot"])

    def state_at(episode: str, turns: int) -> bytes | None:
        journal, reference = index[episode, turns]
        return journal.load_state(reference)

    return state_at


def _unbalanced(stage: HASStage, recorded: Sequence[Episode]) -> str:
    successes = sum(one.success for one in recorded)
    remedy = "add a rollout of a weaker model" if successes else "add a rollout that succeeds now and then"
    return (
        f"stage {stage.name!r}: {successes} successes and {len(recorded) - successes} failures: "
        f"decisions need both in one language of one world; {remedy}"
    )


def _result(
    told: Sequence[tuple[Episode, list[Choice]]], samples: Sequence[Sample], detours: int, skipped: Counter[str]
) -> dict[str, Any]:
    leaks = _leaks(told, samples)
    ends = Counter(
        f"{sample.language} {'right' if one.success else 'wrong'}"
        for (one, _), sample in zip(told, samples, strict=True)
    )
    short = sum(len(choice.options) == 1 for _, choices in told for choice in choices)
    line = f"{len(samples)} decisions ({', '.join(f'{count} {end}' for end, count in sorted(ends.items()))})"
    if leaks is None:
        return {"samples": len(samples), "ends": dict(ends), "line": f"{line}; no step has an alternative"}
    probe = f"probe {leaks.accuracy:.3f} [{leaks.low:.3f}, {leaks.high:.3f}], chance {leaks.chance:.3f}"
    if leaks.suspicious:
        say(f"warning: the options give the choice away: {probe}, positions p = {leaks.position_p:.4f}")
    return {
        "samples": len(samples),
        "ends": dict(ends),
        "detours": detours,
        "steps": sum(len(choices) for _, choices in told),
        "steps_without_alternative": short,
        "leaks": leaks.to_json(),
        "skipped": dict(+skipped),
        "line": f"{line}; {probe}",
    }


def _leaks(told: Sequence[tuple[Episode, list[Choice]]], samples: Sequence[Sample]) -> Leaks | None:
    steps = [
        Shown(sample.cluster, tuple(option_text(one, sample.language) for one in choice.options), choice.chosen)
        for (_, choices), sample in zip(told, samples, strict=True)
        for choice in choices
    ]
    return find_leaks(steps) if any(len(one.options) > 1 for one in steps) else None
