"""Builds a run's report from its folder alone, so that it can be made again at any time."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from quintain.evaluation.report import ReportData, StageComparison, StageReport, write_report
from quintain.evaluation.summary import compare, summarise
from quintain.evaluation.trajectories import SampledEpisode, choose
from quintain.harness.journal import read_journal
from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.pipeline import RECIPE, read_manifest
from quintain.stages import read_metrics


def report(folder: Path) -> tuple[Path, Path]:
    """Writes `report.json` and `report.html` of a run.

    Raises:
        InputError: the folder holds no run, or no stage of it is finished.
    """
    if not (folder / RECIPE).is_file():
        raise InputError(f"{folder} is no run: it has no {RECIPE}")
    recipe = json.loads((folder / RECIPE).read_text(encoding="utf-8"))
    manifests = [found for stage in recipe["stages"] if (found := read_manifest(folder / stage["name"]))]
    done = [one for one in manifests if one["status"] == "done"]
    if not done:
        raise InputError(f"{folder}: no stage is finished yet; run it first")
    episodes = {one["name"]: _episodes(folder / one["name"]) for one in done}
    evaluations = [one for one in done if one["kind"] == "eval"]
    data = ReportData(
        title=f"Run {recipe['name']}",
        stages=[_stage(folder, one, episodes[one["name"]]) for one in done],
        comparisons=[
            StageComparison(first["name"], second["name"], compare(episodes[first["name"]], episodes[second["name"]]))
            for first, second in pairwise(evaluations)
            if first["stage"]["pool"] == second["stage"]["pool"]
        ],
        episodes=choose(_samples(done, episodes)),
        decode_tokens=_decoder(folder, done),
        recipe=(folder / "recipe.toml").read_text(encoding="utf-8"),
        machine=machine(),
        versions={**done[-1]["versions"], **done[-1]["digests"]},
        notes=[f"Not finished: {one['name']}" for one in manifests if one["status"] != "done"],
    )
    return write_report(folder, data)


def _episodes(folder: Path) -> list[Episode]:
    return read_journal(folder / "journal")[0] if (folder / "journal").is_dir() else []


def _stage(folder: Path, manifest: dict[str, Any], episodes: Sequence[Episode]) -> StageReport:
    stage = manifest["stage"]
    evaluation = None
    if manifest["kind"] == "eval":
        tasks = sum(1 for _ in (folder / "pools" / f"{stage['pool']}.jsonl").open(encoding="utf-8"))
        evaluation = summarise(episodes, planned=tasks * stage["samples"])
    kind = stage.get("model", "") if manifest["kind"] == "eval" else manifest["kind"]
    return StageReport(
        name=manifest["name"],
        kind="base" if kind == "base" else manifest["kind"],
        evaluation=evaluation,
        metrics=read_metrics(folder / manifest["name"]),
        seconds=manifest["seconds"],
        notes=[manifest["result"].get("line", "")],
    )


def _samples(done: Sequence[dict[str, Any]], episodes: dict[str, list[Episode]]) -> list[SampledEpisode]:
    return [
        SampledEpisode(one["name"], episode, "evaluation" if one["kind"] == "eval" else "training")
        for one in done
        for episode in episodes[one["name"]]
    ]


def _decoder(folder: Path, done: Sequence[dict[str, Any]]) -> Any:
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
