"""Reasoning samples in two calls: first without the knowledge, then with it; kept if the answer matches."""

from __future__ import annotations

from collections import Counter

from quintain.endpoint.structured import Reply, Shape
from quintain.interface.messages import Action, message
from quintain.interface.sample import Sample
from quintain.interface.words import has_chinese, language_of
from quintain.synthesis.matching import matches
from quintain.synthesis.questions import Question
from quintain.synthesis.teacher import Request

SOURCE = "reasoning"
SHORTEST, LONGEST = 40, 6000
"""Bounds of a reasoning; a Chinese character counts three times. Less is an answer without a reason, more rambles."""


class Step(Shape):
    """A sub-question with its answer."""

    question: str
    answer: str


class Draft(Shape):
    """The first call's reply: sub-questions and a preliminary answer."""

    steps: list[Step]
    answer: str


class Refined(Shape):
    """The second call's reply: the whole reasoning and the answer."""

    reasoning: str
    answer: str


def draft_request(question: Question) -> Request:
    """The first call. Question alone: neither prompt nor hints hold a statement or the gold answer."""
    frame = {name: question.frame[name] for name in ("form", "attribute", "entities") if name in question.frame}
    return Request("reason", question.language, {"question": question.text}, Draft, {"frame": frame, "id": question.id})


def refine_request(question: Question, draft: Draft) -> Request:
    """The second call, with the knowledge."""
    fields = {
        "question": question.text,
        "steps": [f"{step.question} {step.answer}" for step in draft.steps],
        "draft": draft.answer,
        "knowledge": [one.text for one in question.knowledge],
    }
    return Request("refine", question.language, fields, Refined, {"question": question, "draft": draft})


def take_draft(question: Question, reply: Reply, counts: Counter[str]) -> Draft | None:
    """The first reply; None, and counted, if there is none that can be used."""
    if reply.value is None:
        counts[f"reasoning requests: {reply.problem}"] += 1
        return None
    draft: Draft = reply.value
    if not draft.steps:
        counts["reasonings left out: no sub-question"] += 1
        return None
    return draft


def take_reasoning(question: Question, reply: Reply, counts: Counter[str]) -> Sample | None:
    """The sample of the second reply; None, and counted, if its answer or its length is wrong."""
    if reply.value is None:
        counts[f"reasoning requests: {reply.problem}"] += 1
        return None
    refined: Refined = reply.value
    text = " ".join(refined.reasoning.split())
    length = sum(3 if has_chinese(char) else 1 for char in text)
    if language_of(text) != question.language:
        reason = "in the wrong language"
    elif not matches(question.answer, refined.answer, question.text):
        reason = "the answer does not match"
    elif not SHORTEST <= length <= LONGEST:
        reason = f"length beyond {SHORTEST} to {LONGEST} characters"
    else:
        return Sample(
            id=f"reason-{question.id}",
            source=SOURCE,
            language=question.language,
            cluster=question.cluster,
            messages=(message("user", question.text), Action(text, answer=refined.answer.strip())),
            tags=(f"style:{question.style}",),
        )
    counts[f"reasonings left out: {reason}"] += 1
    return None
