"""First-order action synthesis: what each call may see, what is kept and counted; nothing is carried out."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing

import pytest
from synthesis_runs import collect

from quintain.endpoint.structured import Reply, parse
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.interface.sample import read_samples, write_samples
from quintain.interface.tools import Toolset, tool
from quintain.synthesis.config import FASConfig
from quintain.synthesis.fas import draw
from quintain.synthesis.judging import Judgement, Plan, judge, judge_request
from quintain.synthesis.memory import Excerpt, Memory
from quintain.synthesis.planning import MadePlan, plan_request, take_plan
from quintain.synthesis.questions import MadeQuestion, MadeQuestions, Question, question_request, take_questions
from quintain.synthesis.reasoning import Draft, Refined, Step, draft_request, refine_request, take_reasoning
from quintain.synthesis.statements import Statement
from quintain.synthesis.teacher import Prompts, Request, shown
from quintain.worlds.desk import Desk

TOOLS = Desk().toolset()
CAPITAL = Statement("Chad", "The capital of Chad is N'Djamena.", "en", attribute="capital", value="N'Djamena")
AREA = Statement("Chad", "The area of Chad is 1284000.", "en", attribute="area", value="1284000")
EXCERPT = Excerpt("en:Chad", "Chad", "en", (CAPITAL, AREA), telling=frozenset({"1284000"}))


def question(text="What is the capital of Chad?", answer="N'Djamena", knowledge=(CAPITAL,), style="factual"):
    return Question("q1", "en:Chad", style, "en", text, (answer,), knowledge)


class Scripted:
    """A teacher that says what it is told, by kind of request, and remembers what it was asked. Not a real one."""

    def __init__(self, **replies):
        self.replies = replies
        self.asked: list[Request] = []

    async def ask(self, request):
        self.asked.append(request)
        return Reply(self.replies[request.kind], prompt_tokens=10, completion_tokens=5, price=0.5)


SCRIPT = {
    "questions": MadeQuestions(
        questions=[
            MadeQuestion(style="factual", question="What is the capital of Chad?", answer=["N'Djamena"], statements=[1])
        ]
    ),
    "plan": MadePlan(analysis="The capital of Chad must be looked up.", tool="search", arguments={"query": "Chad"}),
    "judge": Judgement(right=True),
    "reason": Draft(steps=[Step(question="Where is Chad?", answer="In Africa.")], answer="unknown"),
    "refine": Refined(reasoning="Chad is a country in Africa, and its capital is N'Djamena.", answer="N'Djamena"),
}
CONFIG = FASConfig(memories=1, styles=["factual"], chinese=0.0)


def test_a_question_gives_a_plan_and_a_reasoning_with_the_memory_as_cluster(tmp_path):
    teacher = Scripted(**SCRIPT)
    output = collect(teacher, TOOLS, CONFIG, [EXCERPT])
    assert [request.kind for request in teacher.asked] == ["questions", "plan", "judge", "reason", "refine"]
    plan, reasoning = output.kept
    assert (plan.source, plan.cluster, plan.toolset) == ("planning", "en:Chad", TOOLS.digest)
    assert plan.messages[-1] == Action(SCRIPT["plan"].analysis, (Call("c0", "search", {"query": "Chad"}),))
    assert (reasoning.source, reasoning.cluster, reasoning.toolset) == ("reasoning", "en:Chad", None)
    assert reasoning.messages[-1] == Action(SCRIPT["refine"].reasoning, answer="N'Djamena")
    write_samples(tmp_path / "s.jsonl", output.kept)
    assert list(read_samples(tmp_path / "s.jsonl")) == output.kept


def test_no_tool_is_ever_executed(atlas_memory):
    executed = []

    @tool
    def search(query: str) -> str:
        """Finds document titles.

        Args:
            query: name or keywords.
        """
        executed.append(query)
        return "nothing"

    from quintain.synthesis.offline.teacher import OfflineTeacher

    config = FASConfig(memories=20, chinese=0.5)
    with closing(Memory(atlas_memory)) as memory:
        output = collect(OfflineTeacher(), Toolset.of(search), config, draw(memory, config, Counter()))
    assert sum(len(plan.action.calls) for plan, _ in output.plans) > 50
    assert executed == []
    assert all(len(one.messages) == 2 for one in (*output.kept, *output.rejected))


def prompt_of(request):
    """The prompt, without the language to write in: English is the language of many countries, too."""
    return re.sub(r"Write[^.]* in (English|Chinese)", "", Prompts().render(request))


def test_the_first_reasoning_call_and_the_plan_see_none_of_the_knowledge(made):
    checked = 0
    for plan, _ in made.plans:
        asked = plan.question
        if all(one.value in asked.text for one in asked.knowledge):
            continue  # the question itself states the values
        secrets = [one.text for one in asked.knowledge] + [value for value in asked.answer if value not in asked.text]
        request = draft_request(asked)
        seen = prompt_of(request) + json.dumps(dict(request.hints), ensure_ascii=False)
        numbers_apart = {secret for secret in secrets if len(secret) > 3}  # a short number may stand in an id
        assert not [secret for secret in numbers_apart if secret in seen]
        assert not [secret for secret in numbers_apart if secret in prompt_of(plan_request(asked, TOOLS))]
        checked += 1
    assert checked > 500


def test_hints_for_the_offline_teacher_never_reach_a_prompt(made):
    plan, _ = made.plans[0]
    request = plan_request(plan.question, TOOLS)
    assert request.hints
    assert str(plan.question.frame["values"][0]) not in prompt_of(request)
    assert "frame" not in prompt_of(request)


def test_the_second_reasoning_call_shows_the_knowledge_and_the_draft():
    prompt = prompt_of(refine_request(question(), SCRIPT["reason"]))
    assert CAPITAL.text in prompt
    assert "Where is Chad? In Africa." in prompt


@pytest.mark.parametrize(
    ("refined", "reason"),
    [
        (Refined(reasoning="x" * 50 + " y z", answer="Abéché"), "the answer does not match"),
        (Refined(reasoning="N'Djamena.", answer="N'Djamena"), "length beyond 40 to 6000 characters"),
        (Refined(reasoning="so " * 3000, answer="N'Djamena"), "length beyond 40 to 6000 characters"),
        (Refined(reasoning="乍得的首都是恩贾梅纳，这是众所周知的事实。", answer="N'Djamena"), "in the wrong language"),
    ],
)
def test_a_reasoning_is_kept_only_if_answer_length_and_language_are_right(refined, reason):
    counts: Counter[str] = Counter()
    assert take_reasoning(question(), Reply(refined), counts) is None
    assert counts == {f"reasonings left out: {reason}": 1}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"style": "riddle"}, "another style than asked for"),
        ({"question": " "}, "no text, or one too long"),
        ({"question": "乍得的首都是哪里？"}, "in the wrong language"),
        ({"answer": []}, "no answer"),
        ({"statements": [3]}, "no such statement"),
        ({"statements": []}, "no such statement"),
        ({"style": "obfuscated"}, "a riddle that names what it asks about"),
        ({"style": "obfuscated", "question": "Which country?"}, "a riddle without a clue that fits one thing only"),
        ({"style": "obfuscated", "question": "It has N'Djamena. Its capital?"}, "a riddle that says its answer"),
    ],
)
def test_questions_that_can_not_be_used_are_counted_by_reason(changes, reason):
    one = SCRIPT["questions"].questions[0].model_copy(update=changes)
    counts: Counter[str] = Counter()
    styles = ["factual", "obfuscated"]
    assert take_questions(EXCERPT, styles, Reply(MadeQuestions(questions=[one])), counts) == []
    assert counts == {f"questions left out: {reason}": 1}


def test_questions_beyond_those_asked_for_and_the_same_again_are_counted():
    one = SCRIPT["questions"].questions[0]
    counts: Counter[str] = Counter()
    again = one.model_copy(update={"question": one.question.upper(), "style": "synthesis"})
    found = take_questions(EXCERPT, ["factual", "synthesis"], Reply(MadeQuestions(questions=[one, again, one])), counts)
    assert [each.text for each in found] == [one.question]
    assert counts == {"questions left out: more than asked for": 1, "questions left out: asked twice in one reply": 1}


def test_a_style_is_asked_for_once_and_a_second_question_of_it_is_counted():
    one = SCRIPT["questions"].questions[0]
    counts: Counter[str] = Counter()
    other = one.model_copy(update={"question": "Which city is the capital of Chad?"})
    found = take_questions(EXCERPT, ["factual", "synthesis"], Reply(MadeQuestions(questions=[one, other])), counts)
    assert [each.text for each in found] == [one.question]
    assert counts == {"questions left out: a second one of its style": 1}


@pytest.mark.parametrize(("right", "kind"), [(False, ""), (True, "invalid_tool")])
def test_a_judgement_names_the_kind_of_an_error_and_of_nothing_else(right, kind):
    assert parse(json.dumps({"right": right, "kind": kind}), Judgement) is None
    assert parse(json.dumps({"right": right, "kind": "" if right else "invalid_tool"}), Judgement) is not None


def test_a_riddle_with_a_telling_clue_is_kept():
    one = MadeQuestion(
        style="obfuscated", question="Its area is 1,284,000 km2. Its capital?", answer=["N'Djamena"], statements=[1, 2]
    )
    (found,) = take_questions(EXCERPT, ["obfuscated"], Reply(MadeQuestions(questions=[one])), Counter())
    assert found.knowledge == (CAPITAL, AREA)
    assert found.cluster == EXCERPT.id


def test_a_memory_may_be_called_invalid_and_problems_are_counted():
    counts: Counter[str] = Counter()
    assert take_questions(EXCERPT, ["factual"], Reply(MadeQuestions(questions=[], invalid="dull")), counts) == []
    assert take_questions(EXCERPT, ["factual"], Reply(problem="refused"), counts) == []
    assert take_plan(question(), Reply(problem="refused"), counts) is None
    assert counts == {
        "memories that make no question (INVALID)": 1,
        "question requests: refused": 1,
        "plan requests: refused": 1,
    }


@pytest.mark.parametrize(
    ("made_plan", "reason"),
    [
        (MadePlan(analysis=" ", tool="search"), "not an analysis with one call or one answer"),
        (MadePlan(analysis="I look.", tool="search", answer="x"), "not an analysis with one call or one answer"),
        (MadePlan(analysis="I look."), "not an analysis with one call or one answer"),
        (MadePlan(analysis="先搜索一下。", tool="search"), "in the wrong language"),
    ],
)
def test_plans_that_can_not_be_used_are_counted_by_reason(made_plan, reason):
    counts: Counter[str] = Counter()
    assert take_plan(question(), Reply(made_plan), counts) is None
    assert counts == {f"plans left out: {reason}": 1}


def test_a_call_that_does_not_fit_the_toolset_is_rejected_without_asking_the_judge():
    teacher = Scripted(
        **{**SCRIPT, "plan": MadePlan(analysis="The capital of Chad.", tool="google", arguments={"q": "Chad"})}
    )
    output = collect(teacher, TOOLS, CONFIG, [EXCERPT])
    assert "judge" not in [request.kind for request in teacher.asked]
    assert output.rejected[0].tags == ("style:factual", "rejected:invalid_tool")
    assert [one.source for one in output.kept] == ["reasoning"]


def test_what_the_judge_rejects_is_kept_apart_with_its_kind():
    teacher = Scripted(**{**SCRIPT, "judge": Judgement(right=False, kind="search_necessity", reason="why")})
    output = collect(teacher, TOOLS, CONFIG, [EXCERPT])
    assert [one.tags for one in output.rejected] == [("style:factual", "rejected:search_necessity")]
    assert output.counts["plans rejected: search_necessity en"] == 1


def plan(thought, calls=(), answer=None, **changes):
    return Plan(question(**changes), Action(thought, tuple(Call("c0", *one) for one in calls), answer))


GIVEN = {"text": "The capital of Chad is N'Djamena. Given that, what is the capital of Chad?"}


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (plan("The capital of Chad is asked.", [("search", {"query": "Chad capital"})]), ""),
        (plan("The capital of Chad is asked.", [("open", {"title": "Niger"})]), "content_inconsistency"),
        (plan("The weather tomorrow.", [("open", {"title": "Chad"})]), "content_inconsistency"),
        (plan("The capital of Chad is asked.", answer="N'Djamena"), "search_necessity"),
        (plan("The capital of Chad is given.", answer="N'Djamena", **GIVEN), ""),
        (plan("The capital of Chad is given.", answer="Moundou", **GIVEN), "content_inconsistency"),
        (plan("The capital of Chad is asked.", [("search", {"query": "Chad"})], **GIVEN), "search_necessity"),
        (plan("The capital of Chad is asked.", [("search", {"query": "N'Djamena"})]), "logic_discontinuity"),
        (plan("The capital of Chad is asked.", [("calculate", {"expression": "3 + 4"})]), "logic_discontinuity"),
        (plan("The capital of Chad is asked.", [("calculate", {"expression": "the capital"})]), "invalid_tool"),
        (plan("The capital of Chad is asked.", [("search", {"title": "Chad"})]), "invalid_tool"),
    ],
)
def test_the_offline_judge_by_hand(one, kind):
    assert judge(one, TOOLS).kind == kind


def test_the_judges_prompt_shows_knowledge_answer_and_action():
    prompt = prompt_of(judge_request(plan("I look.", [("search", {"query": "Chad"})]), TOOLS))
    for part in (CAPITAL.text, "N'Djamena", 'search {"query": "Chad"}', "I look.", "calculate(expression: string)"):
        assert part in prompt


def test_prompts_are_files_a_user_can_replace(tmp_path):
    request = question_request(EXCERPT, ["factual"], 0)
    assert "- 1. The capital of Chad is N'Djamena." in prompt_of(request)
    (tmp_path / "questions.md").write_text("Ask about $entity in $language for $$5.")
    assert Prompts(tmp_path).render(request) == "Ask about Chad in English for $5."
    assert "N'Djamena" in Prompts(tmp_path).render(refine_request(question(), SCRIPT["reason"]))


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("question.md", b"Ask.", r"question.md is no prompt; there are alternatives.md, .*, questions.md"),
        ("questions.md", "Wie heißt du?".encode("latin-1"), r"questions.md: a prompt is a text file in UTF-8"),
    ],
)
def test_a_prompt_file_that_would_not_be_read_is_refused_before_anything_is_asked(tmp_path, name, data, complaint):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=complaint):
        Prompts(tmp_path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("About $topic", "prompt questions.md: no value for $topic; allowed: $entity"),
        ("costs $ 5", "write $$ for a dollar sign"),
    ],
)
def test_a_wrong_prompt_file_is_one_line(tmp_path, text, complaint):
    (tmp_path / "questions.md").write_text(text)
    with pytest.raises(InputError) as error:
        Prompts(tmp_path).render(question_request(EXCERPT, ["factual"], 0))
    assert complaint in str(error.value)


def test_fields_are_shown_as_text_bullets_or_json():
    assert [shown("a"), shown(["a", "b"]), shown({"a": 1})] == ["a", "- a\n- b", '{"a": 1}']


def test_languages_come_in_the_recipes_share(atlas_memory):
    config = FASConfig(memories=40, chinese=0.25)
    with closing(Memory(atlas_memory)) as memory:
        languages = [one.language for one in draw(memory, config, Counter())]
    assert Counter(languages) == {"en": 30, "zh": 10}
    assert "zh" in languages[:5]
