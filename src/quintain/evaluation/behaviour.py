"""What episodes cost, and how well formed, valid and economical the agent's turns were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quintain.interface.episode import Episode

_TRIED_TO_CALL = frozenset({"unclosed", "json", "shape", "prose", "unknown_tool", "arguments"})
"""Kinds of format error in which a call was attempted."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of scored episodes; what failures cost is part of the price of a success.

    Attributes:
        successes: successful episodes.
        calls_per_success: tool calls of all episodes over successes; None without a success.
        tokens_per_success: generated tokens of all episodes over successes; None without a success.
        seconds_per_success: wall seconds likewise.
        price_per_success: price likewise.
        mean_turns: turns an episode.
        mean_calls: tool calls an episode.
        mean_tokens: generated tokens an episode.
        mean_context_tokens: tokens in the agent's context an episode.
        mean_seconds: wall seconds an episode.
        mean_price: price an episode.
    """

    successes: int
    calls_per_success: float | None
    tokens_per_success: float | None
    seconds_per_success: float | None
    price_per_success: float | None
    mean_turns: float | None
    mean_calls: float | None
    mean_tokens: float | None
    mean_context_tokens: float | None
    mean_seconds: float | None
    mean_price: float | None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Rates over the turns and calls of scored episodes; None where there was nothing to rate.

    Attributes:
        turns: turns.
        calls: well-formed calls.
        format_error_rate: malformed turns over turns.
        format_errors: malformed turns over turns, by kind.
        invalid_call_rate: attempted calls that were malformed over all attempted calls.
        tool_error_rate: calls that the tool answered with an error over calls.
        tool_errors: the same by kind of error.
        repeated_call_rate: calls equal to an earlier one of the same episode over calls.
        declined_right: episodes that were declined, and rightly so.
        declined_wrong: episodes that were declined although they could be answered.
    """

    turns: int
    calls: int
    format_error_rate: float | None
    format_errors: Mapping[str, float]
    invalid_call_rate: float | None
    tool_error_rate: float | None
    tool_errors: Mapping[str, float]
    repeated_call_rate: float | None
    declined_right: int
    declined_wrong: int


def cost_of(episodes: Sequence[Episode]) -> Cost:
    """Cost of the given (scored) episodes."""
    usages = [episode.usage for episode in episodes]
    successes = sum(episode.success for episode in episodes)
    calls = sum(usage.tool_calls for usage in usages)
    tokens = sum(usage.tokens for usage in usages)
    seconds = sum(usage.seconds for usage in usages)
    return Cost(
        successes=successes,
        calls_per_success=_ratio(calls, successes),
        tokens_per_success=_ratio(tokens, successes),
        seconds_per_success=_ratio(seconds, successes),
        price_per_success=_ratio(sum(usage.price for usage in usages), successes),
        mean_turns=_ratio(sum(len(episode.turns) for episode in episodes), len(episodes)),
        mean_calls=_ratio(calls, len(episodes)),
        mean_tokens=_ratio(tokens, len(episodes)),
        mean_context_tokens=_ratio(sum(usage.context_tokens for usage in usages), len(episodes)),
        mean_seconds=_ratio(seconds, len(episodes)),
        mean_price=_ratio(sum(usage.price for usage in usages), len(episodes)),
    )


def behaviour_of(episodes: Sequence[Episode]) -> Behaviour:
    """Rates of the given (scored) episodes."""
    turns = [turn for episode in episodes for turn in episode.turns]
    calls = sum(len(turn.action.calls) for turn in turns)
    malformed = Counter(turn.action.error.kind for turn in turns if turn.action.error is not None)
    invalid = sum(count for kind, count in malformed.items() if kind in _TRIED_TO_CALL)
    failed = Counter(seen.error for turn in turns for seen in turn.observations if seen.error not in ("", "format"))
    declined = [episode for episode in episodes if episode.outcome.kind == "declined"]
    right = sum(episode.success for episode in declined)
    return Behaviour(
        turns=len(turns),
        calls=calls,
        format_error_rate=_ratio(malformed.total(), len(turns)),
        format_errors={kind: count / len(turns) for kind, count in malformed.most_common()},
        invalid_call_rate=_ratio(invalid, calls + invalid),
        tool_error_rate=_ratio(failed.total(), calls),
        tool_errors={kind: count / calls for kind, count in failed.most_common()},
        repeated_call_rate=_ratio(sum(episode.repeated_calls() for episode in episodes), calls),
        declined_right=right,
        declined_wrong=len(declined) - right,
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
