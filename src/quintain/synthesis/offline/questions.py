"""Questions of the offline teacher: from statements whose attribute and value are plain.

A question carries its frame: how it was built. From it the other parts of the teacher derive plans and reasoning;
prompts never show it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from quintain.synthesis.matching import names, numbers, stands
from quintain.synthesis.memory import Excerpt
from quintain.synthesis.offline.wording import CLUE, FACTS, QUESTIONS, joined
from quintain.synthesis.quantities import same_unit, with_number
from quintain.synthesis.questions import MadeQuestion, MadeQuestions
from quintain.synthesis.statements import Statement

GIVEN_SHARE = 0.5
"""Share of the factual, numerical and comparing questions that state what is needed: about a quarter of all."""

_SECRET = ("lookup", "hop", "riddle", "report")
"""Forms whose answer must not stand in the question (the capital of Luxembourg)."""

Made = MadeQuestion | None


def write_questions(excerpt: Excerpt, styles: Sequence[str], rng: random.Random) -> MadeQuestions:
    """One question in each style that the statements allow; none, with the reason, if they allow none."""
    plain = [number for number, one in enumerate(excerpt.all, start=1) if one.attribute]
    if not plain:
        return MadeQuestions(questions=[], invalid="no statement of plain form")
    made = [_MAKERS[style](excerpt, rng) for style in styles]
    found = [one for one in made if one is not None]
    return MadeQuestions(questions=found, invalid="" if found else "the statements fit none of the styles")


def _factual(excerpt: Excerpt, rng: random.Random) -> Made:
    fit = [one for one in excerpt.own if one.attribute]
    if not fit:
        return None
    one = rng.choice(fit)
    others = [other for other in fit if other.value != one.value]
    if others and rng.random() < GIVEN_SHARE:
        used = [rng.choice(others), one]
        return _question("factual", "given_lookup", excerpt, used, [one.value], rng, entities=[one.entity])
    return _question("factual", "lookup", excerpt, [one], [one.value], rng, entities=[one.entity])


def _multi_hop(excerpt: Excerpt, rng: random.Random) -> Made:
    pairs = [
        (first, second)
        for first in excerpt.own
        for second in excerpt.linked
        if first.attribute and second.attribute and names(first.value, second.entity)
        if not names(second.value, first.entity)
    ]
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    more = {"entities": [first.entity], "via": first.attribute, "bridge": second.entity}
    return _question("multi_hop", "hop", excerpt, [first, second], [second.value], rng, **more)


def _numerical(excerpt: Excerpt, rng: random.Random) -> Made:
    pair = _pair(excerpt, rng)
    if pair is None:
        return None
    form = "given_total" if rng.random() < GIVEN_SHARE else rng.choice(("total", "difference"))
    result = _plain(numbers(pair[0].value)[0] + (-1 if form == "difference" else 1) * numbers(pair[1].value)[0])
    answer = with_number(pair[0].value, result)
    return _question("numerical", form, excerpt, pair, [answer], rng, entities=[one.entity for one in pair])


def _comparison(excerpt: Excerpt, rng: random.Random) -> Made:
    pair = _pair(excerpt, rng)
    if pair is None:
        return None
    form = "given_compare" if rng.random() < GIVEN_SHARE else "compare"
    winner, shown = pair[0].entity, list(pair)
    rng.shuffle(shown)
    return _question("comparison", form, excerpt, shown, [winner], rng, entities=[one.entity for one in shown])


def _obfuscated(excerpt: Excerpt, rng: random.Random) -> Made:
    fit = [one for one in excerpt.own if one.attribute and not names(one.value, excerpt.entity)]
    telling = [one for one in fit if one.value in excerpt.telling]
    if not telling or len(fit) < 3:
        return None
    clue = rng.choice(telling)
    second, asked = rng.sample([one for one in fit if one is not clue], 2)
    clues = [clue, second]
    rng.shuffle(clues)
    more = {"entities": [], "clues": [one.value for one in clues], "hidden": excerpt.entity}
    return _question("obfuscated", "riddle", excerpt, [*clues, asked], [asked.value], rng, **more)


def _synthesis(excerpt: Excerpt, rng: random.Random) -> Made:
    fit = [one for one in excerpt.own if one.attribute]
    if len(fit) < 3:
        return None
    chosen = sorted(rng.sample(fit, 3), key=fit.index)
    return _question(
        "synthesis", "report", excerpt, chosen, [one.value for one in chosen], rng, entities=[excerpt.entity]
    )


_MAKERS: dict[str, Callable[[Excerpt, random.Random], Made]] = {
    "factual": _factual,
    "numerical": _numerical,
    "multi_hop": _multi_hop,
    "comparison": _comparison,
    "obfuscated": _obfuscated,
    "synthesis": _synthesis,
}


def _pair(excerpt: Excerpt, rng: random.Random) -> tuple[Statement, Statement] | None:
    """Two quantities of one attribute and unit, of the entity and of another, the larger first."""
    pairs = [
        (one, other)
        for one in excerpt.own
        for other in excerpt.peers
        if one.attribute and one.attribute == other.attribute and same_unit(one.value, other.value)
        if numbers(one.value) != numbers(other.value)
    ]
    if not pairs:
        return None
    one, other = rng.choice(pairs)
    return (one, other) if numbers(one.value)[0] > numbers(other.value)[0] else (other, one)


def _plain(number: Any) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _question(
    style: str,
    form: str,
    excerpt: Excerpt,
    used: Sequence[Statement],
    answer: list[str],
    rng: random.Random,
    **more: Any,
) -> Made:
    """Words the question and notes its frame; None if it would give its answer away."""
    language = excerpt.language
    asked = [used[-1].attribute] if form != "report" else [one.attribute for one in used]
    frame = {
        "form": form,
        "attribute": joined(asked, language),
        "values": [one.value for one in used],
        "answer": answer,
        "decoys": [one.entity for one in (*excerpt.peers, *excerpt.linked)],
        **more,
    }
    text = rng.choice(QUESTIONS[form][language]).format(**_words(frame, used, language))
    if form in _SECRET and any(stands(value, text) for value in answer):
        return None
    numbered = [excerpt.all.index(one) + 1 for one in used]
    return MadeQuestion(style=style, question=text, answer=answer, statements=numbered, frame=frame)


def _words(frame: dict[str, Any], used: Sequence[Statement], language: str) -> dict[str, str]:
    clues = [CLUE[language].format(x=one.attribute, v=one.value) for one in used]
    entities = [*frame["entities"], "", ""]
    return {
        "x": frame["attribute"],
        "y": str(frame.get("via", "")),
        "a": entities[0],
        "b": entities[1],
        "v": used[0].value,
        "w": used[-1].value,
        "f": " ".join(FACTS[language][0].format(a=one.entity, x=one.attribute, v=one.value) for one in used),
        "c1": clues[0],
        "c2": clues[1] if len(clues) > 1 else "",
    }
