"""The scripted customer: tells a fact only when asked for it, and says the next request once one is closed.

It keeps nothing between turns: what it says follows from the task and the conversation so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from quintain.interface.messages import DECLINE_PREFIXES, Turn
from quintain.worlds.drawing import Language, Split
from quintain.worlds.orders.phrases import GIVEN, SAYS

_ASKED = {
    "name": r"\bname\b|姓名|名字|叫什么",
    "postcode": r"\bpost ?code|\bpostal|\bzip\b|邮编|邮政编码",
    "order": r"\border (number|id|no)\b|which order|number of (the|your) order|订单号|单号|订单编号|哪个订单",
    "address": r"\baddress\b|where (should|shall)|地址|送到哪",
    "reason": r"\bwhy\b|\breason\b|原因|为什么",
    "yes": r"\bconfirm|\b(shall|should) I\b|\bmay I (go|do|proceed)|\bok(ay)?\b|\bagree|\bapprove|"
    r"确认|同意|可以吗|要不要|是否",
}
"""How an agent asks for each fact, in English or Chinese."""

_ASKS = re.compile(r"[?？]|\bplease (tell|give|provide|share|confirm|send|let me)\b|请(提供|告诉|告知|给出|确认)", re.I)
_MORE_HELP = re.compile(
    r"anything else|something else|else (can|may) I|what else|还有(什么|其他|别的)|其他(需要|问题)", re.I
)


def facts_asked(answer: str) -> list[str]:
    """Which facts an answer asks for.

    >>> facts_asked("May I have your name and your order number?"), facts_asked("请问邮编是什么？")
    (['name', 'order'], ['postcode'])
    """
    return [fact for fact, pattern in _ASKED.items() if re.search(pattern, answer, re.I)]


def is_question(answer: str) -> bool:
    """True if the customer is asked for something, so that the request stays open.

    A refusal is no question, nor is an offer of more help after the work is done.
    """
    if answer.lstrip().startswith(DECLINE_PREFIXES) or not _ASKS.search(answer):
        return False
    return not _MORE_HELP.search(answer) or bool(facts_asked(answer))


def closings(turns: Iterable[Turn]) -> list[str]:
    """The answers that close a request each, in order."""
    answers = (turn.action.answer for turn in turns)
    return [answer for answer in answers if answer is not None and not is_question(answer)]


def reply(question: str, facts: Mapping[str, Any], language: Language, split: Split) -> str:
    """What the customer answers: the facts asked for, and nothing else.

    Args:
        question: what the agent said.
        facts: of the request; an `order` of None is one whose number the customer does not know.
        language: the customer speaks.
        split: whose wordings.
    """
    says = {name: texts[split] for name, texts in SAYS[language].items()}
    asked = facts_asked(question)
    said = [_say(fact, facts, says["unknown_order"], language, split) for fact in asked]
    told = list(filter(None, said)) or [says[fact] for fact in asked if fact in says] or [says["unsure"]]
    return (" " if language == "en" else "").join(told)


def _say(fact: str, facts: Mapping[str, Any], unknown: str, language: Language, split: Split) -> str:
    if fact == "order" and facts["order"] is None:
        return unknown
    if fact not in GIVEN[language]:
        return ""
    return GIVEN[language][fact][split].format(**facts) if facts.get(fact) is not None else ""
