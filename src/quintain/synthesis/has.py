"""Higher-order action synthesis (HAS): past episodes rewritten as decisions with a known end.

After AgentFounder (Su et al. 2025, "Scaling Agents via Continual Pre-training"): every step shows its options, the
choice, and what really came back; the text ends with whether the whole was right, by the world's verdict.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quintain.interface.episode import Episode
from quintain.interface.messages import Observation, Turn
from quintain.interface.sample import Sample
from quintain.synthesis.choices import Choice, episode_language, like, option_text, task_text

HAS = "has"
"""Source of the samples made here."""

_WORDS = {
    "en": {
        "task": "Task: ",
        "step": "Step {n}",
        "option": "Option {n}: ",
        "result": "Option {n} returns: ",
        "choice": "I will choose option {n}",
        "observation": "Observation: ",
        "user": "User: ",
        "right": "My decision is Correct",
        "wrong": "My decision is Incorrect",
    },
    "zh": {
        "task": "任务：",
        "step": "第{n}步",
        "option": "选项{n}：",
        "result": "选项{n}返回：",
        "choice": "我选择选项{n}",
        "observation": "观察：",
        "user": "用户：",
        "right": "我的决定是正确的",
        "wrong": "我的决定是错误的",
    },
}


@dataclass(frozen=True, slots=True)
class Masks:
    """What is read but not learnt.

    Attributes:
        bad_steps: the choices known to be wrong (`bad_step`).
        results: what tools return.
    """

    bad_steps: bool = False
    results: bool = False


def usable(episodes: Iterable[Episode], skipped: Counter[str]) -> list[Episode]:
    """Episodes that can be told as decisions; the others are counted by reason."""
    kept = []
    for episode in episodes:
        reason = _unusable(episode)
        if reason:
            skipped[reason] += 1
        else:
            kept.append(episode)
    return kept


def _unusable(episode: Episode) -> str:
    if not episode.scored:
        return "without a verdict"
    if episode.outcome.kind == "agent_error":
        return "the agent's program broke"
    if not episode.turns:
        return "without a turn"
    return "with a turn that could not be understood" if any(one.action.error for one in episode.turns) else ""


def balanced(episodes: Sequence[Episode], seed: int, skipped: Counter[str]) -> list[Episode]:
    """As many successes as failures in each language of each world, chosen at random; what is left out is counted.

    So neither the world nor the language nor the base rate says how a text ends.
    """
    sides: dict[str, dict[bool, list[Episode]]] = {}
    for episode in episodes:
        sides.setdefault(like(episode), {True: [], False: []})[episode.success].append(episode)
    kept: set[str] = set()
    for kind, by_end in sorted(sides.items()):
        most = min(len(one) for one in by_end.values())
        for end, found in by_end.items():
            order = sorted(found, key=lambda one: one.id)
            random.Random(f"{seed}/{kind}/{end}").shuffle(order)
            kept |= {one.id for one in order[:most]}
            skipped[f"{'successes' if end else 'failures'} left out to balance"] += len(found) - most
    return [episode for episode in episodes if episode.id in kept]


def bad_step(episode: Episode, index: int) -> bool:
    """Whether a step is known to be wrong.

    It is where its call did not fit or failed, repeats an earlier one, is the wrong turn an episode was branched
    for, or ends a failed episode with an answer.
    """
    turn = episode.turns[index]
    if any(one.error for one in turn.observations):
        return True
    if episode.parent is not None and episode.parent[1] == index:
        return not episode.success
    earlier = {_key(call.tool, call.arguments) for one in episode.turns[:index] for call in one.action.calls}
    if any(_key(call.tool, call.arguments) in earlier for call in turn.action.calls):
        return True
    return turn.action.answer is not None and not episode.success and index == len(episode.turns) - 1


def _key(tool: str, arguments: dict[str, object]) -> str:
    return json.dumps([tool, arguments], sort_keys=True)


def shuffled_ends(episodes: Sequence[Episode], seed: int) -> list[bool]:
    """The episodes' verdicts dealt out anew among those of the same world and language: a control."""
    ends = [episode.success for episode in episodes]
    places: dict[str, list[int]] = {}
    for place, episode in enumerate(episodes):
        places.setdefault(like(episode), []).append(place)
    for kind, own in sorted(places.items()):
        dealt = [ends[place] for place in own]
        random.Random(f"{seed}/{kind}/ends").shuffle(dealt)
        for place, end in zip(own, dealt, strict=True):
            ends[place] = end
    return ends


def decision_sample(episode: Episode, choices: Sequence[Choice], masks: Masks, *, right: bool | None = None) -> Sample:
    """The episode as one text; observations stand in it byte for byte.

    Args:
        episode: usable (`usable`).
        choices: one for each of its turns.
        masks: what carries no loss.
        right: how the text ends; None takes the verdict.
    """
    language = episode_language(episode)
    text = _Text(_WORDS[language])
    text.add("task", task_text(episode.messages))
    for index, (turn, choice) in enumerate(zip(episode.turns, choices, strict=True)):
        text.line("step", n=index + 1)
        for number, option in enumerate(choice.options, start=1):
            text.add("option", option_text(option, language), n=number)
        for number, result in enumerate(choice.results, start=1):
            for one in result:
                text.add("result", one.content, learn=not masks.results, n=number)
        text.line("choice", learn=not (masks.bad_steps and bad_step(episode, index)), n=choice.chosen + 1)
        _add_reply(text, episode, index, turn, masks)
    text.line("right" if (episode.success if right is None else right) else "wrong")
    return Sample(
        id=f"has:{episode.id}",
        source=HAS,
        language=language,
        cluster=episode.cluster,
        toolset=episode.digests.toolset or None,
        text=text.text.rstrip("\n"),
        tags=(f"template:{episode.template}",) if episode.template else (),
        unlearnt=tuple(text.unlearnt),
    )


def _add_reply(text: _Text, episode: Episode, index: int, turn: Turn, masks: Masks) -> None:
    """What came back after a choice: observations, or what the user said."""
    for one in turn.observations:
        text.add("observation", one.content, learn=not masks.results)
    said = episode.user_messages.get(index + 1)
    if said is not None:
        text.add("user", said.text)


class _Text:
    """Lines so far, and which parts of them are not learnt."""

    def __init__(self, words: dict[str, str]) -> None:
        self._words = words
        self.text = ""
        self.unlearnt: list[tuple[int, int]] = []

    def line(self, kind: str, *, learn: bool = True, **values: int) -> None:
        self._append(self._words[kind].format(**values), learn)
        self.text += "\n"

    def add(self, kind: str, content: str, *, learn: bool = True, **values: int) -> None:
        self.text += self._words[kind].format(**values)
        self._append(content, learn)
        self.text += "\n"

    def _append(self, content: str, learn: bool) -> None:
        start = len(self.text)
        self.text += content
        if not learn and content:
            self.unlearnt.append((start, len(self.text)))


def shown_observations(sample: Sample, episode: Episode) -> bool:
    """Whether every observation of the episode stands in the text, in order and byte for byte."""
    place = 0
    contents: list[Observation] = [one for turn in episode.turns for one in turn.observations]
    for one in contents:
        marked = _WORDS[sample.language]["observation"] + one.content + "\n"
        place = (sample.text + "\n").find(marked, place)
        if place < 0:
            return False
        place += len(marked)
    return True
