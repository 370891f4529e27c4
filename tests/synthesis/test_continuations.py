"""Recovery: continuations that are really played, rest on what was read, and come to a right end."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from harness.till import Script, call
from quintain import Harness, Journal
from quintain.harness.faults import FaultPlan
from quintain.interface.episode import Episode
from quintain.interface.errors import FormatError, InputError
from quintain.interface.failures import recovered
from quintain.interface.messages import Action
from quintain.synthesis.recovery import Recovered, go_on, points_of
from quintain.synthesis.rescuer import Rescuer, _stands
from quintain.worlds.desk import Desk

ALL = FaultPlan(episodes=1.0, rate=1.0)


@cache
def task(template: str, language: str = "en"):
    return Desk.generate("train", 1, seed=2, languages=[language], templates=[template])[0]


def do(tool: str, **arguments) -> Action:
    return Action(calls=(call(tool, **arguments),))


def struck(kind: str, tool: str, permanent: float = 0.0) -> FaultPlan:
    rates = dict.fromkeys(("search", "open", "calculate"), 0.0) | {tool: 1.0}
    return replace(ALL, kinds={kind: 1.0}, tools=rates, permanent=permanent)


async def rescue(the_task, plan: FaultPlan | None = None, *actions: Action, seed: int = 0) -> Episode:
    """Plays the actions, then lets the rescuer finish."""
    rescuer = Rescuer(Desk().solution, {the_task.id: the_task})

    class Then(Script):
        async def act(self, view):
            here = len(view.turns)
            return actions[here] if here < len(actions) else await rescuer.act(view)

    return await Harness(Desk, faults=plan, seed=seed).run(the_task, Then(actions))


def did(episode: Episode) -> list[str]:
    """Tools called and how it ended, in order."""
    names = [one.tool for turn in episode.turns for one in turn.action.calls]
    return [*names, episode.outcome.kind]


async def test_without_trouble_it_is_the_reference_solution():
    episode = await rescue(task("total_country"))
    assert episode.success
    assert did(episode) == ["search", "search", "open", "open", "calculate", "answered"]


@pytest.mark.parametrize("kind", ["timeout", "server_error", "rate_limit"])
async def test_what_may_pass_is_tried_again_until_it_passes(kind):
    episode = await rescue(task("country_number"), struck(kind, "open"))
    assert episode.success
    opens = [one for turn in episode.turns for one in turn.observations if one.tool == "open"]
    assert [bool(one.fault) for one in opens] in ([True, False], [True, True, False])
    assert "again" in episode.turns[2].action.thought


async def test_what_does_not_pass_is_tried_three_times_and_then_declined_with_the_reason():
    episode = await rescue(task("country_number"), struck("timeout", "open", permanent=1.0))
    assert did(episode) == ["search", "open", "open", "open", "declined"]
    first, last, *_ = (turn.action.thought for turn in episode.turns[2:])
    assert first == "open did not answer in time; I try again."
    assert last == "open fails again; I try one last time.", "what is in the text need not be counted"
    assert episode.answer == "Cannot answer: open can't be used, it does not answer."
    assert recovered(episode)
    assert not episode.success


async def test_a_tool_that_is_gone_is_passed_over_where_what_comes_next_has_been_read():
    # the title to open stands in the question
    episode = await rescue(task("country_number"), struck("tool_gone", "search"))
    assert episode.success
    assert did(episode) == ["search", "open", "answered"]
    assert episode.turns[1].action.thought == "No search then; open will do."


@pytest.mark.parametrize(
    ("template", "tool"),
    [("airport_code", "search"), ("element_fact", "open"), ("total_country", "calculate")],
)
async def test_nothing_is_written_that_was_never_read(template, tool):
    # the airport's document, the element's fact and the sum are known to the solution alone
    episode = await rescue(task(template), struck("permission_denied", tool))
    assert did(episode)[-1] == "declined"
    assert episode.answer == f"Cannot answer: {tool} can't be used, I have no permission."
    assert recovered(episode)


async def test_a_damaged_result_is_read_again_only_if_what_is_needed_is_not_in_it():
    for seed in range(8):
        episode = await rescue(task("country_number"), struck("truncated", "open"), seed=seed)
        assert episode.success
        enough = task("country_number").answer["number"] in episode.turns[1].observations[0].content
        assert (did(episode).count("open") == 1) == enough


async def test_a_stale_figure_is_not_believed():
    episode = await rescue(task("country_number"), struck("stale", "open"))
    assert episode.success
    assert "old copy" in episode.turns[2].action.thought


async def test_only_the_calls_of_a_turn_that_failed_are_made_again():
    episode = await rescue(task("total_country"), struck("server_error", "open"))
    again = [turn for turn in episode.turns if "again" in turn.action.thought]
    assert episode.success
    assert all(len(turn.action.calls) == 1 for turn in again)


async def test_a_wrong_call_is_corrected_and_a_malformed_one_written_again():
    wrong = do("open", title="Atlantis")
    episode = await rescue(task("country_number"), None, wrong)
    assert episode.turns[1].action.thought == "open can't do that; search can."
    assert episode.success
    searched = (await rescue(task("country_number"))).turns[0].action
    episode = await rescue(task("country_number"), None, searched, wrong)
    assert episode.turns[2].action.thought == "Wrong use of open; this is right."
    broken = Action(error=FormatError("json", "no JSON"), text="{")
    episode = await rescue(task("country_number"), None, broken)
    assert episode.turns[1].action.thought == "That was no proper call; I write it again."
    assert episode.success


async def test_it_speaks_the_language_of_the_task():
    episode = await rescue(task("country_number", "zh"), struck("tool_gone", "open"))
    assert episode.answer == "无法回答：open 无法使用，它已不存在。"
    assert recovered(episode)


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("co", "cobalt", False),
        ("co", "symbol: co.", True),
        ("55", "population: 5500", False),
        ("55", "it is 1.55 or 55.2", False),
        ("55", "elevation in ft: 55.", True),
        ("55.2", "it is 55.2.", True),
        ("1,234", "it is 1,234 m", True),
        ("首都", "它的首都是巴黎", True),
        ("tun", "查一下tun机场", True),
    ],
)
def test_a_word_is_read_where_it_stands_on_its_own(word, text, found):
    assert _stands(word, text) is found


PUT_ON = [do("search", query="Chad"), do("open", title="Atlantis"), do("open", title="Atlantis")]


async def played(*actions, the_task=None, **options) -> Episode:
    return await Harness(Desk, **options).run(the_task or task("country_number"), Script(actions))


async def test_points_lie_after_trouble_and_before_a_wrong_answer():
    failing = await played(*PUT_ON, Action(answer="12"))
    assert [(one.turns, one.kind) for one in points_of(failing, 9)] == [(2, "exception"), (3, "exception")]
    assert [one.turns for one in points_of(failing, 1)] == [2]
    wrong = await played(PUT_ON[0], Action(answer="12"))
    assert [(one.turns, one.kind) for one in points_of(wrong, 9)] == [(1, "answer")]


async def test_right_episodes_have_points_only_where_a_fault_struck():
    assert points_of(await rescue(task("country_number")), 9) == []
    assert points_of(await rescue(task("country_number"), None, PUT_ON[1]), 9) == []
    late = await rescue(task("country_number"), struck("timeout", "open"))
    assert [one.kind for one in points_of(late, 1)] == ["timeout"]


async def test_continuations_are_played_from_the_snapshot_and_only_right_ends_are_kept(tmp_path):
    journal = Journal(tmp_path / "played")
    the_task = task("country_number")
    original = await played(*PUT_ON, Action(answer="12"), journal=journal)
    (point,) = points_of(original, 1)
    states = journal.states_at([(original.id, point.turns)])
    tries = Journal(tmp_path / "tries")
    found = Recovered()
    for tasks, solve in ((the_task, Desk().solution), (the_task, _wrong)):
        await go_on(
            Harness(Desk, journal=tries),
            [point],
            states,
            {tasks.id: tasks},
            lambda one, solve=solve: Rescuer(solve, {the_task.id: the_task}, at=one.turns),
            lambda one, episode: found.add(one.kind, episode),
        )
    assert found.by_kind() == {"exception": {"tried": 2, "kept": 1}}
    (kept,) = found.kept
    assert kept.parent == (original.id, 2)
    assert kept.id == point.id
    assert kept.turns[:2] == original.turns[:2]
    assert kept.success
    assert kept.milestones  # the world really moved on


def _wrong(the_task):
    yield Action(answer="12")


async def test_an_episode_of_an_unknown_task_is_an_input_error():
    original = await played(PUT_ON[0], Action(answer="12"))
    with pytest.raises(InputError, match="its task is not among the 0 of its pool"):
        await go_on(
            Harness(Desk), points_of(original, 1), {(original.id, 1): None}, {}, lambda one: None, lambda *both: None
        )
