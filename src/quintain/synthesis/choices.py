"""Steps of an episode as choices: the action taken among alternatives that were not."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from quintain.interface.episode import Episode
from quintain.interface.messages import Action, Call, Message, Observation
from quintain.interface.words import fold, language_of


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of an episode, about to be taken."""

    episode: Episode
    index: int

    @property
    def action(self) -> Action:
        """What the agent did."""
        return self.episode.turns[self.index].action


class Alternatives(Protocol):
    """Makes other actions that might have been taken at a step; they are not executed."""

    def __call__(self, step: Step, count: int, rng: random.Random) -> list[Action]:
        """At most `count` actions, none of which reads like another or like the one taken."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """A step with its options.

    Attributes:
        options: the action taken and its alternatives, in random order.
        chosen: index of the action taken.
        results: what each option returns where it was tried, else empty.
    """

    options: tuple[Action, ...]
    chosen: int
    results: tuple[tuple[Observation, ...], ...] = ()


def choices_of(episode: Episode, alternatives: Alternatives, count: int, seed: int) -> list[Choice]:
    """Every step of an episode with up to `count` alternatives; the action taken lies anywhere among them.

    Args:
        episode: without a turn that could not be understood.
        alternatives: where they come from.
        count: alternatives per step.
        seed: with the episode and the step it fixes the draw.
    """
    found = []
    for index in range(len(episode.turns)):
        rng = random.Random(f"{seed}/{episode.id}/{index}")
        options = alternatives(Step(episode, index), count, rng)
        place = rng.randrange(len(options) + 1)
        options.insert(place, episode.turns[index].action)
        found.append(Choice(tuple(options), place))
    return found


def option_text(action: Action, language: str) -> str:
    """Thought and calls, or thought and answer, one to a line."""
    said = [action.thought] if action.thought else []
    if action.answer is not None:
        return "\n".join([*said, ("答案：" if language == "zh" else "Answer: ") + action.answer])
    if action.summary is not None:
        return "\n".join([*said, ("总结：" if language == "zh" else "Summary: ") + action.summary])
    calls = [f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)}" for call in action.calls]
    return "\n".join([*said, *calls])


def reads_alike(action: Action, language: str) -> str:
    """What two options share if a reader would take them for the same: case, accents and spaces do not count."""
    return " ".join(fold(option_text(action, language)).split())


def episode_language(episode: Episode) -> str:
    """Language of what the user asks."""
    return language_of(task_text(episode.messages))


def like(episode: Episode) -> str:
    """World and language: only episodes that share both can lend each other actions, or balance each other."""
    return f"{episode.world} {episode_language(episode)}"


def task_text(messages: Sequence[Message]) -> str:
    """What the user says before the first turn."""
    return "\n".join(one.text for one in messages if one.role == "user")


class BorrowedActions:
    """Alternatives without a model: what the same agent did at other steps and in other episodes.

    An alternative is an action of an episode in the same world and language, half of the time of the very same one.
    What is borrowed from another episode gets this one's names in place of its own: names are the text arguments of
    calls. Whoever has been lent least is lent next, so in the end each step has been an alternative about as often as
    any other: nothing but the context tells the action taken from the rest.

    Args:
        episodes: where to borrow; those that are told of.
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self._lent: Counter[tuple[str, int]] = Counter()
        self._pools: dict[str, list[Step]] = {}
        for episode in episodes:
            self._pools.setdefault(like(episode), []).extend(_steps(episode))

    def __call__(self, step: Step, count: int, rng: random.Random) -> list[Action]:
        """Up to `count` distinct actions; fewer where there is too little to borrow from."""
        language = episode_language(step.episode)
        own = [one for one in _steps(step.episode) if one.index != step.index]
        pool = self._pools[like(step.episode)]
        others = rng.sample(pool, min(len(pool), _DRAWN * count))
        seen = {reads_alike(step.action, language)}
        found: list[Action] = []
        while len(found) < count:
            sides = [own, others] if rng.random() < 0.5 else [others, own]
            action = next(filter(None, (self._least_lent(side, step.episode, seen, rng) for side in sides)), None)
            if action is None:
                break
            found.append(action)
        return found

    def _least_lent(self, side: list[Step], borrower: Episode, seen: set[str], rng: random.Random) -> Action | None:
        """The action of the step lent least that reads like none seen; looked-at steps leave the list."""
        rng.shuffle(side)
        side.sort(key=lambda one: self._lent[one.episode.id, one.index], reverse=True)
        while side:
            lender = side.pop()
            action = _borrowed(lender, borrower, rng)
            key = reads_alike(action, episode_language(borrower))
            if key not in seen:
                seen.add(key)
                self._lent[lender.episode.id, lender.index] += 1
                return action
        return None


_DRAWN = 8
"""Steps of other episodes looked at for each alternative wanted."""


def _steps(episode: Episode) -> list[Step]:
    return [Step(episode, index) for index in range(len(episode.turns))]


def _borrowed(lender: Step, borrower: Episode, rng: random.Random) -> Action:
    """The lender's action with the borrower's names, each of the lender's names replaced by the same one throughout."""
    action = lender.action
    if lender.episode is borrower:
        return action
    names, own = _names(lender.episode), _names(borrower)
    if not (names and own):
        return action
    swap = {name: rng.choice(own) for name in sorted(names, key=len, reverse=True)}
    any_name = re.compile("|".join(map(re.escape, swap)))

    def renamed(text: str) -> str:
        return any_name.sub(lambda found: swap[found[0]], text)

    calls = tuple(Call(one.id, one.tool, _renamed_values(one.arguments, renamed)) for one in action.calls)
    answer, summary = (None if said is None else renamed(said) for said in (action.answer, action.summary))
    return Action(thought=renamed(action.thought), calls=calls, answer=answer, summary=summary)


def _renamed_values(arguments: dict[str, object], renamed: Callable[[str], str]) -> dict[str, object]:
    return {key: renamed(value) if isinstance(value, str) else value for key, value in arguments.items()}


def _names(episode: Episode) -> list[str]:
    """Text arguments of calls that the task names, in the order they appear."""
    asked = task_text(episode.messages)
    values = [value for _, arguments in episode.calls() for value in arguments.values() if isinstance(value, str)]
    return list(dict.fromkeys(value for value in values if len(value) > 1 and value in asked))
