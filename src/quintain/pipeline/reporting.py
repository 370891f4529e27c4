"""Builds a run's report from its folder alone, so that it can be made again at any time."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from statistics import mean
from typing import Any

from quintain.curation.pools import read_manifest as read_pool_manifest
from quintain.evaluation.estimators import avg_at_k, trials_by_task
from quintain.evaluation.report import ReportData, StageComparison, StageReport, Target, write_report
from quintain.evaluation.summary import Comparison, compare, summarise
from quintain.evaluation.trajectories import SampledEpisode, choose
from quintain.harness.journal import read_journal
from quintain.interface.dialects import TokenizerCodec
from quintain.interface.dialects import get as get_dialect
from quintain.interface.dialects.base import Dialect
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.pipeline.auditing import read_audit
from quintain.pipeline.lineage import made_from
from quintain.pipeline.run import read_manifest, read_recipe
from quintain.pipeline.stages import read_metrics
from quintain.pipeline.workshop import Workshop
from quintain.recipe import TargetSection
from quintain.recipe.pools import manifest_path
from quintain.recipe.user_code import somebodys_code
from quintain.training.examples import episode_examples


def report(folder: Path) -> tuple[Path, Path]:
    """Writes `report.json` and `report.html` of a run.

    Raises:
        InputError: the folder holds no run, or no stage of it is finished.
    """
    recipe, home = read_recipe(folder)
    manifests = [found for stage in recipe.stages if (found := read_manifest(folder / stage.name))]
    done = [one for one in manifests if one["status"] == "done"]
    if not done:
        raise InputError(f"{folder}: no stage is finished yet; run it again to go on")
    episodes = {one["name"]: _episodes(folder / one["name"]) for one in done}
    data = ReportData(
        title=f"Run {recipe.name}",
        stages=[_stage(folder, one, episodes[one["name"]]) for one in done],
        comparisons=_comparisons(done, episodes),
        episodes=_samples(done, episodes, Renderer(Workshop(recipe, home, folder), done)),
        decode_tokens=decoder(folder, done),
        targets=[_target(one, done, episodes) for one in recipe.targets],
        recipe=(folder / "recipe.toml").read_text(encoding="utf-8"),
        machine=machine(),
        versions={**done[-1]["versions"], **done[-1]["digests"]},
        notes=[f"Not finished: {one['name']}" for one in manifests if one["status"] != "done"],
    )
    return write_report(folder, data)


def _comparisons(done: Sequence[dict[str, Any]], episodes: dict[str, list[Episode]]) -> list[StageComparison]:
    """Every evaluation against the last one before it on the same pool, as far as both scored a common task."""
    comparisons: list[StageComparison] = []
    last: dict[str, str] = {}
    for one in done:
        name = one["name"]
        if one["kind"] != "eval" or not _scored(episodes[name]):
            continue
        pool = one["stage"]["pool"]
        if pool in last:
            pairs = _pairs(episodes[last[pool]], episodes[name])
            comparisons += [StageComparison(last[pool], name, paired, world) for world, paired in pairs]
        last[pool] = name
    return comparisons


def _pairs(before: Sequence[Episode], after: Sequence[Episode]) -> Iterator[tuple[str, Comparison]]:
    """All tasks (""), and those of each world where there are several, as far as both scored a common one."""
    worlds = sorted({one.world for one in after})
    for world in ["", *worlds] if len(worlds) > 1 else [""]:
        old, new = ([one for one in part if world in ("", one.world)] for part in (before, after))
        if _scored(old) & _scored(new):
            yield world, compare(old, new)


def _scored(episodes: Sequence[Episode]) -> set[str]:
    return {episode.task_id for episode in episodes if episode.scored}


def _target(target: TargetSection, done: Sequence[dict[str, Any]], episodes: dict[str, list[Episode]]) -> Target:
    reached: float | None = None
    if target.measure == "minutes":
        reached = sum(one["seconds"] for one in done) / 60
    elif any(episode.scored for episode in episodes.get(target.stage, [])):
        trials = trials_by_task(episodes[target.stage])
        reached = mean(avg_at_k(trials))
    bound = target.at_least if target.at_least is not None else target.at_most
    assert bound is not None
    met = None if reached is None else reached >= bound if target.at_least is not None else reached <= bound
    name = "minutes of all stages" if target.measure == "minutes" else f"pass@1 of {target.stage}"
    sign = "at least" if target.at_least is not None else "at most"
    return Target(name, f"{sign} {bound:g}", "not measured" if reached is None else f"{reached:.3f}", met)


class Renderer:
    """Training examples of episodes, as the stage that learnt from them made them."""

    def __init__(self, workshop: Workshop, done: Sequence[dict[str, Any]]) -> None:
        self._windows = {
            name: one["stage"]["train"]["window_turns"]
            for one in done
            if one["kind"] == "sft"
            for name in one["stage"]["data"]
        }
        self._workshop = workshop
        self._tokenizer = next((workshop.folder / one["name"] / "model" for one in done if one["kind"] == "sft"), None)

    def examples(self, stage: str, episode: Episode) -> list[Example]:
        """What was trained on; nothing for a stage that no training stage read."""
        if stage not in self._windows or self._tokenizer is None:
            return []
        return episode_examples(
            episode,
            window_turns=self._windows[stage],
            dialect=self._dialect,
            toolset=self._workshop.toolset(episode.world),
        )

    @cached_property
    def _dialect(self) -> Dialect:
        from transformers import AutoTokenizer

        with somebodys_code(f"reading the tokenizer in {self._tokenizer}"):
            tokenizer = AutoTokenizer.from_pretrained(self._tokenizer)
        return get_dialect(self._workshop.recipe.model.dialect, TokenizerCodec(tokenizer))


def _episodes(folder: Path) -> list[Episode]:
    return read_journal(folder / "journal")[0] if (folder / "journal").is_dir() else []


def _stage(folder: Path, manifest: dict[str, Any], episodes: Sequence[Episode]) -> StageReport:
    stage = manifest["stage"]
    evaluation, audit = None, {}
    if manifest["kind"] == "eval":
        tasks = read_pool_manifest(manifest_path(folder, stage["pool"])).tasks
        audit = read_audit(folder / manifest["name"])
        evaluation = summarise(episodes, tasks * stage["samples"], audit.get("contaminated_episodes", ()))
    base = manifest["kind"] == "eval" and stage["model"] == "base" and not stage.get("endpoint")
    return StageReport(
        name=manifest["name"],
        kind="base" if base else manifest["kind"],
        evaluation=evaluation,
        metrics=_so_far(read_metrics(folder / manifest["name"])),
        seconds=manifest["seconds"],
        notes=[one for one in (manifest["result"].get("line", ""), audit.get("line", "")) if one],
        audit=audit,
        inputs=made_from(stage),
    )


def _so_far(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Training rows with the tokens of all steps so far, which is what a reader of the curve wants to know."""
    totals = accumulate(row.get("tokens", 0) for row in rows)
    return [{**row, "tokens": total} for row, total in zip(rows, totals, strict=True)]


def _samples(
    done: Sequence[dict[str, Any]], episodes: dict[str, list[Episode]], renderer: Renderer
) -> list[SampledEpisode]:
    """All evaluated episodes, and of those trained on as many as one page can show."""
    samples: list[SampledEpisode] = []
    for one in done:
        name = one["name"]
        if one["kind"] == "eval":
            samples += [SampledEpisode(name, episode) for episode in episodes[name]]
            continue
        trained_on = choose([SampledEpisode(name, episode, "training") for episode in episodes[name]])
        samples += [replace(sample, examples=renderer.examples(name, sample.episode)) for sample in trained_on]
    return samples


def decoder(folder: Path, done: Sequence[dict[str, Any]]) -> Any:
    """Texts of token ids, by the tokenizer of the last trained model; None without one."""
    trained = [one["name"] for one in done if (folder / one["name"] / "model" / "tokenizer.json").is_file()]
    if not trained:
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / trained[-1] / "model" / "tokenizer.json"))
    return lambda ids: [tokenizer.decode([one], skip_special_tokens=False) for one in ids]


def machine() -> dict[str, str]:
    """What this machine is, for reports and benchmarks."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{pages * size / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
