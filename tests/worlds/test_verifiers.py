"""Environments of the package `verifiers` as a world: its rollout step by step, with our agent as the model."""

from __future__ import annotations

import signal

import pytest

pytest.importorskip("verifiers.envs.tool_env", reason="needs verifiers 0.2: pip install 'quintain[verifiers]'")

from quintain.doctor.world import Script, WorldExam
from quintain.harness.loop import Harness
from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call
from quintain.worlds.verifiers import Verifiers

ENV = "verifiers-small"


def generate(kind, split="eval", count=1, **args):
    return Verifiers.generate(split, count, 0, ["en"], [], env=ENV, args={"kind": kind, **args})


def harness(kind, **args):
    return Harness(lambda: Verifiers(ENV, {"kind": kind, **args}))


async def script(kind, *actions, task=None):
    task = task or generate(kind, count=5)[0]
    return await harness(kind).run(task, Script({task.id: actions}))


def call(tool, **arguments):
    return Action(calls=(Call("a", tool, arguments),))


def said(episode):
    return [seen.content for turn in episode.turns for seen in turn.observations]


def test_training_tasks_come_from_the_dataset_and_evaluation_tasks_from_the_evaluation_set():
    train, evaluation = generate("single", "train", 10), generate("single", "eval", 5)
    assert train[3].prompt == "3 + 3?"
    assert (evaluation[0].id, evaluation[0].prompt, evaluation[0].answer) == (f"{ENV}-eval-0", "100 + 100?", "200")


def test_without_an_evaluation_set_one_row_in_five_is_held_out():
    prompts = [
        {one.prompt for one in generate("single", split, n, held_out=False)} for split, n in (("train", 8), ("eval", 2))
    ]
    assert prompts[1] == {"4 + 4?", "9 + 9?"}
    assert not prompts[0] & prompts[1]


def test_ctrl_c_stays_as_it_was():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    Verifiers(ENV, {"kind": "single", "pass_threshold": 0.9})
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("kind", ["single", "boxed", "tool"])
def test_the_doctor_finds_gold_right_and_silence_chance_and_forgery_wrong(kind):
    world = Verifiers(ENV, {"kind": kind})
    exam = WorldExam(
        lambda journal: Harness(lambda: Verifiers(ENV, {"kind": kind}), journal=journal),
        world.solution,
        generate(kind, count=3),
    )
    found = [exam.gold_passes(), exam.silence_fails(), exam.chance_fails(), exam.forgery_fails()]
    found += [exam.repeats_agree(), exam.order_does_not_matter()]
    assert [one for one in found if one.state != "ok"] == []


async def test_the_system_prompt_and_the_rubrics_parts_are_said():
    episode = await script("single", Action(answer="7"))
    assert [one.text for one in episode.messages] == ["Answer with the number only.", "100 + 100?"]
    assert (episode.success, episode.verdict.score) == (False, 0.0)
    assert "exact 0" in episode.verdict.reasons


async def test_a_tool_is_called_and_the_reward_is_the_rubrics():
    episode = await script("tool", call("add", a=100, b=100), Action(answer="200"))
    assert said(episode) == ["200"]
    assert {"exact 1", "called 0.25", "total_tool_calls 1"} <= set(episode.verdict.reasons)
    wrong = await script("tool", call("add", a=100, b=100), Action(answer="3"))
    assert wrong.verdict.score == pytest.approx(0.1)


async def test_arguments_are_checked_and_what_a_tool_raises_is_said_in_the_environments_words():
    episode = await script("tool", call("add", a="x", b=1), call("add", a=-1, b=1), Action(answer="200"))
    first, second = (turn.observations[0] for turn in episode.turns[:2])
    assert first.error == "format"
    assert (second.error, second.content) == ("", "no negative numbers")


async def test_a_stop_condition_ends_what_can_be_called():
    episode = await script("tool", *[call("add", a=1, b=1)] * 5, Action(answer="200"))
    assert [one.error for turn in episode.turns for one in turn.observations] == [""] * 3 + ["exception"] * 2
    assert "max_turns_reached" in said(episode)[-1]
    assert not episode.success


async def test_state_belongs_to_one_episode_and_hidden_arguments_to_the_environment():
    (spec,) = Verifiers(ENV, {"kind": "stateful"}).toolset()
    assert list(spec.parameters["properties"]) == ["text"]
    for _ in range(2):
        episode = await script("stateful", call("note", text="red"), call("note", text="blue"), Action(answer="Done."))
        assert (said(episode), episode.success) == (["1 notes", "2 notes"], True)


async def test_an_environment_may_answer_as_the_user_until_it_ends():
    episode = await script("multi", *(Action(answer=guess) for guess in ("150", "250", "200")))
    assert [one.text for one in episode.user_messages.values()] == ["Higher.", "Lower."]
    assert (len(episode.turns), episode.success, episode.outcome.kind) == (3, True, "answered")


async def test_a_set_up_that_fails_has_no_score():
    episode = await script("broken", Action(answer="1"))
    assert (episode.outcome.kind, episode.scored) == ("infra_error", False)
    assert "SandboxError: no sandbox" in episode.outcome.detail


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("best", "its rubric scores groups of rollouts; here every episode has a verdict of its own"),
        ("many", "EnvGroup runs rollouts in its own way; SingleTurnEnv, ToolEnv, StatefulToolEnv and MultiTurnEnv can"),
        ("own tools", r"eval row 1: it brings tools of its own \(info\['tool_defs'\]\)"),
        ("nothing", "no kind nothing"),
    ],
)
def test_what_can_not_be_played_is_refused_in_one_line(kind, line):
    with pytest.raises(InputError, match=line):
        generate(kind)


def test_an_environment_that_is_not_installed_and_too_many_tasks_are_said():
    with pytest.raises(InputError, match="'nowhere': Could not import 'nowhere' environment"):
        Verifiers("nowhere")
    with pytest.raises(InputError, match="has 5 rows for eval; 6 were asked for"):
        generate("single", count=6)
