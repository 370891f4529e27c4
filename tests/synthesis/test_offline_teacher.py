"""The offline teacher: plans, reasoning and errors from structure, worded so that the wording tells nothing."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from itertools import islice

import pytest
from synthesis_runs import collect

from quintain.interface.tools import Toolset, tool
from quintain.synthesis.config import FASConfig
from quintain.synthesis.documents import Document
from quintain.synthesis.fas import draw
from quintain.synthesis.judging import KINDS
from quintain.synthesis.memory import Memory, build
from quintain.synthesis.offline.teacher import OfflineTeacher
from quintain.synthesis.probe import bag_of_words, commonest_opening
from quintain.synthesis.questions import STYLES
from quintain.worlds.desk import Desk
from quintain.worlds.desk.calculator import calculate


def by_language(made, language):
    return [plan for plan, _ in made.plans if plan.question.language == language]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_opening_of_four_words_covers_more_than_a_twentieth(made, language):
    thoughts = [one.messages[-1].thought for one in made.kept if one.language == language]
    assert len(thoughts) > 500
    opening, share = commonest_opening(thoughts)
    assert share <= 0.05, opening


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_bag_of_words_does_not_tell_right_plans_from_wrong_ones(made, language):
    plans = by_language(made, language)
    written = [
        f"{plan.action.thought} {[(call.tool, call.arguments) for call in plan.action.calls] or plan.action.answer}"
        for plan in plans
    ]
    found = bag_of_words(written, [not plan.fault for plan in plans], [plan.question.cluster for plan in plans])
    assert found is not None
    print(f"{language}: accuracy {found.accuracy:.3f} on {found.count} plans")
    # 0.5 and three standard errors of a fair coin, and a margin of five points
    assert found.accuracy <= 0.55 + 1.5 / found.count**0.5


def test_every_style_and_every_kind_of_error_occurs_in_both_languages(made):
    for language in ("en", "zh"):
        plans = by_language(made, language)
        assert {plan.question.style for plan in plans} == set(STYLES)
        assert {plan.fault for plan in plans} == {"", *KINDS}


def test_right_plans_fit_the_toolset_and_begin_with_what_the_question_names(made):
    toolset = Desk().toolset()
    for plan, _ in made.plans:
        for call in plan.action.calls if not plan.fault else ():
            assert toolset.check(call.tool, call.arguments) is None
            (text,) = call.arguments.values()
            assert all(word in plan.question.text for word in text.replace("+", " ").replace(">", " ").split())


def test_right_direct_answers_follow_from_the_question_alone(made):
    direct = [plan for plan, _ in made.plans if plan.action.answer is not None and not plan.fault]
    assert direct
    for plan in direct:
        assert all(one.value in plan.question.text for one in plan.question.knowledge)


def test_gold_answers_of_numerical_questions_are_what_the_desks_calculator_gives(made):
    plans = [plan for plan, _ in made.plans if plan.question.style == "numerical"]
    for plan in plans:
        first, second = (one.value for one in plan.question.knowledge)
        sign = "-" if plan.question.frame["form"] == "difference" else "+"
        assert float(plan.question.answer[0]) == pytest.approx(
            float(calculate(f"({first}) {sign} ({second})")), rel=1e-4
        )


def test_the_larger_one_wins_a_comparison(made):
    plans = [plan for plan, _ in made.plans if plan.question.style == "comparison"]
    for plan in plans:
        values = {one.entity: float(one.value) for one in plan.question.knowledge}
        assert plan.question.answer == (max(values, key=values.__getitem__),)


def test_riddles_name_nothing_and_have_one_answer(made, atlas_memory):
    riddles = [plan.question for plan, _ in made.plans if plan.question.style == "obfuscated"]
    assert riddles
    with closing(Memory(atlas_memory)) as memory:
        everything = [one for language in ("en", "zh") for one in memory.excerpts(language, 0)]
    facts = {one.entity: {(said.attribute, said.value) for said in one.own} for one in everything}
    for question in riddles:
        clues = {(one.attribute, one.value) for one in question.knowledge[:-1]}
        assert [name for name, known in facts.items() if clues <= known] == [question.subjects[0]]
        assert not re.search(rf"\b{re.escape(question.subjects[0])}\b", question.text)


def test_the_same_run_makes_the_same_samples(made, atlas_memory):
    config = FASConfig(memories=200, chinese=0.4)
    with closing(Memory(atlas_memory)) as memory:
        excerpts = islice(draw(memory, config, Counter()), 40)
        again = collect(OfflineTeacher(), Desk().toolset(), config, excerpts, width=1)
    assert again.kept == made.kept[: len(again.kept)]
    assert len(again.kept) > 200


def test_it_works_for_tools_and_documents_it_has_never_seen(tmp_path):
    @tool
    def lookup_item(name: str) -> str:
        """Finds an item of the shop.

        Args:
            name: of the item.
        """
        raise AssertionError("no tool is ever executed")

    rows = [("Green tea", 3, "Assam"), ("Black tea", 5, "Ceylon"), ("Cocoa", 4, "Ghana"), ("Mate", 7, "Chaco")]
    documents = [
        Document(name, f"Price in euros: {price}\nOrigin: {origin}\nShelf: {price * 2}", "shop")
        for name, price, origin in rows
    ]
    build(tmp_path / "m", documents, Counter())
    config = FASConfig(memories=4, chinese=0.0)
    with closing(Memory(tmp_path / "m")) as memory:
        output = collect(OfflineTeacher(errors=0.0), Toolset.of(lookup_item), config, draw(memory, config, Counter()))
    calls = [call for plan, _ in output.plans for call in plan.action.calls]
    assert {call.tool for call in calls} == {"lookup_item"}
    assert not output.rejected


def test_a_toolset_without_a_look_up_is_a_counted_problem(atlas_memory):
    config = FASConfig(memories=3, chinese=0.0)
    with closing(Memory(atlas_memory)) as memory:
        output = collect(OfflineTeacher(), Toolset([]), config, draw(memory, config, Counter()))
    assert output.plans == []
    assert output.counts["plan requests: the toolset has no tool that looks something up by one text"] > 0


def test_documents_without_plain_facts_are_invalid_and_counted(tmp_path):
    build(tmp_path / "m", [Document("Rex", "Rex barks at night and sleeps all day.", "a")], Counter())
    config = FASConfig(memories=2, chinese=0.5)
    counts: Counter[str] = Counter()
    with closing(Memory(tmp_path / "m")) as memory:
        output = collect(OfflineTeacher(), Desk().toolset(), config, draw(memory, config, counts))
    assert output.counts["memories that make no question (INVALID)"] == 1
    assert output.counts["memories with one statement"] == 1
    assert counts["memories asked for that there are not: zh"] == 1
