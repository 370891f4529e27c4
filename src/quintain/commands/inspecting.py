"""An evaluation as a log of Inspect AI, so that `inspect view` and its data frames open it. The package is not needed.

Follows version 2 of the log's JSON form (`inspect_ai.log.EvalLog`): a sample is a task, an epoch one of its episodes.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quintain.curation.formats.chat import Record, write_chat
from quintain.evaluation.summary import Slice, summarise
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode
from quintain.interface.tasks import Task
from quintain.interface.tools import Toolset
from quintain.pipeline.comparison import Measured, read_evaluation
from quintain.pipeline.run import write_text

SCORER = "verdict"


def export_inspect(path: Path, out: Path) -> str:
    """Writes an evaluation as one log file; returns what was done in one line.

    Args:
        path: a run's folder for its last evaluation, or RUN/STAGE.
        out: a folder of logs, made if missing. Files are named by time and evaluation: `inspect view` lists no others.

    Raises:
        InputError: there is no finished evaluation.
    """
    created = datetime.now(UTC)
    name = path.resolve().name
    log = inspect_log(read_evaluation(path), name, created)
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{created:%Y-%m-%dT%H-%M-%S}+00-00_{name.replace('_', '-')}_{log['eval']['task_id']}.json"
    write_text(file, json.dumps(log, ensure_ascii=False) + "\n")
    return f"{file}: {len(log['samples'])} samples; `inspect view --log-dir {out}` shows them"


def inspect_log(measured: Measured, name: str, created: datetime) -> dict[str, Any]:
    """The log of an evaluation.

    Args:
        measured: its episodes and tasks.
        name: of the evaluation.
        created: time to state.
    """
    episodes = sorted(measured.episodes, key=lambda one: one.id)
    samples = max(Counter(one.task_id for one in episodes).values(), default=1)
    summary = summarise(episodes, planned=measured.size * samples)
    agent = episodes[0].agent if episodes else "agent"
    identity = digest([name, [one.id for one in episodes]]).removeprefix("sha256:")[:22]
    epochs: Counter[str] = Counter()
    logged = []
    for one in episodes:
        epochs[one.task_id] += 1
        logged.append(_sample(one, measured.tasks.get(one.task_id), epochs[one.task_id], agent))
    dataset = {"name": name, "samples": measured.size, "sample_ids": list(measured.tasks or epochs)}
    spec = {"created": created.isoformat(), "task": name, "dataset": dataset, "model": f"quintain/{agent}"}
    ids = {"eval_id": identity, "run_id": identity, "task_id": identity}
    return {
        "version": 2,
        "status": "success",
        "eval": {**spec, **ids, "config": {"epochs": samples}, "scorers": [{"name": SCORER, "metrics": []}]},
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": _results(summary.overall),
        "stats": {"started_at": created.isoformat(), "completed_at": created.isoformat(), "model_usage": {}},
        "samples": logged,
    }


def _results(overall: Slice) -> dict[str, Any]:
    """pass@1 as accuracy, with the bounds of its interval by cluster."""
    estimate, counts = overall.pass1, overall.counts
    values = {} if estimate is None else {"accuracy": estimate.value, "ci_low": estimate.low, "ci_high": estimate.high}
    metrics = {name: {"name": name, "value": value} for name, value in values.items()}
    score = {"name": SCORER, "scorer": SCORER, "scored_samples": counts.scored, "metrics": metrics}
    return {"total_samples": counts.planned, "completed_samples": counts.scored, "scores": [score]}


def _sample(episode: Episode, task: Task | None, epoch: int, agent: str) -> dict[str, Any]:
    messages = [_message(one) for one in write_chat(episode, Toolset([]))["messages"]]
    said = [one for one in messages if one["role"] == "assistant"]
    used = {"input_tokens": episode.usage.context_tokens, "output_tokens": episode.usage.tokens}
    usage = {**used, "total_tokens": sum(used.values())}
    stop = "stop" if episode.outcome.kind in ("answered", "declined") else "unknown"
    record: dict[str, Any] = {
        "id": episode.task_id,
        "epoch": epoch,
        "input": "\n\n".join(one.text for one in episode.messages if one.role == "user"),
        "target": "" if task is None else _text(task.answer),
        "messages": messages,
        "output": {"model": agent, "choices": [{"message": one, "stop_reason": stop} for one in said[-1:]]},
        "scores": _scores(episode),
        "metadata": {
            "episode": episode.id,
            "world": episode.world,
            "template": episode.template,
            "cluster": episode.cluster,
            "tags": list(episode.tags),
            "outcome": str(episode.outcome),
            "milestones": list(episode.milestones),
        },
        "model_usage": {f"quintain/{agent}": usage},
        "total_time": episode.usage.seconds,
    }
    if not episode.scored:
        told = episode.outcome.detail or str(episode.outcome)
        record["error"] = {"message": told, "traceback": told, "traceback_ansi": told}
    return record


def _scores(episode: Episode) -> dict[str, Any]:
    verdict = episode.verdict
    if verdict is None or verdict.infra:
        return {}
    value = "C" if verdict.success else "I"
    explained = {"explanation": "; ".join(verdict.reasons), "metadata": {"score": verdict.score}}
    return {SCORER: {"value": value, "answer": episode.answer, **explained}}


def _message(one: Record) -> dict[str, Any]:
    """A chat message in Inspect's form."""
    if one["role"] == "tool":
        told = {"role": "tool", "content": one["content"], "tool_call_id": one["tool_call_id"], "function": one["name"]}
        wrong = one.get("error")
        return told | ({"error": {"type": "unknown", "message": f"{wrong}: {one['content']}"}} if wrong else {})
    if one["role"] != "assistant":
        return {"role": one["role"], "content": one["content"]}
    calls = [
        {"id": call["id"], "function": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in one.get("tool_calls", ())
    ]
    content: Any = one["content"]
    if one.get("reasoning_content"):
        thought = {"type": "reasoning", "reasoning": one["reasoning_content"]}
        content = [thought, {"type": "text", "text": content}]
    written = {"role": "assistant", "content": content, "source": "generate"}
    return written | ({"tool_calls": [{**call, "type": "function"} for call in calls]} if calls else {})


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
