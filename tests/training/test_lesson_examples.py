"""Examples of lessons, with a real dialect and tokenizer: what carries loss in each mode of curation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quintain.interface.dialects import get
from quintain.interface.episode import Episode, Outcome, Segment, Span, Usage, Verdict
from quintain.interface.errors import InputError
from quintain.interface.lesson import Lesson
from quintain.interface.messages import Action, Call, Observation, Turn, message
from quintain.interface.tools import Tool, Toolset
from quintain.training.examples import episode_examples, lesson_example
from tiny import tiny_codec

DIALECT = get("hermes-compact", tiny_codec())
TOOLS = Toolset([Tool("search", "Finds pages.", {"type": "object", "properties": {"query": {"type": "string"}}})])


def called(number: int) -> Turn:
    call = Call("c", "search", {"query": f"capital {number}"})
    return Turn(Action(calls=(call,)), (Observation("c", "search", f"page {number}"),))


def episode(*turns: Turn) -> Episode:
    return Episode(
        id="e",
        task_id="t",
        cluster="c",
        world="w",
        agent="a",
        messages=(message("system", "You have tools."), message("user", "What is the capital of France?")),
        turns=turns,
        outcome=Outcome("answered"),
        verdict=Verdict(False),
        usage=Usage(),
    )


EPISODE = episode(called(0), called(1), Turn(Action(answer="Lyon")))


def example_of(one: Episode = EPISODE, **more):
    lesson = Lesson("s", "e", **{"first": 0, "last": 3, "learnt": (0, 1, 2), **more})
    return lesson_example(one, lesson, dialect=DIALECT, toolset=TOOLS)


def text(example, weight: float) -> str:
    return DIALECT.codec.decode(
        [one for one, found in zip(example.ids, example.weights, strict=True) if found == weight]
    )


def test_a_lesson_of_every_turn_is_the_example_of_the_episode():
    (whole,) = episode_examples(EPISODE, window_turns=16, dialect=DIALECT, toolset=TOOLS)
    assert example_of() == whole


def test_a_masked_turn_stays_in_view_and_carries_no_loss():
    example = example_of(learnt=(0, 2))
    assert text(example, 1.0) == '<call>search {"query":"capital 0"}<|im_end|>Lyon<|im_end|>'
    assert "capital 1" in text(example, 0.0)


def test_a_window_begins_with_the_prompt_and_goes_on_at_its_first_turn():
    example = example_of(first=1, last=2, learnt=(1,))
    whole = DIALECT.codec.decode(example.ids)
    assert whole.startswith("<|im_start|>system\nYou have tools.")
    assert whole.endswith(
        'capital of France?<|im_end|>\n<|im_start|>assistant\n<call>search {"query":"capital 1"}<|im_end|>'
    )


def test_a_condition_stands_before_everything_and_changes_nothing_behind_the_prompt():
    plain, conditioned = example_of(), example_of(condition="It fails.")
    assert DIALECT.codec.decode(conditioned.ids).startswith("<|im_start|>system\nIt fails.\n\nYou have tools.")
    assert text(conditioned, 1.0) == text(plain, 1.0)
    tail = len(plain.ids) - plain.weights.index(1.0)
    assert conditioned.ids[-tail:] == plain.ids[-tail:]


def test_a_condition_is_put_before_a_history_that_was_rewritten():
    """As after a summary: the prompt says more than the episode's, and the condition stands where it does there."""
    asked = message("user", "What is the capital of France? Summary: none yet.")
    opening = DIALECT.prompt((EPISODE.messages[0], asked), TOOLS)
    answer = DIALECT.write(EPISODE.turns[2].action)
    segments = (Segment((1, 2, 3)), Segment((*opening, *answer), 0, "summary"))
    spans = (None, None, Span(1, len(opening), len(opening) + len(answer)))
    made = example_of(replace(EPISODE, segments=segments, spans=spans), first=2, condition="It fails.")
    expected = DIALECT.prompt((message("system", "It fails."), EPISODE.messages[0], asked), TOOLS)
    assert list(made.ids) == [*expected, *answer]
    assert text(made, 1.0) == DIALECT.codec.decode(answer)


def test_a_condition_is_put_before_the_tokens_a_model_was_recorded_with():
    (plain,) = episode_examples(EPISODE, window_turns=16, dialect=DIALECT, toolset=TOOLS)
    starts = [
        place
        for place, (before, weight) in enumerate(zip((0.0, *plain.weights), plain.weights, strict=False))
        if weight and not before
    ]
    stops = [plain.ids.index(2, start) + 1 for start in starts]
    spans = tuple(Span(0, start, stop) for start, stop in zip(starts, stops, strict=True))
    recorded = replace(EPISODE, segments=(Segment(plain.ids),), spans=spans)
    assert example_of(recorded, condition="It fails.") == example_of(condition="It fails.")
    with pytest.raises(InputError, match="is not the one dialect 'hermes-compact' writes"):
        lesson_example(
            replace(recorded, messages=recorded.messages[1:]),
            Lesson("s", "e", 0, 3, (0,), condition="It fails."),
            dialect=DIALECT,
            toolset=TOOLS,
        )


def test_a_judgement_follows_a_question_and_carries_loss():
    example = example_of(learnt=(0,), question="Was your answer right?", judgement="My decision is Incorrect.")
    assert text(example, 1.0).endswith("My decision is Incorrect.<|im_end|>")
    assert "Lyon<|im_end|>\n<|im_start|>user\nWas your answer right?" in DIALECT.codec.decode(example.ids)


def test_a_lesson_without_a_turn_to_learn_is_no_example():
    assert example_of(learnt=()) is None
    assert example_of(first=3, last=4) is None
