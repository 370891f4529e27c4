"""Tasks of the world `code`, and episodes of given calls."""

import itertools

from harness.till import Script
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.messages import Action, Call
from quintain.worlds.code import Code, generate

DONE = Action(answer="Done.")


_numbers = itertools.count()


def do(tool, **arguments):
    return Action(calls=(Call(f"c{next(_numbers)}", tool, arguments),))


def one(template, language="en", seed=3):
    """One evaluation task of a template."""
    return generate("eval", 1, seed, (language,), (template,))[0]


async def play(task, *actions, **options):
    """An episode of the given actions and an answer."""
    harness = Harness(Code, budget=Budget(turns=30, tool_calls=30), **options)
    return await harness.run(task, Script([*actions, DONE]))


def said(episode):
    """The observations' texts."""
    return [seen.content for turn in episode.turns for seen in turn.observations]
