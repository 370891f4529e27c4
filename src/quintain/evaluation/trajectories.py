"""Sampled episodes as the report shows them: turns, tokens with their loss, and a sheet to check by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from quintain.interface.episode import Episode
from quintain.interface.example import Example
from quintain.interface.messages import Turn

EMBED_LIMIT = 200
"""Most episodes one page embeds."""

TEXT_LIMIT = 4_000
"""Most characters of one text that the page shows; the journal keeps the rest."""

SPOT_CHECKS = 12
"""Episodes on the sheet for a person to read."""

DecodeTokens = Callable[[Sequence[int]], list[str]]
"""Token ids `[T]` to the text of each `[T]`."""


@dataclass(frozen=True, slots=True)
class SampledEpisode:
    """An episode to show.

    Attributes:
        stage: name of the stage it belongs to.
        episode: the episode.
        source: `evaluation`, or `training` for a trajectory that was trained on.
        examples: what it was trained as; the token view shows exactly these ids and weights. Without them it shows
            the episode's own segments and marks what the agent wrote, except malformed turns, which never carry
            loss in supervised fine-tuning.
    """

    stage: str
    episode: Episode
    source: Literal["evaluation", "training"] = "evaluation"
    examples: Sequence[Example] = ()


class Vocabulary:
    """Texts of tokens, each stored once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._index: dict[str, int] = {}

    def add(self, text: str) -> int:
        """Index of `text`."""
        if text not in self._index:
            self._index[text] = len(self.texts)
            self.texts.append(text)
        return self._index[text]


def choose(samples: Sequence[SampledEpisode], limit: int = EMBED_LIMIT) -> list[SampledEpisode]:
    """At most `limit` episodes, taken in turn from every stage, source, result and template.

    Drawing in turn keeps rare failures in sight where successes abound. The draw is seeded.
    """
    return [samples[number] for number in sorted(_in_turn(samples)[:limit])]


def _in_turn(samples: Sequence[SampledEpisode]) -> list[int]:
    """Indices of all samples, interleaved three deep: stages, then result and source, then template."""
    order = list(range(len(samples)))
    random.Random(0).shuffle(order)

    def template(number: int) -> Any:
        return samples[number].episode.template

    def result(number: int) -> Any:
        return samples[number].source, samples[number].episode.success

    def stage(number: int) -> Any:
        return samples[number].stage

    for key in (template, result, stage):
        order = _interleave(order, key)
    return order


def _interleave(items: Sequence[int], key: Callable[[int], Any]) -> list[int]:
    """Stable round robin over the groups of `key`, in the order in which groups appear."""
    place: dict[Any, int] = {}
    groups: list[list[int]] = []
    for item in items:
        index = place.setdefault(key(item), len(place))
        if index == len(groups):
            groups.append([])
        groups[index].append(item)
    longest = max(map(len, groups), default=0)
    return [group[round_] for round_ in range(longest) for group in groups if round_ < len(group)]


def spot_check(samples: Sequence[SampledEpisode], last_stage: str, count: int = SPOT_CHECKS) -> list[int]:
    """Indices of the episodes that a person should read: evaluated in the last stage, results and templates mixed."""
    candidates = [
        number
        for number, sample in enumerate(samples)
        if sample.stage == last_stage and sample.source == "evaluation" and sample.episode.scored
    ]
    chosen = choose([samples[number] for number in candidates], count)
    wanted = {id(sample) for sample in chosen}
    return [number for number in candidates if id(samples[number]) in wanted]


def episode_json(sample: SampledEpisode, vocabulary: Vocabulary, decode_tokens: DecodeTokens | None) -> dict[str, Any]:
    """One episode for the viewer; token texts are indices into `vocabulary`."""
    episode = sample.episode
    return {
        "id": episode.id,
        "stage": sample.stage,
        "source": sample.source,
        "task": episode.task_id,
        "cluster": episode.cluster,
        "template": episode.template or "(none)",
        "tags": list(episode.tags),
        "agent": episode.agent,
        "version": episode.version,
        "seed": episode.seed,
        "parent": f"{episode.parent[0]}, turn {episode.parent[1]}" if episode.parent else "",
        "success": episode.success if episode.scored else None,
        "score": episode.verdict.score if episode.verdict else None,
        "reasons": [_short(reason) for reason in episode.verdict.reasons] if episode.verdict else [],
        "outcome": str(episode.outcome) if episode.scored else "infra_error",
        "detail": _short(episode.outcome.detail),
        "usage": {
            "turns": len(episode.turns),
            "calls": episode.usage.tool_calls,
            "repeated": episode.repeated_calls(),
            "tokens": episode.usage.tokens,
            "context": episode.usage.context_tokens,
            "seconds": episode.usage.seconds,
        },
        "milestones": list(episode.milestones),
        "messages": [{"role": one.role, "text": _short(one.text)} for one in episode.messages],
        "user": {str(turn): _short(said.text) for turn, said in episode.user_messages.items()},
        "turns": [_turn_json(turn) for turn in episode.turns],
        "segments": _segments(sample, vocabulary, decode_tokens) if decode_tokens else [],
    }


def _turn_json(turn: Turn) -> dict[str, Any]:
    action = turn.action
    seen = [
        {
            "tool": one.tool,
            "text": _short(one.content),
            "error": one.error,
            "fault": one.fault,
            "seconds": one.seconds,
        }
        for one in turn.observations
    ]
    return {
        "thought": _short("\n\n".join(filter(None, (action.thought, action.said)))),
        "calls": [{"tool": call.tool, "arguments": call.arguments} for call in action.calls],
        "answer": None if action.answer is None else _short(action.answer),
        "error": action.error and {"kind": action.error.kind, "message": _short(action.error.message)},
        "text": _short(action.text),
        "summary": None if action.summary is None else _short(action.summary),
        "observations": seen,
    }


def _segments(sample: SampledEpisode, vocabulary: Vocabulary, decode_tokens: DecodeTokens) -> list[dict[str, Any]]:
    """Token texts and runs `[start, stop, mark]`; mark is `loss` or `written` (by the agent, without loss)."""
    found = []
    for label, ids, marks in _token_records(sample):
        texts = decode_tokens(ids)
        if len(texts) != len(ids):
            raise ValueError(
                f"episode {sample.episode.id}: decode_tokens gave {len(texts)} texts for {len(ids)} token ids"
            )
        found.append({"label": label, "tokens": [vocabulary.add(text) for text in texts], "marks": _runs(marks)})
    return found


def _token_records(sample: SampledEpisode) -> Iterator[tuple[str, Sequence[int], list[str]]]:
    """Label, ids `[T]` and marks `[T]` of each training example, or else of each segment."""
    for number, example in enumerate(sample.examples, start=1):
        marks = ["loss" if weight else "" for weight in example.weights]
        yield f"training example {number} of {len(sample.examples)}", example.ids, marks
    if not sample.examples:
        for number, segment in enumerate(sample.episode.segments):
            yield f"segment {number + 1} ({segment.reason})", segment.ids, _marks(sample.episode, number)


def _marks(episode: Episode, number: int) -> list[str]:
    """For each token of a segment: `loss`, `written` or "" (context)."""
    marks = [""] * len(episode.segments[number].ids)
    for turn, span in zip(episode.turns, episode.spans, strict=False):
        if span is not None and span.segment == number:
            mark = "loss" if turn.action.error is None else "written"
            marks[span.start : span.stop] = [mark] * (span.stop - span.start)
    return marks


def _runs(marks: Sequence[str]) -> list[list[Any]]:
    runs: list[list[Any]] = []
    for place, mark in enumerate(marks):
        if runs and runs[-1][2] == mark and runs[-1][1] == place:
            runs[-1][1] += 1
        elif mark:
            runs.append([place, place + 1, mark])
    return runs


def _short(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]} … ({len(text) - TEXT_LIMIT:,} more characters in the journal)"
