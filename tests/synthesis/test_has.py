"""Decisions: every option honest, every observation untouched, nothing that gives the choice away."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from told_episodes import answer, episode, library, turn, unreadable

from quintain.interface.episode import Outcome
from quintain.interface.messages import Action, Call, Turn, message
from quintain.synthesis.choices import BorrowedActions, Choice, Step, choices_of, option_text, reads_alike
from quintain.synthesis.has import Masks, bad_step, balanced, decision_sample, shown_observations, shuffled_ends, usable
from quintain.synthesis.leaks import Shown, find_leaks


def told(one, pool=None, masks=Masks()):  # noqa: B008
    return decision_sample(one, choices_of(one, BorrowedActions(pool or [one]), 3, seed=0), masks)


def alone(one):
    """Choices without alternatives: the text can be written down in full."""
    return [Choice((each.action,), 0) for each in one.turns]


# The text


def test_a_decision_reads_as_task_options_choice_observation_and_end():
    one = episode("e", (turn("open", "Emma", "By Jane Austen.", "I open it."), answer("Jane Austen")))
    other = Action(calls=(Call("c0", "search", {"title": "Faust"}),))
    choices = [Choice((other, one.turns[0].action), 1), Choice((one.turns[1].action,), 0)]
    assert decision_sample(one, choices, Masks()).text == (
        "Task: Who wrote Emma?\n"
        "Step 1\n"
        'Option 1: search {"title": "Faust"}\n'
        'Option 2: I open it.\nopen {"title": "Emma"}\n'
        "I will choose option 2\n"
        "Observation: By Jane Austen.\n"
        "Step 2\n"
        "Option 1: Answer: Jane Austen\n"
        "I will choose option 1\n"
        "My decision is Correct"
    )


def test_a_chinese_task_is_told_in_chinese_and_a_failure_ends_as_one():
    one = episode("e", (answer("老舍", "我知道。"),), success=False, question="谁写了《茶馆》？")
    sample = decision_sample(one, alone(one), Masks())
    assert sample.language == "zh"
    assert sample.text == ("任务：谁写了《茶馆》？\n第1步\n选项1：我知道。\n答案：老舍\n我选择选项1\n我的决定是错误的")


def test_what_the_user_says_in_between_is_told():
    one = episode("e", (answer("Which Emma?"), answer("Jane Austen")), user_messages={1: message("user", "The novel.")})
    assert "I will choose option 1\nUser: The novel.\nStep 2\n" in decision_sample(one, alone(one), Masks()).text


def test_the_option_chosen_is_the_step_that_was_taken():
    pool = library(40)
    for one in pool:
        choices = choices_of(one, BorrowedActions(pool), 3, seed=5)
        text = decision_sample(one, choices, Masks()).text
        for each, choice in zip(one.turns, choices, strict=True):
            assert choice.options[choice.chosen] is each.action
            number = choice.chosen + 1
            assert f"Option {number}: {option_text(each.action, 'en')}\n" in text
            assert f"I will choose option {number}\n" in text


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_observations_are_byte_identical(contents):
    turns = tuple(turn("open", "Emma", content) for content in contents)
    one = episode("e", (*turns, answer("x")))
    sample = decision_sample(one, alone(one), Masks())
    assert shown_observations(sample, one)
    assert "".join(f"Observation: {content}\n" for content in contents[-1:]) in sample.text


def test_a_changed_observation_is_noticed():
    one = episode("e", (turn("open", "Emma", "By Jane Austen."), answer("x")))
    sample = decision_sample(one, alone(one), Masks())
    assert not shown_observations(replace(sample, text=sample.text.replace("Austen", "Eyre")), one)


# Masks


def unlearnt(sample):
    return [sample.text[start:end] for start, end in sample.unlearnt]


def test_without_masks_everything_is_learnt():
    assert told(library(1)[0]).unlearnt == ()


def test_results_can_be_left_unlearnt():
    one = episode("e", (turn("open", "Emma", "Page 1."), turn("open", "Kim", "Page 2."), answer("x")))
    assert unlearnt(told(one, masks=Masks(results=True))) == ["Page 1.", "Page 2."]


def test_choices_known_to_be_wrong_can_be_left_unlearnt():
    one = episode(
        "e", (turn("open", "Emmma", "No such book.", error="exception"), turn("open", "Emma", "Page 1."), answer("x"))
    )
    sample = decision_sample(one, alone(one), Masks(bad_steps=True))
    assert unlearnt(sample) == ["I will choose option 1"]
    assert sample.text.index("I will choose option 1") == sample.unlearnt[0][0]


@pytest.mark.parametrize(
    ("turns", "more", "bad"),
    [
        ((turn("open", "Emma", "x"), answer("a")), {}, []),
        ((turn("open", "Emma", "x"), answer("a")), {"success": False}, [1]),
        ((turn("open", "Emma", "x"), turn("open", "Emma", "x"), answer("a")), {}, [1]),
        ((turn("open", "Emma", "", error="timeout"), answer("a")), {}, [0]),
        ((turn("open", "Emma", "x"), answer("a")), {"success": False, "parent": ("p", 0)}, [0, 1]),
        ((turn("open", "Emma", "x"), answer("a")), {"parent": ("p", 0)}, []),
    ],
    ids=["right", "wrong answer", "repeated call", "failed call", "wrong turn", "harmless turn"],
)
def test_a_step_is_bad_only_where_that_is_known(turns, more, bad):
    one = episode("e", turns, **more)
    assert [index for index in range(len(turns)) if bad_step(one, index)] == bad


# Which episodes


def test_episodes_that_can_not_be_told_are_counted_by_reason():
    skipped: Counter[str] = Counter()
    fine = episode("fine", (answer("x"),))
    others = [
        replace(fine, id="a", verdict=None),
        replace(fine, id="b", outcome=Outcome("agent_error")),
        episode("c", ()),
        episode("d", (unreadable(), answer("x"))),
    ]
    assert usable([fine, *others], skipped) == [fine]
    assert sorted(skipped.values()) == [1, 1, 1, 1]


def test_successes_and_failures_are_equal_in_each_language():
    english = [episode(f"e{n}", (answer("x"),), success=n < 7) for n in range(10)]
    chinese = [episode(f"z{n}", (answer("x"),), success=n < 2, question="谁？") for n in range(6)]
    skipped: Counter[str] = Counter()
    kept = balanced([*english, *chinese], 0, skipped)
    counts = Counter((one.id[0], one.success) for one in kept)
    assert counts == {("e", True): 3, ("e", False): 3, ("z", True): 2, ("z", False): 2}
    assert skipped == {"successes left out to balance": 4, "failures left out to balance": 2}


# Alternatives


def test_alternatives_differ_from_the_step_and_from_each_other_in_more_than_case_and_spaces():
    plain = episode("a", (turn("open", "Emma", "x", "Now."), answer("Jane Austen")))
    shout = episode("b", (turn("open", "EMMA", "x", "now. "), answer("jane  austen")))
    pool = [plain, shout]
    for one in pool:
        for choice in choices_of(one, BorrowedActions(pool), 5, seed=1):
            assert len({reads_alike(option, "en") for option in choice.options}) == len(choice.options) == 2


def test_a_borrowed_action_speaks_of_this_episodes_books():
    here = episode(
        "here", (turn("open", "Emma", "x", "I open Emma."), answer("1815")), question="When was Emma written?"
    )
    there = episode(
        "there", (turn("search", "Kim", "Kim", "I look for Kim."), answer("1901")), question="When was Kim written?"
    )
    found = BorrowedActions([here, there])(Step(here, 0), 9, random.Random(0))
    assert {option_text(one, "en") for one in found} == {
        'I look for Emma.\nsearch {"title": "Emma"}',
        "Answer: 1901",
        "Answer: 1815",
    }


def test_what_an_agent_kept_of_a_history_is_lent_with_this_episodes_names():
    here = episode("here", (turn("open", "Emma", "x"), answer("1815")), question="When was Emma written?")
    kept = Turn(Action("Enough read.", summary="Kim is open."))
    there = episode("there", (turn("open", "Kim", "x"), kept, answer("1901")), question="When was Kim written?")
    found = BorrowedActions([here, there])(Step(here, 0), 9, random.Random(0))
    assert "Enough read.\nSummary: Emma is open." in [option_text(one, "en") for one in found]


def test_a_chinese_step_borrows_from_chinese_episodes_only():
    english = episode("e", (answer("Jane Austen"),))
    chinese = [episode(f"z{n}", (answer(f"老舍{n}"),), question="谁写了《茶馆》？") for n in range(4)]
    found = BorrowedActions([english, *chinese])(Step(chinese[0], 0), 9, random.Random(0))
    assert sorted(one.answer for one in found) == ["老舍1", "老舍2", "老舍3"]


def test_the_draw_is_fixed_by_seed_episode_and_step():
    pool = library(10)
    first, again, other = (choices_of(pool[0], BorrowedActions(pool), 3, seed) for seed in (1, 1, 2))
    assert first == again != other


# Nothing gives the choice away


def shown(pool, choices) -> list[Shown]:
    return [
        Shown(one.cluster, tuple(option_text(option, "en") for option in choice.options), choice.chosen)
        for one, found in zip(pool, choices, strict=True)
        for choice in found
    ]


def test_the_choice_lies_at_every_position_equally_often():
    pool = library(200)
    borrowed = BorrowedActions(pool)
    choices = [choices_of(one, borrowed, 3, seed=0) for one in pool]
    places = Counter(choice.chosen for found in choices for choice in found if len(choice.options) == 4)
    assert sum(places.values()) > 700
    assert chisquare([places[place] for place in range(4)]).pvalue > 0.001
    assert find_leaks(shown(pool, choices)).position_p > 0.001


def test_the_words_of_borrowed_options_do_not_show_the_choice():
    pool = library(200)
    borrowed = BorrowedActions(pool)
    found = find_leaks(shown(pool, [choices_of(one, borrowed, 3, seed=0) for one in pool]))
    assert found.chance == pytest.approx(0.25, abs=0.01)
    assert found.accuracy == pytest.approx(found.chance, abs=0.06)
    assert not found.suspicious


@pytest.mark.parametrize("mark", ["Perhaps ", "so very long " * 12], ids=["a word", "length"])
def test_the_probe_finds_a_style_that_gives_the_choice_away(mark):
    steps = []
    for number in range(80):
        options = [f"{mark}open book {number}"] * 4
        options[number % 4] = f"open book {number}"
        steps.append(Shown(f"c{number}", tuple(options), number % 4))
    found = find_leaks(steps)
    assert found.accuracy > 0.95
    assert found.suspicious


def test_always_the_first_option_is_suspicious():
    found = find_leaks([Shown(f"c{number}", ("same", "same"), 0) for number in range(60)])
    assert found.position_p < 1e-9
    assert found.suspicious


def test_shuffled_ends_are_the_same_ends_dealt_out_anew_within_a_language():
    pool = [episode(f"e{n}", (answer("x"),), success=n < 6) for n in range(12)]
    pool += [episode(f"z{n}", (answer("x"),), success=False, question="谁？") for n in range(5)]
    ends = shuffled_ends(pool, seed=0)
    assert (sum(ends[:12]), sum(ends[12:])) == (6, 0)
    assert ends != [one.success for one in pool]
    sample = decision_sample(pool[0], alone(pool[0]), Masks(), right=False)
    assert sample.text.endswith("My decision is Incorrect")
