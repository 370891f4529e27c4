"""What an episode must be before anything is learnt from it: strict alternation first, then worth learning from."""

from __future__ import annotations

from dataclasses import dataclass

from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.messages import Turn
from quintain.interface.reading import Recorded
from quintain.interface.records import turn_from_json


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why an episode is left out.

    Attributes:
        reason: one word, for counts.
        detail: one line for a person.
        line: line of the journal, from 1.
    """

    reason: str
    detail: str
    line: int


def checked(recorded: Recorded) -> Episode | Rejection:
    """The episode, if action and observation alternate strictly; else what breaks the rule, and in which line."""
    story = recorded.story
    for place, (record, line) in enumerate(zip(story.turns, story.turn_lines, strict=True)):
        if record["index"] != place:
            return Rejection("alternation", f"turn {place} is missing: its place holds turn {record['index']}", line)
    try:
        episode = recorded.episode()
    except (ValueError, TypeError, KeyError, InputError) as error:
        return _damage(recorded, error)
    found = violation(episode)
    if found is None:
        return episode
    place, what = found
    return Rejection("alternation", what, story.turn_lines[place] if story.turn_lines else story.line)


def _damage(recorded: Recorded, error: Exception) -> Rejection:
    """What is wrong with an episode that can't be read: the first broken turn, or else its start or end."""
    for place, (record, line) in enumerate(zip(recorded.story.turns, recorded.story.turn_lines, strict=True)):
        broken = _broken(record)
        if broken:
            return Rejection("alternation", f"turn {place}: {broken}", line)
    return Rejection("damaged", f"{type(error).__name__}: {error}", recorded.line)


def _broken(record: dict[str, object]) -> str:
    """What is wrong with one turn: the types refuse observations that are not those of its calls."""
    try:
        turn_from_json(record["turn"])  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError) as error:
        return str(error)
    return ""


def violation(episode: Episode) -> tuple[int, str] | None:
    """Where the order of messages and turns breaks the alternation, and how; None where it holds.

    Within a turn the types already pair every call with its observation.
    """
    if not any(message.role == "user" for message in episode.messages):
        return 0, "no user message stands before the first turn"
    if not episode.turns:
        return 0, "no turn"
    for place, turn in enumerate(episode.turns[:-1]):
        said = place + 1 in episode.user_messages
        if _answers(turn) and not said:
            return place + 1, f"turn {place} is an answer and turn {place + 1} follows without a user message"
        if said and not _answers(turn):
            return place, f"the user speaks after turn {place}, between its observations and the next action"
    return None


def _answers(turn: Turn) -> bool:
    return turn.action.answer is not None


def unfit(episode: Episode, max_repeats: int) -> tuple[str, str] | None:
    """Reason and detail, if nothing should be learnt from the episode; None for a fit one."""
    if not episode.scored:
        return "unscored", "no verdict says whether it succeeded"
    if episode.outcome.kind == "agent_error":
        return "agent_error", f"the agent program broke: {episode.outcome.detail}"
    if all(turn.malformed for turn in episode.turns):
        return "malformed", "no turn could be understood"
    repeats = episode.repeated_calls()
    if repeats > max_repeats:
        return "loop", f"{repeats} repeated calls > max_repeats {max_repeats}"
    return None
