"""Reasoning of the offline teacher: sub-questions without the knowledge, then the whole line of thought with it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from quintain.synthesis.offline import wording
from quintain.synthesis.questions import Question
from quintain.synthesis.reasoning import Draft, Refined, Step
from quintain.synthesis.statements import Statement


def write_draft(frame: Mapping[str, Any], language: str, rng: random.Random) -> Draft:
    """Sub-questions as the form of the question suggests; the answers are open, for the knowledge is not at hand."""
    subjects = frame["entities"] or [wording.DESCRIBED[language]]
    asked = rng.choice(wording.QUESTIONS["lookup"][language])
    steps = [
        Step(question=asked.format(a=one, x=frame["attribute"]), answer=rng.choice(wording.UNSURE[language]))
        for one in subjects
    ]
    return Draft(steps=steps, answer=str(rng.choice(subjects)))


def write_reasoning(question: Question, rng: random.Random) -> Refined:
    """What is asked, the facts in the order they are needed, and what follows from them."""
    frame, language = question.frame, question.language
    subject = wording.joined(frame["entities"], language) or wording.DESCRIBED[language]
    parts = [rng.choice(wording.OPENINGS[language]).format(x=frame["attribute"], a=subject)]
    if frame["form"] == "riddle":
        parts.append(rng.choice(wording.IDENTIFIED[language]).format(a=frame["hidden"]))
    parts += [_fact(one, rng) for one in question.knowledge]
    parts += _arithmetic(question, rng)
    answer = wording.joined(frame["answer"], language)
    parts.append(rng.choice(wording.CONCLUSIONS[language]).format(v=answer))
    text = (" " if language == "en" else "").join(parts)
    return Refined(reasoning=text[:1].upper() + text[1:], answer=answer)


def _fact(one: Statement, rng: random.Random) -> str:
    if not one.attribute:
        return one.text
    return rng.choice(wording.FACTS[one.language]).format(a=one.entity, x=one.attribute, v=one.value)


def _arithmetic(question: Question, rng: random.Random) -> list[str]:
    frame = question.frame
    form = str(frame["form"]).removeprefix("given_")
    if form not in wording.ARITHMETIC:
        return []
    values = list(frame["values"])
    if form == "compare" and frame["answer"][0] != frame["entities"][0]:
        values.reverse()
    chosen = rng.choice(wording.ARITHMETIC[form][question.language])
    return [chosen.format(v=values[0], w=values[1], r=frame["answer"][0])]
