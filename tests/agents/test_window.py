"""What a model agent does when its window fills. A token is a word, so every length is counted by hand."""

from __future__ import annotations

import json

import pytest
import torch
from toy_words import Scripted, Words

import tiny
from quintain import Task, Verdict, World, tool
from quintain.agents import window as window_module
from quintain.agents.model import ModelAgent
from quintain.agents.window import Window
from quintain.curation.formats.chat import read_chat, write_chat
from quintain.curation.formats.columns import Origin
from quintain.harness.journal import Journal, read_journal
from quintain.harness.loop import Harness
from quintain.inference.local import LocalEngine
from quintain.interface.dialects import get
from quintain.interface.episode import Budget
from quintain.interface.generation import Sampling
from quintain.interface.messages import message
from quintain.training.advantage import Group
from quintain.training.examples import episode_examples
from quintain.training.experience import group_examples

TASK = Task("t", "library", "find the book please")
"""4 words, and `>` to open a turn: a prompt of 5 tokens."""


class Library(World):
    """Every look shows the same 4 words: 5 tokens with the one that opens the next turn."""

    name = "library"

    @tool
    def look(self) -> str:
        """Looks."""
        return "dust on old shelves"

    @tool
    def read(self) -> str:
        """Reads a lot: 40 words."""
        return " ".join(["page"] * 40)

    def verify(self, task, episode):
        return Verdict(episode.answer == "here")


@pytest.fixture(autouse=True)
def short_request(monkeypatch):
    monkeypatch.setattr(window_module, "ASK", {"en": "sum up now", "zh": "总结"})


async def play(dialect, engine, window, turn=3, task=TASK, journal=None, world=Library, **budget):
    agent = ModelAgent(engine, dialect, Sampling(max_tokens=turn), window=window)
    return await Harness(world, budget=Budget(**budget), journal=journal).run(task, agent)


async def test_without_a_window_one_segment_grows():
    words = Words()
    engine = Scripted(words, *["call look ."] * 3, "here .")
    episode = await play(words, engine, None)
    (segment,) = episode.segments
    assert len(segment.ids) == 5 + 3 * (3 + 5) + 2
    assert engine.sessions == ["t#0"] * 4


async def test_discard_all_begins_the_task_afresh_once_a_turn_would_not_fit():
    """Before the turns there are 5, 13, 21 and 29 tokens; 21 + 3 fit into 25, 29 + 3 do not."""
    words = Words()
    engine = Scripted(words, *["call look ."] * 4, "here .")
    episode = await play(words, engine, Window(25, "discard-all"))
    first, second = episode.segments
    assert (len(first.ids), first.parent, first.reason) == (5 + 3 + 5 + 3 + 5 + 3, -1, "start")
    assert (len(second.ids), second.parent, second.reason) == (5 + 3 + 5 + 2, 0, "discard")
    assert engine.asked[3] == "find the book please >", "nothing of the earlier turns is left"
    assert [len(asked.split()) for asked in engine.asked] == [5, 13, 21, 5, 13]
    assert episode.success
    assert episode.usage.tokens == 4 * 3 + 2, "what was generated before is spent"
    assert episode.usage.context_tokens == 5 + 5 + 5 + 5 + 5


async def test_each_segment_has_a_session_of_its_own_and_the_last_is_freed_at_the_end():
    words = Words()
    engine = Scripted(words, *["call look ."] * 4, "here .")
    await play(words, engine, Window(25, "discard-all"))
    assert engine.sessions == ["t#0"] * 3 + ["t#0/1"] * 2
    assert engine.released == ["t#0", "t#0/1"]


async def test_a_summary_is_a_turn_of_its_own_and_the_next_segment_begins_with_it():
    """A turn has 6 tokens at most. After it must fit: `[...] sum up now >`, 5 tokens, and the summary, 6.

    So a turn is only begun with at most 40 - 6 - 11 = 23 tokens: 5, 13, 21 are, 29 are not.
    """
    words = Words()
    engine = Scripted(words, *["call look ."] * 3, "shelves are old .", "here .")
    episode = await play(words, engine, Window(40, "summary"), turn=6)
    actions = [turn.action for turn in episode.turns]
    assert [one.summary for one in actions] == [None] * 3 + ["shelves are old", None]
    assert actions[4].discard == "summary"
    assert engine.asked[3].endswith("dust on old shelves sum up now >")
    assert engine.asked[4] == "find the book please Summary of your work so far: shelves are old >"
    first, second = episode.segments
    assert (len(first.ids), second.reason, second.parent) == (5 + 3 * (3 + 5) + 3 + 4, "summary", 0)
    assert episode.success
    assert episode.usage.turns == 5
    assert episode.usage.tokens == 3 * 3 + 4 + 2, "a summary is paid for like any other turn"


async def test_every_generated_token_carries_loss_in_exactly_one_example_the_summary_included():
    words = Words()
    engine = Scripted(words, *["call look ."] * 3, "shelves are old .", "here .")
    episode = await play(words, engine, Window(40, "summary"), turn=6)
    made = [list(turn.action.generation.ids) for turn in episode.turns]
    for examples in (
        episode_examples(episode, window_turns=8),
        group_examples(Group("t", (episode,), (1.0,), 0), 0, kind="mean", bound=0, rule="drop"),
    ):
        learnt = [
            [one for one, weight in zip(example.ids, example.weights, strict=True) if weight] for example in examples
        ]
        assert learnt == [[*made[0], *made[1], *made[2], *made[3]], made[4]]


async def test_results_too_long_to_be_summed_up_are_read_in_part():
    """Before `read` there are 5 tokens, after it 5 + 3 + 41. A summary takes at most (44 - 5) // 2 = 19, here 6.

    With all 40 words: 8 + 44 + 6 > 44. Half: 8 + 20 + 1 + 4 + 6 <= 44.
    """
    words = Words()
    engine = Scripted(words, "call read .", "many pages .", "here .")
    episode = await play(words, engine, Window(44, "summary"), turn=6)
    read = engine.asked[1].split()
    assert read[8:] == [*["page"] * 20, "[...]", "sum", "up", "now", ">"]
    assert episode.turns[1].action.summary == "many pages"
    assert episode.success


async def test_what_a_model_writes_in_place_of_a_summary_is_its_summary():
    """A call is no summary, and is not run; a summary cut at its bound is what there is of it."""
    words = Words()
    engine = Scripted(words, *["call look ."] * 3, "(hm call look .", "here .")
    episode = await play(words, engine, Window(40, "summary"), turn=6)
    assert (episode.turns[3].action.summary, episode.turns[3].observations) == ("(hm", ())
    engine = Scripted(words, *["call look ."] * 3, "one two three four five six seven eight .", "here .")
    episode = await play(words, engine, Window(40, "summary"), turn=6)
    assert episode.turns[3].action.summary == "one two three four five six"
    assert episode.turns[3].action.closing == words.stop
    assert episode.success


async def test_a_summary_leaves_at_least_half_of_what_the_prompt_leaves_free():
    """20 - 5 are free: at most 7 tokens are summed up in, whatever a turn may have."""
    words = Words()
    engine = Scripted(words, "call look .", "a b c d e f g h i j .", "here .")
    await play(words, engine, Window(20, "summary"), turn=12)
    assert engine.most[1] == min(7, 20 - len(engine.asked[1].split()))
    assert len(engine.asked[2].split()) < 20


async def test_no_room_for_a_summary_begins_afresh():
    """5 + 3 tokens, and 1 + 4 for the request with nothing of the result: 13 leave none of 13."""
    words = Words()
    engine = Scripted(words, "call look .", "here .")
    episode = await play(words, engine, Window(13, "summary"), turn=3)
    assert engine.asked[1] == "find the book please >"
    assert episode.segments[1].reason == "discard"


@pytest.mark.parametrize("when_full", ["discard-all", "summary"])
async def test_a_window_smaller_than_the_prompt_ends_the_episode_with_the_arithmetic(when_full):
    words = Words()
    episode = await play(words, Scripted(words, "here ."), Window(5, when_full))
    assert str(episode.outcome) == "limit(context)"
    assert "5 tokens + 1 to generate > 5" in episode.outcome.detail
    assert episode.turns == ()


async def test_a_turn_is_bounded_by_what_the_window_leaves():
    words = Words()
    engine = Scripted(words, "here .")
    await play(words, engine, Window(7, "discard-all"))
    assert engine.most == [2]


async def test_the_last_turn_of_a_budget_is_not_spent_on_a_summary():
    words = Words()
    engine = Scripted(words, *["call look ."] * 3, "here .")
    episode = await play(words, engine, Window(40, "summary"), turn=6, turns=4)
    assert episode.success
    assert len(episode.segments) == 1


@pytest.mark.parametrize("when_full", ["discard-all", "summary"])
async def test_a_model_that_never_answers_ends_by_its_budget(when_full):
    words = Words()
    episode = await play(words, Scripted(words, "call read ."), Window(30, when_full), turns=7, tool_calls=99)
    assert str(episode.outcome) == "limit(turns)"


@pytest.mark.parametrize("kept", [3, 4])
@pytest.mark.parametrize("when_full", ["discard-all", "summary"])
async def test_an_interrupted_episode_goes_on_as_if_nothing_had_happened(tmp_path, when_full, kept):
    words = Words()
    lines = [*["call look ."] * 3, "old books .", "call look .", "here ."]
    if when_full == "discard-all":
        lines[3] = "call look ."
    window = Window(40 if when_full == "summary" else 25, when_full)
    turn = 6 if when_full == "summary" else 3
    journal = Journal(tmp_path / "whole")
    whole = await play(words, Scripted(words, *lines), window, turn, journal=journal)
    journal.close()
    (again,) = read_journal(tmp_path / "whole")[0]
    assert again.segments == whole.segments
    assert [turn.action for turn in again.turns] == [turn.action for turn in whole.turns]

    (tmp_path / "torn").mkdir()
    for name in ("journal.jsonl", "snapshots.pack"):
        (tmp_path / "torn" / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    records = (tmp_path / "whole" / "journal.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "torn" / "journal.jsonl").write_text("".join(records[: 1 + kept]))
    journal = Journal(tmp_path / "torn")
    (unfinished,) = read_journal(tmp_path / "torn")[1]
    agent = ModelAgent(Scripted(words, *lines[kept:]), words, Sampling(max_tokens=turn), window=window)
    resumed = await Harness(Library, budget=Budget(), journal=journal).resume(unfinished, TASK, agent)
    journal.close()
    assert resumed.segments == whole.segments
    assert (resumed.success, resumed.usage.tokens) == (whole.success, whole.usage.tokens)


async def test_what_user_and_agent_said_to_each_other_outlives_the_work_in_between():
    class Twice(Library):
        name = "twice"

        def user(self, view):
            return message("user", "and the next") if len(view.user_messages) == 0 else None

    words = Words()
    engine = Scripted(words, "call look .", "here .", *["call look ."] * 2, "there .")
    task = Task("t", "twice", TASK.prompt)
    episode = await play(words, engine, Window(32, "discard-all"), task=task, world=Twice)
    assert engine.asked[4] == "find the book please > here . and the next >"
    assert [one.reason for one in episode.segments] == ["start", "discard"]


async def test_a_summary_is_exported_as_messages_and_read_back():
    words = Words()
    engine = Scripted(words, *["call look ."] * 3, "shelves are old .", "here .")
    episode = await play(words, engine, Window(40, "summary"), turn=6)
    record = json.loads(json.dumps(write_chat(episode, Library().toolset())))
    read, _ = read_chat(record, Origin("f", 1))
    assert [turn.action.summary for turn in read.turns] == [turn.action.summary for turn in episode.turns]
    assert read.answer == "here"


async def test_with_a_real_engine_the_recorded_log_probabilities_are_those_of_the_segments(codec):
    """A random model writes what it likes; every turn is malformed, and the window fills all the same."""
    model, dialect = tiny.tiny_model(), get("hermes-compact", codec)
    engine = LocalEngine(model, sessions=4)
    agent = ModelAgent(engine, dialect, Sampling(max_tokens=24), window=Window(230, "discard-all"))
    try:
        episode = await Harness(Library, budget=Budget(turns=6, format_errors=9)).run(TASK, agent)
    finally:
        engine.close()
    assert len(episode.segments) > 1
    assert max(len(one.ids) for one in episode.segments) <= 231, "a closing token may be added"
    first, second = (turn.action for turn in episode.turns if turn.action.context == episode.turns[0].action.context)
    assert first.generation.ids != second.generation.ids, "the same prompt is drawn from anew"
    for number, segment in enumerate(episode.segments):
        with torch.no_grad():
            logprobs = model(torch.tensor([segment.ids])).logits[0].log_softmax(-1)
        for span, turn in zip(episode.spans, episode.turns, strict=True):
            if span.segment == number:
                made = turn.action.generation
                expected = [logprobs[at - 1, segment.ids[at]].item() for at in range(span.start, span.stop)]
                assert made.ids == segment.ids[span.start : span.stop]
                assert list(made.logprobs) == pytest.approx(expected, abs=1e-4)
