"""What went wrong in an episode and what the agent made of it: read by training, synthesis and evaluation alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from quintain.interface.episode import Episode
from quintain.interface.faults import ALWAYS_PERMANENT, MAY_PASS
from quintain.interface.messages import DECLINE_PREFIXES, Observation, Turn

RETRIES = 2
"""How often the same call may sensibly be made again while its trouble may pass."""

_NOT_ITS_DOING = frozenset({"", "timeout", "infra"})
"""Errors (none included) that say nothing about the agent's call."""


@dataclass(slots=True)
class FailedCall:
    """A call, or a text that could not be understood, that failed while the agent had another turn.

    Attributes:
        turn: index of its turn.
        fault: kind of the injected fault; "" for an error of the call's own.
        may_pass: the same call once more may help, for it has not been tried too often yet.
        again: index of the turn in which the identical call came next; None if it never did.
    """

    turn: int
    fault: str
    may_pass: bool
    again: int | None = None

    @property
    def repeated(self) -> bool:
        """True if the identical call came again although it could not help."""
        return self.again is not None and not self.may_pass


def failed(observation: Observation) -> bool:
    """True if the agent did not get what it called for: an error, or an injected fault of any kind."""
    return bool(observation.error or observation.fault)


def failed_calls(episode: Episode) -> list[FailedCall]:
    """Every failed call but those of the last turn, after which nothing could be done better or worse."""
    found: list[FailedCall] = []
    last: dict[str, tuple[FailedCall, int]] = {}
    for number, turn in enumerate(episode.turns):
        for key, observation in _attempts(turn):
            tries = 0
            if key in last:
                before, tries = last.pop(key)
                if before.turn < number:  # of two at once, neither has seen the other fail
                    before.again = number
            if failed(observation):
                one = FailedCall(number, observation.fault, may_pass(observation) and tries < RETRIES)
                last[key] = one, tries + 1
                found.append(one)
    return [one for one in found if one.turn < len(episode.turns) - 1]


def may_pass(observation: Observation) -> bool:
    """True if the same call once more may get through."""
    return observation.fault in MAY_PASS or observation.error == "timeout"


def _attempts(turn: Turn) -> Iterator[tuple[str, Observation]]:
    """What was tried, as a text equal for equal attempts, with what came back."""
    if turn.action.error is not None:
        yield json.dumps(turn.action.text), turn.observations[0]
    for call, observation in zip(turn.action.calls, turn.observations, strict=False):
        yield json.dumps([call.tool, call.arguments], sort_keys=True), observation


def faulted(episode: Episode) -> bool:
    """True if an injected fault struck the episode."""
    return any(one.fault for turn in episode.turns for one in turn.observations)


def declined_honestly(episode: Episode) -> bool:
    """True if the agent declined, with a reason, after a fault that stays: it says what it can't do, and it can't.

    A renamed field can be read as it is, so it is no reason. Whether another tool would have done is not known.
    """
    stays = any(one.permanent and one.fault != "renamed_field" for turn in episode.turns for one in turn.observations)
    return episode.scored and stays and episode.outcome.kind == "declined" and _gives_a_reason(episode.answer or "")


def _gives_a_reason(answer: str) -> bool:
    """True if something is said beside the words that decline."""
    text = answer.lstrip()
    prefix = next((one for one in DECLINE_PREFIXES if text.startswith(one)), "")
    return any(char.isalnum() for char in text[len(prefix) :])


def recovered(episode: Episode) -> bool:
    """True for what trouble may end in: a success, or an honest decline."""
    return episode.success or declined_honestly(episode)


def steps_to_recover(episode: Episode) -> int | None:
    """Turns from the first fault to the first turn that got through again; None if there was no fault, or no such turn.

    A turn gets through if all of its calls do, or if it answers; a summary is neither.
    """
    struck = [any(one.fault for one in turn.observations) for turn in episode.turns]
    if True not in struck:
        return None
    first = struck.index(True)
    for number, turn in enumerate(episode.turns[first + 1 :], start=1):
        if turn.action.answer is not None or (turn.observations and not any(map(failed, turn.observations))):
            return number
    return None


def wrong_turns(episode: Episode) -> frozenset[int]:
    """Indices of the turns that nobody should imitate.

    Those that could not be understood, whose call failed by the agent's own doing, that repeat a failed call to no
    avail or call a tool known to be lost; and the last turn of an episode that ended badly. A call that an injected
    fault struck was right otherwise.
    """
    wrong = {one.again for one in failed_calls(episode) if one.again is not None and one.repeated}
    wrong |= {number for number, turn in enumerate(episode.turns) if _own_error(turn)}
    wrong |= _calls_of_lost_tools(episode)
    if episode.scored and not recovered(episode) and episode.turns:
        wrong.add(len(episode.turns) - 1)
    return frozenset(wrong)


def _calls_of_lost_tools(episode: Episode) -> set[int]:
    lost: set[str] = set()
    found: set[int] = set()
    for number, turn in enumerate(episode.turns):
        if any(one.tool in lost for one in turn.observations):
            found.add(number)
        lost |= {one.tool for one in turn.observations if one.fault in ALWAYS_PERMANENT}
    return found


def _own_error(turn: Turn) -> bool:
    return any(one.error not in _NOT_ITS_DOING and not one.fault for one in turn.observations)
