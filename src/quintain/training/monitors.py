"""What the guard watches, computed from a step's groups. Shares are in [0, 1]; what can't be said is left out."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from quintain.interface.episode import Episode
from quintain.interface.messages import Turn
from quintain.training.advantage import Group, mean_only

Row = dict[str, float]
"""One line of `metrics.jsonl`."""

TEMPLATE = "success/"
"""Prefix of the success rates of single templates."""

_NGRAM = 4
_TRIED_TO_CALL = frozenset({"unclosed", "json", "shape", "prose", "unknown_tool", "arguments"})
"""Kinds of format error in which a call was attempted."""
_NOT_THE_AGENT = frozenset({"timeout", "infra"})
"""Errors of tools that no call can be blamed for."""


def group_monitors(groups: Sequence[Group]) -> Row:
    """Rewards in groups: their spread, how many groups teach nothing, and whom the spread belongs to.

    `pass_at_k` is the share of groups with a success at all, pass@k at k = group size: it falls when the policy
    gets narrower, even while pass@1 rises.
    """
    scored = [group for group in groups if group.episodes]
    episodes = sum(len(group.episodes) for group in groups)
    infra = sum(group.infra for group in groups)
    row: Row = {
        "groups": len(groups),
        "kept_groups": sum(group.kept for group in groups),
        "short_groups": sum(bool(group.short) for group in groups),
        "episodes": episodes,
        "infra": infra,
    }
    if not scored:
        return row
    rewards = [value for group in scored for value in group.rewards]
    found = {
        "reward": _mean(rewards),
        "success": _mean([float(episode.success) for group in scored for episode in group.episodes]),
        "reward_spread": _mean([group.spread for group in scored]),
        "zero_variance": _mean([float(not group.varies) for group in scored]),
        "pass_at_k": _mean([float(any(one.success for one in group.episodes)) for group in scored]),
        "tool_failure_spread": tool_failure_spread(scored),
    }
    return row | _known(found) | _templates(scored)


def tool_failure_spread(groups: Sequence[Group]) -> float | None:
    """Share of the rewards' variance in groups that goes with tool failures rather than with the policy.

    Within each group, episodes are parted by whether a tool failed without the agent's doing (a timeout, a
    crash, an injected fault); the share is the sum of squares between the parts over the whole (eta squared).
    None where no group varies.
    """
    between = whole = 0.0
    for group in groups:
        centred = mean_only(group.rewards)
        whole += math.fsum(value * value for value in centred)
        parts: dict[bool, list[float]] = defaultdict(list)
        for episode, value in zip(group.episodes, centred, strict=True):
            parts[_tool_failed(episode)].append(value)
        between += math.fsum(math.fsum(part) ** 2 / len(part) for part in parts.values())
    return between / whole if whole > 1e-12 else None


def behaviour_monitors(episodes: Sequence[Episode], count_tokens: Callable[[str], int]) -> Row:
    """How the policy writes and acts, over scored episodes.

    Args:
        episodes: of one step.
        count_tokens: tokens of a text, for the length of thoughts.
    """
    turns = [turn for episode in episodes for turn in episode.turns]
    generated = sum(_generated(turn) for turn in turns)
    thinking = sum(count_tokens(turn.action.thought) for turn in turns if turn.action.thought)
    calls = sum(len(turn.action.calls) for turn in turns)
    invalid = sum(turn.action.error is not None and turn.action.error.kind in _TRIED_TO_CALL for turn in turns)
    found = {
        "turns": _ratio(len(turns), len(episodes)),
        "calls": _ratio(calls, len(episodes)),
        "generated_tokens": _ratio(generated, len(episodes)),
        "thinking_tokens": _ratio(thinking, len(turns)),
        "thinking_share": _ratio(thinking, generated),
        "repeated_calls": _ratio(sum(episode.repeated_calls() for episode in episodes), calls),
        "repetition": repetition(episodes),
        "invalid_calls": _ratio(invalid, calls + invalid),
        "tool_use": _ratio(sum(bool(episode.calls()) for episode in episodes), len(episodes)),
        "truncation": _ratio(sum(map(_truncated, episodes)), len(episodes)),
        "declined": _ratio(sum(episode.outcome.kind == "declined" for episode in episodes), len(episodes)),
    }
    return _known(found)


def repetition(episodes: Iterable[Episode]) -> float | None:
    """Share of 4-grams of generated tokens that stood in the same turn before.

    Within a turn, not an episode: two calls of one tool begin with the same tokens in every good episode.
    """
    total = distinct = 0
    for episode in episodes:
        for turn in episode.turns:
            ids = turn.action.generation.ids if turn.action.generation else ()
            grams = [ids[place : place + _NGRAM] for place in range(len(ids) - _NGRAM + 1)]
            total += len(grams)
            distinct += len(set(grams))
    return (total - distinct) / total if total else None


def _templates(groups: Sequence[Group]) -> Row:
    by_template: dict[str, list[float]] = defaultdict(list)
    for group in groups:
        for episode in group.episodes:
            by_template[episode.template or "-"].append(float(episode.success))
    if len(by_template) < 2:
        return {}
    return {f"{TEMPLATE}{name}": _mean(values) for name, values in sorted(by_template.items())}


def _truncated(episode: Episode) -> bool:
    """A turn hit its token limit, or the episode a limit of its budget (malformed turns are counted elsewhere)."""
    cut = any(turn.action.generation and turn.action.generation.finish == "length" for turn in episode.turns)
    return cut or (episode.outcome.kind == "limit" and episode.outcome.limit != "format_errors")


def _tool_failed(episode: Episode) -> bool:
    seen = [one for turn in episode.turns for one in turn.observations]
    return any(one.fault or one.error in _NOT_THE_AGENT for one in seen)


def _generated(turn: Turn) -> int:
    return len(turn.action.generation.ids) if turn.action.generation else 0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _known(found: dict[str, float | None]) -> Row:
    return {name: value for name, value in found.items() if value is not None}
