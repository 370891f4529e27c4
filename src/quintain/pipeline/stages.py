"""What each kind of stage does: play tasks, train, measure."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from quintain.agents.oracle import OracleAgent
from quintain.cluster.fleet import Fleet
from quintain.cluster.shards import gather
from quintain.endpoint.config import EndpointConfig
from quintain.evaluation.summary import EvalSummary, summarise
from quintain.harness.journal import Journal, read_journal
from quintain.interface.dialects import digest_of
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.interface.failures import recovered
from quintain.interface.sample import read_samples
from quintain.interface.tasks import Task
from quintain.interface.view import Player
from quintain.pipeline.auditing import Auditor
from quintain.pipeline.comparison import Measured, cost_of_drift
from quintain.pipeline.cpt import SAMPLES, cpt
from quintain.pipeline.curate import curate, is_curated, lesson_examples
from quintain.pipeline.engines import make_engine
from quintain.pipeline.fas import fas, fas_world
from quintain.pipeline.has import has
from quintain.pipeline.recover import recover
from quintain.pipeline.run import StageFunction, read_manifest, write_json, write_text
from quintain.pipeline.sheet import SHEET, evaluation_title, sheet
from quintain.pipeline.workshop import Policy, Workshop
from quintain.progress import progress, say
from quintain.recipe import EvalStage, FASStage, GRPOStage, RolloutStage, SFTStage
from quintain.training.rows import METRICS, read_rows


def rollout(workshop: Workshop, stage: RolloutStage, folder: Path) -> dict[str, Any]:
    """Plays a pool's tasks and keeps the episodes in the stage's journal."""
    if stage.agent == "oracle":
        episodes = play(workshop, stage, oracle(workshop, stage.pool), folder)
    else:
        episodes = play_policy(workshop, stage, workshop.policy(stage.agent), folder)
    successes = sum(episode.success for episode in episodes)
    return {
        "episodes": len(episodes),
        "successes": successes,
        "infra": sum(not episode.scored for episode in episodes),
        "line": f"{successes} of {len(episodes)} episodes succeed",
    }


def sft(workshop: Workshop, stage: SFTStage, folder: Path) -> dict[str, Any]:
    """Fine-tunes on the episodes of earlier stages, and on chat where there is some."""
    from quintain.training.chat import summarised_episode
    from quintain.training.examples import episode_examples
    from quintain.training.sft import train_examples

    talked = [one for one in workshop.recipe.stages if isinstance(one, FASStage) and one.name in stage.data]
    curated = [name for name in stage.data if is_curated(workshop.folder / name)]
    played = [name for name in stage.data if name not in (*curated, *(one.name for one in talked))]
    episodes = [one for name in played for one in stage_episodes(workshop, name)]
    chosen = [one for one in episodes if recovered(one)] if stage.only == "success" else episodes
    if not chosen and not curated:
        ends = Counter(f"{one.outcome} {one.outcome.detail}".strip() for one in episodes)
        most = "; ".join(f"{count} ended {how}" for how, count in ends.most_common(1))
        raise InputError(
            f"stage {stage.name!r}: none of {len(episodes)} episodes succeeded ({most or 'none was played'}); "
            "nothing to learn from"
        )
    if stage.summarise:
        chosen = [summarised_episode(one) for one in chosen]
    policy = workshop.take_policy(stage.start)
    tools, window = cache(workshop.toolset), stage.train.window_turns
    examples = [
        example
        for episode in chosen
        for example in episode_examples(
            episode, window_turns=window, dialect=policy.dialect, toolset=tools(episode.world)
        )
    ]
    lessons = [one for name in curated for one in lesson_examples(workshop.folder / name, policy.dialect, tools)]
    chat = _chat(workshop, talked, policy, stage.summarise)
    trained = train_examples(
        stage.train, examples + lessons, policy.model, folder, tokenizer=policy.tokenizer, chat=chat
    )
    workshop.keep_policy(stage.name, Policy(trained.model, policy.tokenizer, policy.dialect))
    rows = read_metrics(folder)
    return {
        "episodes": len(chosen) + len({example.episode for example in lessons}),
        "examples": trained.examples,
        "chat": len(chat),
        "steps": trained.steps,
        "planned_steps": trained.planned_steps,
        "loss": rows[-1]["loss"] if rows else None,
        "line": f"{trained.steps} of {trained.planned_steps} steps on {trained.examples} examples, "
        f"loss {rows[-1]['loss']:.3f}",
    }


def _chat(workshop: Workshop, stages: list[FASStage], policy: Policy, summarise: bool) -> list[Example]:
    """The reasonings of fas stages: questions that are answered without tools."""
    from quintain.training.chat import chat_examples

    dialect = digest_of(workshop.recipe.model.dialect)
    found: list[Example] = []
    for one in stages:
        samples = read_samples(workshop.folder / one.name / SAMPLES)
        digests = fas_world(workshop, one).digests(dialect)
        found += chat_examples(samples, policy.dialect, digests, summarise=summarise)
    return found


def grpo(workshop: Workshop, stage: GRPOStage, folder: Path) -> dict[str, Any]:
    """Reinforcement learning by the model's own episodes."""
    from quintain.pipeline.grpo import grpo as reinforce

    return reinforce(workshop, stage, folder)


def evaluate(workshop: Workshop, stage: EvalStage, folder: Path) -> dict[str, Any]:
    """Measures a model on a pool: `samples` episodes per task.

    Raises:
        InputError: no episode has a score.
    """
    tasks = stage_tasks(workshop, stage)
    if stage.endpoint is not None:
        episodes = play_endpoint(workshop, stage, stage.endpoint, folder)
    else:
        episodes = play_policy(workshop, stage, workshop.policy(stage.model), folder)
    audit = Auditor(workshop).evaluation(stage, tasks, episodes, folder)
    summary = summarise(episodes, planned=len(tasks) * stage.samples, contaminated=audit.contaminated(episodes))
    write_json(folder / "evaluation.json", summary.to_json())
    write_text(folder / SHEET, sheet(episodes, evaluation_title(stage.name)))
    if summary.pass1 is None:
        again = f"mend that, remove {folder} and run the same command again"
        raise InputError(f"stage {stage.name!r}: {headline(summary)}{what_broke(episodes)}; {again}")
    model = stage.endpoint.model if stage.endpoint else stage.model
    result: dict[str, Any] = {"model": model, "line": headline(summary)}
    reference = workshop.model_path(stage.model)
    if stage.endpoint is None and reference in workshop.drifted:
        now = Measured(f"{stage.name}, tools as they are", episodes, {task.id: task for task in tasks}, len(tasks))
        result["drift"] = cost_of_drift(Path(reference), now)
    return result


def what_broke(episodes: Sequence[Episode]) -> str:
    """What most of the episodes without a score say."""
    told = Counter(one.outcome.detail or "; ".join(one.verdict.reasons if one.verdict else ()) for one in episodes)
    return "".join(f", {count} of them: {' '.join(text.split())}" for text, count in told.most_common(1))


def audited(work: StageFunction) -> StageFunction:
    """A stage that learns, with the scan of what it reads before it."""

    def run(workshop: Workshop, stage: Any, folder: Path) -> dict[str, Any]:
        changing = [name for name, one in workshop.worlds.items() if one.world_class.tools_per_task]
        if changing and stage.kind != "rollout":
            raise InputError(
                f"stage {stage.name!r}: world {changing[0]!r} brings tools with each task; it measures "
                "agents, and only stages of the kinds eval and rollout may use it"
            )
        Auditor(workshop).before(stage, folder)
        return work(workshop, stage, folder)

    return run


STAGES: dict[str, StageFunction] = {
    "rollout": audited(rollout),
    "recover": audited(recover),
    "fas": audited(fas),
    "cpt": audited(cpt),
    "curate": audited(curate),
    "has": audited(has),
    "sft": audited(sft),
    "grpo": audited(grpo),
    "eval": evaluate,
}


def headline(summary: EvalSummary) -> str:
    """pass@1 with its interval and counts in one line."""
    counts = summary.counts
    if summary.pass1 is None:
        return f"no scored episode of {counts.planned} planned ({counts.infra} infra errors)"
    one = summary.pass1
    line = (
        f"pass@1 {one.value:.3f} [{one.low:.3f}, {one.high:.3f}] over {counts.tasks} tasks, "
        f"{counts.scored} of {counts.planned} episodes scored"
    )
    families = {name: part.pass1 for name, part in summary.by_world.items() if part.pass1 and len(summary.by_world) > 1}
    return "; ".join([line, *(f"{name} {at.value:.3f} [{at.low:.3f}, {at.high:.3f}]" for name, at in families.items())])


def play_policy(workshop: Workshop, stage: RolloutStage | EvalStage, policy: Policy, folder: Path) -> list[Episode]:
    """Plays a stage's pool with a model, through the recipe's engine or on its cluster."""
    from quintain.pipeline.programs import model_player

    grammars = _grammars(workshop, policy) if stage.sampling.grammar else None
    if workshop.recipe.cluster is not None:
        return _play_on_cluster(workshop, stage, folder)
    engine = make_engine(workshop.recipe, policy, grammars)
    try:
        agent, close = model_player(workshop, stage, policy, engine, stage.sampling.sampling())
        return play(workshop, stage, agent, folder, close=close)
    finally:
        engine.close()


def _play_on_cluster(workshop: Workshop, stage: RolloutStage | EvalStage, folder: Path) -> list[Episode]:
    from quintain.pipeline.fleets import make_fleet

    fleet = make_fleet(workshop, stage)
    try:
        episodes = play(workshop, stage, fleet, folder)
        say(f"{stage.name}: engines idle {fleet.load().idle:.0%} of their time")
        return episodes
    finally:
        fleet.close()


def _grammars(workshop: Workshop, policy: Policy) -> Any:
    """The means to keep turns well-formed; compiles the tools' grammar, so that one that can't be had is said now."""
    from quintain.inference.grammar import turn_grammar

    grammars = policy.grammars()
    for one in workshop.worlds.values():
        grammars.begin(turn_grammar(policy.dialect.id, one.toolset()))  # of the tools all tasks share
    return grammars


def play_endpoint(workshop: Workshop, stage: EvalStage, endpoint: EndpointConfig, folder: Path) -> list[Episode]:
    """Plays a stage's pool with a model behind a server."""
    from quintain.agents.chat import ChatAgent

    if stage.sampling.grammar:
        raise InputError(f"stage {stage.name!r}: sampling.grammar needs a model in this process, not a server")
    agent = ChatAgent(endpoint, stage.sampling.sampling(), stage.prompt, name=stage.name)
    return play(workshop, stage, agent, folder, dialect="", close=agent.close)


def play(
    workshop: Workshop,
    stage: RolloutStage | EvalStage,
    player: Player | Fleet,
    folder: Path,
    *,
    dialect: str | None = None,
    close: Callable[[], Awaitable[None]] | None = None,
) -> list[Episode]:
    """Plays a stage's pool into the folder's journal; goes on where an interrupted run stopped.

    Args:
        workshop: of the run.
        stage: which pool, how many samples, which faults.
        player: who decides, or the workers that play.
        folder: of the stage.
        dialect: digest of the dialect to record; None for the recipe's.
        close: frees what the agent took, in the event loop that it ran in.
    """
    tasks = stage_tasks(workshop, stage)
    gather(folder / "journal")
    journal = Journal(folder / "journal")
    finished, unfinished = read_journal(journal.folder)
    wins = 0
    with progress(stage.name, total=len(tasks) * stage.samples - len(finished), unit="episodes") as advance:

        def count(episode: Episode) -> None:
            nonlocal wins
            wins += episode.success
            advance(1, f"{wins} succeed")

        async def rollout() -> list[Episode]:
            more: Any = {"samples": stage.samples, "done": finished, "unfinished": unfinished, "on_episode": count}
            try:
                if not isinstance(player, Fleet):
                    return await workshop.harness(journal, stage.faults, dialect).rollout(tasks, player, **more)
                async with player.session(journal, workshop.recipe.seed) as play_there:
                    return await play_there(tasks, **more)
            finally:
                if close is not None:
                    await close()

        try:
            return asyncio.run(rollout())
        finally:
            journal.close()


def stage_tasks(workshop: Workshop, stage: RolloutStage | EvalStage) -> list[Task]:
    """Tasks of a stage's pool; an evaluation may open a sealed one, and says which checkpoint for."""
    if stage.kind == "rollout":
        return workshop.pool(stage.pool)
    if stage.endpoint is not None:
        checkpoint = stage.endpoint.model
    elif stage.model == "base":
        checkpoint = workshop.recipe.model.base
    else:
        made = read_manifest(workshop.folder / stage.model)
        checkpoint = f"{workshop.recipe.name}/{stage.model}" + (f"@{made['fingerprint'][-12:]}" if made else "")
    return workshop.pools.for_evaluation(stage.pool, stage.name, checkpoint)


def oracle(workshop: Workshop, pool: str) -> OracleAgent:
    """The agent that follows the reference solutions of a pool's tasks."""
    return OracleAgent(workshop.solution, {task.id: task for task in workshop.pool(pool)})


def stage_episodes(workshop: Workshop, name: str) -> list[Episode]:
    """Finished episodes of a stage, in an order that does not depend on which of them ended first."""
    finished, _ = read_journal(workshop.folder / name / "journal")
    return sorted(finished, key=lambda episode: episode.id)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Rows of a stage's `metrics.jsonl`; none if it does not train. A row cut off by a full disk is passed over."""
    return read_rows(folder / METRICS)
