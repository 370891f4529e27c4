"""Planning samples: an analysis and the first action only. Nothing here can carry an action out."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from quintain.endpoint.structured import Reply, Shape
from quintain.interface.messages import Action, Call, message
from quintain.interface.sample import Sample
from quintain.interface.tools import Toolset
from quintain.interface.words import language_of
from quintain.synthesis.judging import Judgement, Plan, describe_tools
from quintain.synthesis.questions import Question
from quintain.synthesis.teacher import Request

SOURCE = "planning"


class MadePlan(Shape):
    """A plan as a teacher writes it: a call, or an answer."""

    analysis: str
    tool: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    answer: str = ""
    fault: SkipJsonSchema[str] = ""
    """The error that the offline teacher built in; empty for others."""


def plan_request(question: Question, toolset: Toolset, variant: int = 0) -> Request:
    """Asks for analysis and first action. The prompt shows the question and the tools, none of the knowledge."""
    fields = {"question": question.text, "tools": describe_tools(toolset)}
    return Request("plan", question.language, fields, MadePlan, {"question": question, "toolset": toolset}, variant)


def take_plan(question: Question, reply: Reply, counts: Counter[str]) -> Plan | None:
    """The plan of a reply; None, and counted, if there is none that can be used."""
    if reply.value is None:
        counts[f"plan requests: {reply.problem}"] += 1
        return None
    made: MadePlan = reply.value
    if not made.analysis.strip() or bool(made.tool) == bool(made.answer.strip()):
        counts["plans left out: not an analysis with one call or one answer"] += 1
        return None
    if language_of(made.analysis) != question.language:
        counts["plans left out: in the wrong language"] += 1
        return None
    thought = " ".join(made.analysis.split())
    if made.tool:
        action = Action(thought, calls=(Call("c0", made.tool, made.arguments),))
    else:
        action = Action(thought, answer=made.answer.strip())
    return Plan(question, action, made.fault)


def planning_sample(plan: Plan, toolset: Toolset, judgement: Judgement | None = None) -> Sample:
    """The sample of a plan; a rejected one carries the judgement's kind as a tag, and is kept apart."""
    question = plan.question
    tags = [f"style:{question.style}"]
    tags += [f"fault:{plan.fault}"] * bool(plan.fault)
    if judgement is not None and not judgement.right:
        tags.append(f"rejected:{judgement.kind}")
    return Sample(
        id=f"plan-{question.id}",
        source=SOURCE,
        language=question.language,
        cluster=question.cluster,
        toolset=toolset.digest,
        messages=(message("user", question.text), plan.action),
        tags=tuple(tags),
    )
