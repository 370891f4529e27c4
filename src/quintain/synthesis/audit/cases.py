"""Plans whose truth is known because they were built that way, for grading judges.

Made from statements directly, by code and wording of their own. Each family is one way of being right or wrong; for
some ways of being wrong the offline judge has no rule.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quintain.interface.messages import Action, Call
from quintain.synthesis.audit import wording
from quintain.synthesis.judging import Plan
from quintain.synthesis.matching import numbers
from quintain.synthesis.memory import Excerpt
from quintain.synthesis.questions import Question
from quintain.synthesis.statements import Statement

Phrases = Mapping[str, Sequence[str]]
"""Ways of saying one thing, by language."""


@dataclass(frozen=True, slots=True)
class Case:
    """One plan with its truth.

    Attributes:
        plan: what is judged.
        kind: the error it holds; "" for a right plan.
        family: how it was built.
        known: the offline judge has a rule for this kind of error.
    """

    plan: Plan
    kind: str
    family: str
    known: bool = True


def build_cases(excerpts: Iterable[Excerpt], seed: int = 0) -> list[Case]:
    """Cases of every family each excerpt allows, then as many right as wrong ones (of the kinds with a rule)."""
    cases = [case for excerpt in excerpts for case in _Builder(excerpt, seed).cases()]
    rng = random.Random(f"audit {seed}")
    right = [case for case in cases if not case.kind]
    wrong = [case for case in cases if case.kind and case.known]
    count = min(len(right), len(wrong))
    return [*rng.sample(right, count), *rng.sample(wrong, count), *(case for case in cases if not case.known)]


class _Builder:
    """Builds the cases of one excerpt."""

    def __init__(self, excerpt: Excerpt, seed: int) -> None:
        self.excerpt = excerpt
        self.language = excerpt.language
        self.rng = random.Random(f"audit {seed} {excerpt.id}")
        self.facts = [one for one in excerpt.own if one.attribute and one.value not in excerpt.entity]
        self.other = excerpt.peers[0].entity if excerpt.peers else ""

    def cases(self) -> list[Case]:
        """All families that the statements allow."""
        made: list[Case] = []
        if len(self.facts) < 3 or not self.other:
            return made
        made += self._right_look_ups() + self._wrong_look_ups() + self._from_memory() + self._unfit_calls()
        made += self._given() + self._riddle() + self._pair() + self._hop() + self._unforeseen()
        return made

    def _another_value(self, said: Statement) -> str:
        """A value of another fact that neither holds this one's nor stands in it."""
        apart = [one.value for one in self.facts if one.value not in said.value and said.value not in one.value]
        return self.rng.choice(apart or [self.other])

    def _words(self, said: Statement, **more: str) -> dict[str, str]:
        synonym = wording.SYNONYMS.get(said.attribute, said.attribute)
        return {"a": self.excerpt.entity, "b": self.other, "x": said.attribute, "v": said.value, "s": synonym} | more

    def _say(self, phrases: Phrases, words: dict[str, str]) -> str:
        text = self.rng.choice(phrases[self.language]).format(**words)
        return text[:1].upper() + text[1:]

    def _case(
        self,
        ask: str,
        knowledge: Sequence[Statement],
        answer: str,
        analysis: str,
        act: tuple[str, dict[str, Any]] | str,
        family: str,
        kind: str = "",
        known: bool = True,
    ) -> Case:
        question = Question(
            f"{self.excerpt.id} {family}", self.excerpt.id, "audit", self.language, ask, (answer,), tuple(knowledge)
        )
        calls, answered = ((), act) if isinstance(act, str) else ((Call("c0", *act),), None)
        action = Action(analysis, calls, answered)
        return Case(Plan(question, action), kind, family, known)

    def _about(self, look: Phrases, act: Any, family: str, kind: str = "", **more: Any) -> Case:
        """A question about one fact; the action may depend on it."""
        said = self.rng.choice(self.facts)
        words = self._words(said)
        known = more.pop("known", True)
        analysis = self._say(look, {**words, **more})
        done = act(said) if callable(act) else act
        return self._case(self._say(wording.ASK, words), [said], said.value, analysis, done, family, kind, known)

    def _right_look_ups(self) -> list[Case]:
        name = self.excerpt.entity
        keywords: Callable[[Statement], Any] = lambda said: ("search", {"query": f"{name} {said.attribute}"})  # noqa: E731
        return [
            self._about(wording.LOOK, ("search", {"query": name}), "search by name"),
            self._about(wording.LOOK, ("open", {"title": name}), "open by title"),
            self._about(wording.LOOK, keywords, "search by name and attribute"),
            self._about(wording.ROUNDABOUT, ("search", {"query": name}), "long-winded analysis"),
            self._about(wording.ROUNDABOUT, ("open", {"title": name, "page": 1}), "optional argument"),
            self._about(wording.LOOK_OTHERWISE, ("search", {"query": name}), "other words for the attribute"),
        ]

    def _wrong_look_ups(self) -> list[Case]:
        kind, other = "content_inconsistency", self.other
        value: Callable[[Statement], Any] = lambda said: ("search", {"query": said.value})  # noqa: E731
        return [
            self._about(wording.LOOK, ("search", {"query": other}), "looks for another thing", kind),
            self._about(wording.LOOK, ("open", {"title": other}), "opens another thing", kind),
            self._about(wording.ROUNDABOUT, ("open", {"title": other}), "all about another thing", kind, a=other),
            self._about(wording.LOOK, value, "looks for the answer itself", "logic_discontinuity"),
        ]

    def _from_memory(self) -> list[Case]:
        kind = "search_necessity"
        return [
            self._about(wording.RECITE, lambda said: said.value, "recites the right answer", kind),
            self._about(wording.RECITE, self._another_value, "recites a wrong answer", kind),
        ]

    def _unfit_calls(self) -> list[Case]:
        kind, name = "invalid_tool", self.excerpt.entity
        calls = {
            "unknown tool": ("browse", {"query": name}),
            "misspelt argument": ("search", {"keywords": name}),
            "missing argument": ("open", {}),
            "wrong type": ("open", {"title": name, "page": "one"}),
            "words for the calculator": ("calculate", {"expression": name}),
        }
        return [self._about(wording.LOOK, call, family, kind) for family, call in calls.items()]

    def _given(self) -> list[Case]:
        said = self.rng.choice(self.facts)
        words = self._words(said)
        ask, analysis = self._say(wording.ASK_GIVEN, words), self._say(wording.READ_OFF, words)
        look = self._say(wording.LOOK, words)
        wrong = self._another_value(said)
        search = ("search", {"query": self.excerpt.entity})
        return [
            self._case(ask, [said], said.value, analysis, said.value, "repeats what is given"),
            self._case(ask, [said], said.value, look, search, "looks up what is given", "search_necessity"),
            self._case(ask, [said], said.value, analysis, wrong, "misreads what is given", "content_inconsistency"),
        ]

    def _riddle(self) -> list[Case]:
        telling = [one for one in self.facts if one.value in self.excerpt.telling and not one.value.isdigit()]
        if not telling:
            return []
        clue = self.rng.choice(telling)
        second, asked = self.rng.sample([one for one in self.facts if one != clue], 2)
        words = self._words(asked, u=clue.attribute, v=clue.value, y=second.attribute, w=second.value)
        ask, analysis = self._say(wording.ASK_RIDDLE, words), self._say(wording.RIDDLE, words)
        used, answer = [clue, second, asked], asked.value
        if answer in ask:
            return []
        right = ("search", {"query": f"{clue.value} {second.value}"})
        wrong = ("search", {"query": self.other})
        return [
            self._case(ask, used, answer, analysis, right, "searches by the clues"),
            self._case(ask, used, answer, analysis, wrong, "guesses another thing", "content_inconsistency"),
            self._case(ask, used, answer, analysis, answer, "answers a riddle unseen", "search_necessity"),
        ]

    def _pair(self) -> list[Case]:
        pairs = [
            (one, other)
            for one in self.facts
            for other in self.excerpt.peers
            if one.attribute == other.attribute and _numeric(one) and _numeric(other) and one.value != other.value
        ]
        if not pairs:
            return []
        one, other = self.rng.choice(pairs)
        words = self._words(one, w=other.value)
        first, second = numbers(one.value)[0], numbers(other.value)[0]
        winner, total = one.entity if first > second else other.entity, f"{first + second:f}"
        ask, analysis = self._say(wording.ASK_PAIR, words), self._say(wording.PAIR, words)
        given, read_off = self._say(wording.ASK_SUM, words), self._say(wording.READ_OFF, words)
        invent = self._say(wording.INVENT, words)
        figures = self.rng.sample(range(1000, 9000), 2)
        search, title = ("search", {"query": other.entity}), ("open", {"title": one.entity})
        added = ("calculate", {"expression": f"{one.value} + {other.value}"})
        invented = ("calculate", {"expression": f"{figures[0]} > {figures[1]}"})
        third = ("calculate", {"expression": f"{one.value} + {figures[0]}"})
        return [
            self._case(ask, [one, other], winner, analysis, search, "begins with the second"),
            self._case(ask, [one, other], winner, analysis, title, "begins with the first"),
            self._case(
                ask, [one, other], winner, invent, invented, "calculates with inventions", "logic_discontinuity"
            ),
            self._case(given, [one, other], total, read_off, added, "adds up what is given"),
            self._case(given, [one, other], total, read_off, total, "answers the sum of what is given"),
            self._case(given, [one, other], total, invent, third, "adds a number nobody gave", "logic_discontinuity"),
            self._case(
                ask, [one, other], winner, self._say(wording.RECITE, words), winner, "picks one", "search_necessity"
            ),
        ]

    def _hop(self) -> list[Case]:
        links = [
            (one, other)
            for one in self.facts
            for other in self.excerpt.linked
            if other.attribute and other.entity == one.value and other.value not in one.value
        ]
        if not links:
            return []
        one, other = self.rng.choice(links)
        words = self._words(other, y=one.attribute)
        ask = self._say(wording.ASK_HOP, words)
        right, skip = self._say(wording.HOP, words), self._say(wording.SKIP, words)
        used, answer = [one, other], other.value
        start, end = ("open", {"title": self.excerpt.entity}), ("open", {"title": other.entity})
        return [
            self._case(ask, used, answer, right, start, "first link of a chain"),
            self._case(ask, used, answer, right, ("search", {"query": self.excerpt.entity}), "searches the first link"),
            self._case(ask, used, answer, skip, end, "far end of a chain", "logic_discontinuity"),
        ]

    def _unforeseen(self) -> list[Case]:
        kind, name = "content_inconsistency", self.excerpt.entity
        elsewhere = self.rng.choice(wording.ELSEWHERE[self.language])
        vague = ("search", {"query": wording.VAGUE[self.language]})
        aside = ("search", {"query": f"{name} {elsewhere}"})
        beyond = ("open", {"title": name, "page": 40})
        title = ("open", {"title": name})
        return [
            self._about(wording.LOOK, vague, "vague search", kind, known=False),
            self._about(wording.LOOK, aside, "another property, by name", kind, known=False, x=elsewhere),
            self._about(wording.CONTRADICT, title, "says one thing, does another", kind, known=False),
            self._about(wording.LOOK, beyond, "a page that can't be there", "invalid_tool", known=False),
        ]


def _numeric(one: Statement) -> bool:
    return len(numbers(one.value)) == 1 and not any(char.isalpha() for char in one.value)
