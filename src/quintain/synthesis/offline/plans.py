"""Plans of the offline teacher, right ones and ones with a built-in error, worded alike."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from quintain.interface.tools import Tool, Toolset
from quintain.synthesis.judging import KINDS
from quintain.synthesis.matching import names, numbers
from quintain.synthesis.offline import wording
from quintain.synthesis.planning import MadePlan
from quintain.synthesis.questions import Question

_ARITHMETIC = re.compile(r"arithmetic|calculat|expression|算|表达式", re.IGNORECASE)
_MANY = ("compare", "total", "difference")
"""Endings of the forms that put two values together."""


class NoTool(Exception):
    """The toolset has no tool that takes one text and looks something up."""


def write_plan(
    question: Question, toolset: Toolset, errors: float, others: Sequence[str], rng: random.Random
) -> MadePlan:
    """Analysis and first action, wrong with probability `errors`.

    Args:
        question: with its frame.
        toolset: the tools to choose from.
        errors: probability of a built-in error, its kind drawn evenly.
        others: names of other entities, for plans about the wrong thing.
        rng: of all draws.

    Raises:
        NoTool: no tool of the set looks things up.
    """
    writer = _Writer(question, toolset, others, rng)
    kind = writer.draw_kind() if rng.random() < errors else ""
    if kind == "":
        return writer.right()
    return _WRONG[kind](writer).model_copy(update={"fault": kind})


class _Writer:
    """Writes the plans of one question."""

    def __init__(self, question: Question, toolset: Toolset, others: Sequence[str], rng: random.Random) -> None:
        self.frame = question.frame
        self.language = question.language
        self.question = question
        self.toolset = toolset
        self.rng = rng
        self.given = self.frame["form"].startswith("given_")
        self.finders = [tool for tool in toolset if _text_parameter(tool) and not _is_arithmetic(tool)]
        self.sums = [tool for tool in toolset if _text_parameter(tool) and _is_arithmetic(tool)]
        if not self.finders:
            raise NoTool("the toolset has no tool that looks something up by one text")
        own = question.text + " " + " ".join(question.subjects)
        self.others = [name for name in (*self.frame["decoys"], *others) if not names(own, name)]

    def draw_kind(self) -> str:
        """A kind of error that this question allows: only where there are steps can one be skipped.

        Needless answers are drawn less often, so that answers and look-ups are wrong equally often: else the form of a
        plan would tell.
        """
        steps = self.frame["form"] == "hop" or (self.frame["form"].endswith(_MANY) and self.sums)
        weights = [0.4 if kind == "search_necessity" and not self.given else 1.0 for kind in KINDS]
        weights[KINDS.index("logic_discontinuity")] *= bool(steps)
        return self.rng.choices(KINDS, weights)[0]

    def right(self) -> MadePlan:
        """What a good agent would do."""
        if not self.given:
            return self.look(self.target())
        computed = self.sums and self.frame["form"] != "given_lookup" and self.rng.random() < 0.5
        return self.compute() if computed else self.say(self.frame["answer"][0])

    def target(self) -> str:
        """What the first look-up is for: something the question names, or the clues of a riddle."""
        if self.frame["form"] == "riddle":
            return " ".join(self.frame["clues"])
        return str(self.rng.choice(self.frame["entities"]))

    def look(self, query: str, about: str = "") -> MadePlan:
        """A look-up."""
        tool = self.rng.choice(self.finders) if self.frame["form"] != "riddle" else self.finders[0]
        return self.plan(about, wording.NEEDS, tool, query)

    def compute(self, unknown: bool = False) -> MadePlan:
        """A calculation over the question's values, or over values it does not hold."""
        values = [f"{numbers(one)[0]:f}" for one in self.frame["values"]]
        sign = (
            " > " if self.frame["form"].endswith("compare") else " + " if self.frame["form"] != "difference" else " - "
        )
        expression = sign.join(values)
        reason = wording.NEEDS if unknown else wording.GIVEN
        return self.plan("", reason, self.rng.choice(self.sums), expression)

    def say(self, answer: str) -> MadePlan:
        """A direct answer."""
        return MadePlan(analysis=self.analysis("", wording.GIVEN, ""), answer=answer)

    def plan(self, about: str, reason: dict[str, tuple[str, ...]], tool: Tool, text: str) -> MadePlan:
        """An analysis with one call."""
        arguments = {_text_parameter(tool): text}
        return MadePlan(analysis=self.analysis(about, reason, tool.name), tool=tool.name, arguments=arguments)

    def analysis(self, about: str, reason: dict[str, tuple[str, ...]], tool: str) -> str:
        """What is asked, how to get there, what comes first; the middle parts in either order."""
        language, form = self.language, self.frame["form"]
        subject = about or wording.joined(self.frame["entities"], language) or wording.DESCRIBED[language]
        words = {"x": self.frame["attribute"], "a": subject, "y": self.frame.get("via", ""), "tool": tool}
        steps = "hop" if form == "hop" else "riddle" if form == "riddle" else "several" if form in _MANY else ""
        middle = [self.rng.choice(reason[language])]
        middle += [self.rng.choice(wording.STEPS[steps][language])] if steps else []
        self.rng.shuffle(middle)
        parts = [self.rng.choice(wording.OPENINGS[language]), *middle]
        parts += [self.rng.choice(wording.CALLS[language])] if tool else []
        text = (" " if language == "en" else "").join(part.format(**words) for part in parts)
        return text[:1].upper() + text[1:]

    def inconsistent(self) -> MadePlan:
        """Looks for something else, or answers with something else."""
        if self.given:
            wrong = [
                value for value in (*self.frame["values"], *self.frame["entities"]) if value not in self.frame["answer"]
            ]
            return self.say(self.rng.choice(wrong))
        other = self.rng.choice(self.others) if self.others else self.frame["attribute"]
        return self.look(other, about=other if self.rng.random() < 0.5 else "")

    def unnecessary(self) -> MadePlan:
        """Looks up what is given, or answers what has to be looked up."""
        return self.look(self.target()) if self.given else self.say(self.frame["answer"][0])

    def discontinuous(self) -> MadePlan:
        """Uses what it can't know yet: what has to be found first, or a number that nobody gave."""
        if self.frame["form"] == "hop":
            return self.look(self.frame["bridge"])
        made = self.compute(unknown=not self.given)
        if not self.given:
            return made
        name, text = next(iter(made.arguments.items()))
        return made.model_copy(update={"arguments": {name: f"{text} + {self.rng.randrange(2, 900)}"}})

    def invalid(self) -> MadePlan:
        """A call that does not fit: the argument of another tool, or a list where a text belongs."""
        made = self.right()
        if not made.tool:
            made = self.look(self.target())
        text = next(iter(made.arguments.values()))
        others = sorted({_text_parameter(tool) for tool in self.finders} - set(made.arguments))
        if others and not self.given and self.rng.random() < 0.5:
            return made.model_copy(update={"arguments": {self.rng.choice(others): text}})
        return made.model_copy(update={"arguments": {name: [text] for name in made.arguments}})


_WRONG: dict[str, Callable[[_Writer], MadePlan]] = {
    "content_inconsistency": _Writer.inconsistent,
    "search_necessity": _Writer.unnecessary,
    "logic_discontinuity": _Writer.discontinuous,
    "invalid_tool": _Writer.invalid,
}


def _text_parameter(tool: Tool) -> str:
    """The one required parameter, if it takes a text; "" for other tools."""
    required = tool.parameters.get("required", [])
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    if len(required) != 1 or properties.get(required[0], {}).get("type") != "string":
        return ""
    return str(required[0])


def _is_arithmetic(tool: Tool) -> bool:
    return bool(_ARITHMETIC.search(f"{tool.name} {tool.description} {json.dumps(tool.parameters)}"))
