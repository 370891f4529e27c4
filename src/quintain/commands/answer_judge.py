"""`quintain judge`: how far the judge of a world `research` agrees with answers whose truth is known."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.structured import Reply
from quintain.evaluation.agreement import Agreement, Range, agreement
from quintain.evaluation.intervals import Estimate
from quintain.interface.errors import InputError
from quintain.interface.files import json_lines
from quintain.recipe import load_recipe
from quintain.recipe.worlds import recipe_worlds
from quintain.worlds.research import Research
from quintain.worlds.research.grading import right
from quintain.worlds.research.judge import Judge

CACHE = "judgements.sqlite"
AT_ONCE = 16
"""Requests in flight."""
SHOWN = 10
"""Most disagreements that are printed."""


class Labelled(BaseModel):
    """A line of a labelled set; further keys are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)

    question: str = Field(min_length=1)
    gold: str = Field(min_length=1)
    answer: str
    correct: bool
    """Whether the answer says the same as the gold one, by a person's reading."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A labelled answer, and what rule and judge say of it."""

    known: Labelled
    by_rule: bool
    by_judge: bool
    reason: str

    @property
    def accepted(self) -> bool:
        """As the world decides: by rule, and where the rule says no, by the judge."""
        return self.by_rule or self.by_judge


def judge_agreement(recipe: Path, labelled: Path | None, folder: Path) -> dict[str, Any]:
    """Agreement, precision, recall and Cohen's kappa of rule, judge and both with the labels.

    Args:
        recipe: whose world `research` has an option `judge`.
        labelled: JSON Lines of `Labelled`; None is the small set that comes along.
        folder: where replies are kept, so that none is paid for twice.

    Raises:
        InputError: there is no judge, or a line is wrong.
        InfraError: the judge's server does not answer.
    """
    options = _judge_of(recipe)
    if labelled is None:
        with resources.as_file(resources.files("quintain.worlds.research") / "labelled.jsonl") as packaged:
            cases = read_labelled(packaged)
    else:
        cases = read_labelled(labelled)
    with closing(ReplyCache(folder / CACHE)) as cache:
        model, replies = asyncio.run(_ask(options, cases, cache))
    marked = [
        Marked(case, right(case.gold, case.answer), reply.value.correct, reply.value.reason)
        for case, reply in zip(cases, replies, strict=True)
        if reply.value is not None
    ]
    if not marked:
        raise InputError(f"judge {model}: no judgement of {len(cases)} answers; {_problems(replies)}")
    figures = _figures(marked)
    return {
        "judge": model,
        "answers": len(cases),
        "judged": len(marked),
        "figures": {name: asdict(found) for name, found in figures.items()},
        "problems": dict(Counter(one.problem for one in replies if one.problem)),
        "prompt_tokens": sum(one.prompt_tokens for one in replies),
        "completion_tokens": sum(one.completion_tokens for one in replies),
        "price": sum(one.price for one in replies),
        "disagreements": [
            {**one.known.model_dump(), "reason": one.reason} for one in marked if one.accepted != one.known.correct
        ],
        "lines": _lines(model, marked, figures, replies),
    }


def read_labelled(path: Path) -> list[Labelled]:
    """The answers of a labelled set.

    Raises:
        InputError: there is no such file, it is empty, or a line is no labelled answer.
    """
    if not path.is_file():
        raise InputError(f"no file {path}")
    cases = []
    for number, record in json_lines(path):
        try:
            cases.append(Labelled.model_validate(record))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "the line"
            form = '{"question": "...", "gold": "...", "answer": "...", "correct": true}'
            raise InputError(f"{path}:{number}: {key}: {first['msg']}; a line is {form}") from None
    if not cases:
        raise InputError(f"{path}: holds no labelled answer")
    return cases


def _judge_of(path: Path) -> Mapping[str, Any]:
    worlds = recipe_worlds(load_recipe(path), path.parent.resolve()).values()
    found = [one.section.options.get("judge") for one in worlds if issubclass(one.world_class, Research)]
    judges: list[Mapping[str, Any]] = [one for one in found if one]
    if not judges:
        raise InputError(f"{path}: no world `research` with an option `judge`, so no judge to measure")
    return judges[0]


async def _ask(options: Mapping[str, Any], cases: Sequence[Labelled], cache: ReplyCache) -> tuple[str, list[Reply]]:
    places = asyncio.Semaphore(AT_ONCE)
    async with Judge(options, cache) as judge:

        async def one(case: Labelled) -> Reply:
            async with places:
                return await judge.judge(case.question, case.gold, case.answer)

        return judge.model, await asyncio.gather(*map(one, cases))


def _figures(marked: Sequence[Marked]) -> dict[str, Agreement]:
    labels, questions = [one.known.correct for one in marked], [one.known.question for one in marked]
    marks = {
        "rule": [one.by_rule for one in marked],
        "judge": [one.by_judge for one in marked],
        "rule, then judge": [one.accepted for one in marked],
    }
    return {name: agreement(labels, said, questions) for name, said in marks.items()}


def _lines(
    model: str, marked: Sequence[Marked], figures: Mapping[str, Agreement], replies: Sequence[Reply]
) -> list[str]:
    questions = len({one.known.question for one in marked})
    labelled = sum(one.known.correct for one in marked)
    wrong = [one for one in marked if one.accepted != one.known.correct]
    lines = [
        f"judge {model} on {len(marked)} answers to {questions} questions, {labelled} of them right",
        f"{'':<17}{'agreement':<23}{'precision':<23}{'recall':<23}kappa",
        *(_row(name, found) for name, found in figures.items()),
        *(f"  {_disagreement(one)}" for one in wrong[:SHOWN]),
    ]
    if len(wrong) > SHOWN:
        lines.append(f"  and {len(wrong) - SHOWN} more, with --json")
    if len(marked) < len(replies):
        lines.append(f"{len(replies) - len(marked)} without a judgement, in no figure: {_problems(replies)}")
    spent = sum(one.price for one in replies)
    return [*lines, f"price {spent:.4f}"] if spent else lines


def _row(name: str, found: Agreement) -> str:
    cells = (found.agreement, found.precision, found.recall, found.kappa)
    return f"{name:<17}" + "".join(f"{_cell(one):<23}" for one in cells).rstrip()


def _cell(one: Estimate | Range | None) -> str:
    return "none marked right" if one is None else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


def _disagreement(one: Marked) -> str:
    how = "accepted, labelled wrong" if one.accepted else "rejected, labelled right"
    said = one.known.answer.replace("\n", " ")[:80]
    return f"{how}: {said!r} for {one.known.gold!r} ({one.reason[:80] or 'by rule'})"


def _problems(replies: Sequence[Reply]) -> str:
    return ", ".join(f"{count} {name}" for name, count in Counter(r.problem for r in replies if r.problem).items())
