"""From kept groups to training examples: every token the policy generated is an action."""

from __future__ import annotations

from collections.abc import Iterator

from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.example import Example
from quintain.training.advantage import Group, Kind
from quintain.training.staleness import StaleRule, turn_weights


def group_examples(group: Group, version: int, *, kind: Kind, bound: int, rule: StaleRule) -> list[Example]:
    """Examples of a group, one per segment of each episode.

    Malformed turns are actions like any other: here, unlike in fine-tuning, they carry loss, and are punished
    by their outcome. Context, observations and closing tokens carry none.

    Args:
        group: a kept group.
        version: of the policy that is going to learn from it.
        kind: of advantages.
        bound: versions a token may be old.
        rule: what happens to older ones.

    Raises:
        InputError: tokens were drawn under a grammar. The policy alone would have drawn others, so their
            log-probabilities are not those of the policy that acted.
    """
    for episode in group.episodes:
        if any(one and one.extras.get("constrained") for one in (turn.action.generation for turn in episode.turns)):
            raise InputError(f"episode {episode.id!r} was played under a grammar; GRPO learns from free play alone")
    pairs = zip(group.episodes, group.advantages(kind), strict=True)
    return [one for episode, advantage in pairs for one in _examples(episode, advantage, version, bound, rule)]


def _examples(episode: Episode, advantage: float, version: int, bound: int, rule: StaleRule) -> Iterator[Example]:
    made = [turn.action.generation for turn in episode.turns]
    ages = [version - one.version if one else 0 for one in made]
    weights = turn_weights(ages, bound, rule)
    for number, segment in enumerate(episode.segments):
        row, behaviour = [0.0] * len(segment.ids), [0.0] * len(segment.ids)
        last = 0
        for span, generation, weight in zip(episode.spans, made, weights, strict=True):
            if span is None or generation is None or span.segment != number or not weight:
                continue
            row[span.start : span.stop] = [weight] * (span.stop - span.start)
            behaviour[span.start : span.stop] = generation.logprobs
            last = span.stop
        if last:
            yield Example(
                ids=segment.ids[:last],
                weights=tuple(row[:last]),
                advantages=tuple(advantage if weight else 0.0 for weight in row[:last]),
                behaviour_logprobs=tuple(behaviour[:last]),
                source="grpo",
                cluster=episode.cluster,
                episode=episode.id,
                group=episode.task_id,
                digests=episode.digests,
                version=episode.version,
            )
