"""Judges of plans: would this first action get the knowledge the question was made from?

A judge is a teacher asked with the kind `judge`. The one here works without a model, from the texts alone: it never
sees how a plan was made. The kinds of error are those of the AgentFounder recipe (Su et al. 2025, arXiv 2509.13310).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import model_validator

from quintain.endpoint.structured import Shape
from quintain.interface.messages import Action
from quintain.interface.tools import Toolset
from quintain.interface.words import fold, has_chinese, words
from quintain.synthesis.matching import matches, names, numbers, stands
from quintain.synthesis.questions import Question
from quintain.synthesis.statements import Statement
from quintain.synthesis.teacher import Request

ErrorKind = Literal["content_inconsistency", "search_necessity", "logic_discontinuity", "invalid_tool"]
KINDS: tuple[ErrorKind, ...] = ("content_inconsistency", "search_necessity", "logic_discontinuity", "invalid_tool")

NAMED = 0.6
"""Share of a name's words that must stand in a query for it to count as named."""

_ARITHMETIC = re.compile(r"arithmetic|calculat|expression|equation|算|表达式", re.IGNORECASE)
_PROPER = re.compile(r"(?<![.!?:：。]\s)(?<!^)\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
_SMALL = """
a an and are as at be by can do does for from give has have how i in is it its let me my need not of on or out over
question answer search look find know known one only should so tell than that the their them then there these this to up
was we what when where which who whose will with would
的 是 了 在 有 我 它 这 那 和 与 或 问 题 答 案 先 再 要 需 找 查 搜 索 什 么 哪 个 多 少 请 中 为
"""
_COMMON = frozenset(_SMALL.split())


class Judgement(Shape):
    """What a judge says of a plan."""

    right: bool
    kind: Literal["", "content_inconsistency", "search_necessity", "logic_discontinuity", "invalid_tool"] = ""
    reason: str = ""

    @model_validator(mode="after")
    def _kind_of_what_is_wrong(self) -> Judgement:
        if self.right == bool(self.kind):
            raise ValueError("a wrong plan has a kind of error, a right one has none")
        return self


@dataclass(frozen=True, slots=True)
class Plan:
    """An analysis and the first action, as planned for a question.

    Attributes:
        question: what is asked.
        action: thought, and a call or an answer.
        fault: kind of the error that was built in; "" if none, or if nobody knows.
    """

    question: Question
    action: Action
    fault: str = ""


def judge_request(plan: Plan, toolset: Toolset) -> Request:
    """Asks for a judgement of a plan."""
    question = plan.question
    call = plan.action.calls[0] if plan.action.calls else None
    action = (
        f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)}" if call else f"answers: {plan.action.answer}"
    )
    fields = {
        "tools": describe_tools(toolset),
        "question": question.text,
        "answer": "; ".join(question.answer),
        "knowledge": [one.text for one in question.knowledge],
        "analysis": plan.action.thought,
        "action": action,
    }
    return Request("judge", question.language, fields, Judgement, {"plan": plan, "toolset": toolset})


def describe_tools(toolset: Toolset) -> list[str]:
    """A line for each tool, as prompts show them."""
    return [f"{tool.signature()}: {tool.description}" for tool in toolset]


def judge(plan: Plan, toolset: Toolset) -> Judgement:
    """Judges by rules, from question, knowledge, analysis and action alone.

    1. A call must fit the toolset, and a tool that calculates must be given numbers.
    2. If the question holds every value that the answer rests on, a look-up is needless, and an answer must match.
    3. Else a look-up is needed. It must name something of the question that the knowledge is about; what it can't know
       yet (values, things only the knowledge names) is a skipped step.
    4. The analysis must be about what is asked.
    """
    case = _Case(plan, toolset)
    for rule in (_invalid_tool, _necessity, _lookup, _analysis):
        if verdict := rule(case):
            return Judgement(right=False, kind=verdict[0], reason=verdict[1])
    return Judgement(right=True)


Verdict = tuple[ErrorKind, str] | None


class _Case:
    """A plan taken apart: what the rules look at."""

    def __init__(self, plan: Plan, toolset: Toolset) -> None:
        self.question = plan.question
        self.toolset = toolset
        self.analysis = plan.action.thought
        self.answer = plan.action.answer
        self.call = plan.action.calls[0] if plan.action.calls else None
        self.subjects = plan.question.subjects
        self.asked = [one for one in self.subjects if _named(one, self.question.text)]
        self.hidden = [one for one in self.subjects if one not in self.asked]
        self.values = [_value(one) for one in self.question.knowledge]
        self.given = all(stands(value, self.question.text) for value in self.values)
        self.sought = " ".join(_texts(self.call.arguments)) if self.call else ""
        self.calculates = self.call is not None and self._is_arithmetic(self.call.tool)

    def seeks(self, name: str) -> bool:
        """True if the call looks for something of that name: the whole name, or most of it and nothing unheard of."""
        if names(self.sought, name):
            return True
        heard = words(" ".join((self.question.text, name, *(one.text for one in self.question.knowledge))))
        return _named(name, self.sought) and set(words(self.sought)) <= set(heard) | _COMMON

    def _is_arithmetic(self, name: str) -> bool:
        if name not in self.toolset:
            return False
        tool = self.toolset[name]
        return bool(_ARITHMETIC.search(f"{name} {tool.description} {json.dumps(tool.parameters)}"))


def _invalid_tool(case: _Case) -> Verdict:
    if case.call is None:
        return None
    problem = case.toolset.check(case.call.tool, case.call.arguments)
    if problem is not None:
        return "invalid_tool", problem.message
    if case.calculates and not numbers(case.sought):
        return "invalid_tool", f"{case.call.tool} is given no number"
    return None


def _necessity(case: _Case) -> Verdict:
    if case.answer is not None:
        if not case.given:
            return "search_necessity", "the question does not hold what the answer rests on"
        if not matches(case.question.answer, case.answer, case.question.text):
            return "content_inconsistency", "the answer does not follow from the question"
    elif case.given and not case.calculates:
        return "search_necessity", "the question holds everything the answer rests on"
    return None


def _lookup(case: _Case) -> Verdict:
    if case.call is None:
        return None
    if case.calculates:
        known = numbers(case.question.text)
        unknown = [one for one in numbers(case.sought) if one not in known]
        return ("logic_discontinuity", f"{unknown[0]} is not known yet") if unknown or not case.given else None
    if any(case.seeks(one) for one in case.asked):
        return None
    if any(case.seeks(one) for one in case.hidden) and case.asked:
        return "logic_discontinuity", "it looks for something that has to be found first"
    if not case.asked and _overlap(case.sought, case.question.text) >= NAMED and _clue(case):
        return None
    if any(stands(value, case.sought) for value in case.values if not stands(value, case.question.text)):
        return "logic_discontinuity", "it looks for what the answer would be"
    return "content_inconsistency", "it looks for something else than the question asks about"


def _clue(case: _Case) -> bool:
    """True if the search holds a described value of a riddle."""
    shown = [value for value in case.values if stands(value, case.question.text)]
    return any(_overlap(value, case.sought) >= NAMED for value in shown) or not shown


def _analysis(case: _Case) -> Verdict:
    about = [one for one in case.subjects if _named(one, case.analysis)]
    asked = _content(case.question.text, case.subjects)
    if asked and not asked & _content(case.analysis, case.subjects):
        return "content_inconsistency", "the analysis says nothing of what is asked"
    if case.asked and not about and _foreign(case):
        return "content_inconsistency", f"the analysis is about {_foreign(case)}"
    return None


def _foreign(case: _Case) -> str:
    """A name in the analysis that neither the question nor the knowledge holds; "" if there is none."""
    known = case.question.text + " " + " ".join(one.text for one in case.question.knowledge)
    found = (match[0] for match in _PROPER.finditer(case.analysis))
    return next((one for one in found if not names(known, one) and one not in case.toolset), "")


def _named(name: str, text: str) -> bool:
    """True if a name stands in a text, or most of its words do (Chinese has no words to leave out)."""
    return names(text, name) or (not has_chinese(name) and _overlap(name, text) >= NAMED)


def _overlap(part: str, whole: str) -> float:
    """Share of the content words of `part` that stand in `whole`."""
    inner = set(words(part)) - _COMMON
    return len(inner & set(words(whole))) / len(inner) if inner else 0.0


def _content(text: str, subjects: Sequence[str]) -> set[str]:
    """Content words of a text, the names of the subjects left out."""
    plain = fold(text)
    for name in sorted(subjects, key=len, reverse=True):
        plain = plain.replace(fold(name), " ")
    return {word for word in words(plain) if word not in _COMMON and not word.isdigit()}


def _value(one: Statement) -> str:
    """What a statement adds to its subject: the value where its form is plain, else its text without the subject."""
    return one.value or re.sub(re.escape(one.entity), " ", one.text, flags=re.IGNORECASE).strip(" .。")


def _texts(value: Any) -> list[str]:
    """Every text and number in a call's arguments."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [str(value)]
