"""A teacher that goes on in tokens: one record, from the model's first token to the teacher's last."""

from __future__ import annotations

from harness.till import ANSWER, Script, Till, do, task
from quintain import Harness
from quintain.agents.written import WrittenAgent
from quintain.interface.dialects import get
from quintain.interface.errors import FormatError
from quintain.interface.generation import Generation
from quintain.interface.messages import Action
from quintain.training.examples import episode_examples


async def test_the_token_record_goes_on_where_the_model_stopped(codec):
    dialect = get("hermes-compact", codec)
    prompt: list[int] = []

    def malformed(view):
        prompt.extend(dialect.prompt(view.messages, view.toolset))
        ids = (*codec.encode("<call>{"), dialect.stop[0])
        made = Generation(ids, (-1.0,) * len(ids), (-1.0,) * len(ids), "stop")
        return Action(error=FormatError("json", "no JSON"), text="<call>{", context=tuple(prompt), generation=made)

    teacher = WrittenAgent(Script([do("price", item="tea")] * 2 + [ANSWER]), dialect)

    class Both(Script):
        async def act(self, view):
            return malformed(view) if not view.turns else await teacher.act(view)

    episode = await Harness(Till).run(task(), Both([]))
    assert episode.success
    (segment,) = episode.segments
    expected = [*prompt, *episode.turns[0].action.generation.ids]
    for before, turn in zip(episode.turns, episode.turns[1:], strict=False):
        expected += [*dialect.observe(before.observations), *dialect.write(turn.action)]
    assert list(segment.ids) == expected
    (example,) = episode_examples(episode, window_turns=8)
    learnt = [index for index, weight in zip(example.ids, example.weights, strict=True) if weight]
    assert learnt == [index for turn in episode.turns[1:] for index in dialect.write(turn.action)]


async def test_an_episode_without_tokens_gets_a_whole_record_too(codec):
    dialect = get("lines", codec)
    episode = await Harness(Till).run(task(), WrittenAgent(Script([do("price", item="tea"), ANSWER]), dialect))
    plain = await Harness(Till).run(task(), Script([do("price", item="tea"), ANSWER]))
    (written,) = episode_examples(episode, window_turns=8)
    (rendered,) = episode_examples(plain, window_turns=8, dialect=dialect, toolset=Till().toolset())
    assert (written.ids, written.weights) == (rendered.ids, rendered.weights)
    assert episode.turns[0].action.generation.logprobs[0] == 0.0
