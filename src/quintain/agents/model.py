"""The model agent: renders what it sees by a dialect, asks an engine for tokens, parses them back."""

from __future__ import annotations

from dataclasses import replace

from quintain.inference.grammar import turn_grammar
from quintain.interface.dialects.base import Dialect
from quintain.interface.generation import Engine, Sampling
from quintain.interface.messages import Action
from quintain.interface.tools import Toolset
from quintain.interface.view import View


class ModelAgent:
    """A policy behind an engine. Stateless: everything it needs of an episode is in the view.

    Args:
        engine: makes the tokens.
        dialect: how messages look as tokens.
        sampling: how tokens are drawn; `max_tokens` bounds one turn, `stop` and `seed` are set here.
        name: name for records.
        grammar: turns can only be what the dialect parses, and calls what the tools take.
    """

    def __init__(
        self, engine: Engine, dialect: Dialect, sampling: Sampling, name: str = "model", *, grammar: bool = False
    ) -> None:
        self.engine = engine
        self.dialect = dialect
        self.sampling = sampling
        self.name = name
        self._grammar = grammar
        self._grammars: dict[str, str] = {}

    @property
    def version(self) -> int:
        """Version of the engine's weights."""
        return self.engine.version

    async def act(self, view: View) -> Action:
        """One turn: the new context's tokens, a generation, and what it means."""
        context = context_ids(self.dialect, view)
        sampling = replace(
            self.sampling,
            max_tokens=min(self.sampling.max_tokens, view.remaining.tokens),
            stop=self.dialect.stop,
            seed=view.seed,
            grammar=self._grammar_of(view.toolset) if self._grammar else "",
        )
        made = await self.engine.generate(
            [*view.ids, *context], session=view.episode, group=view.task_id, sampling=sampling
        )
        cut = made.finish == "length"
        action = self.dialect.parse(made.ids, cut=cut, prefix=f"{len(view.turns)}.")
        closing = self.dialect.stop[:1] if cut else ()
        return replace(action, context=tuple(context), generation=made, closing=closing)

    async def release(self, episode: str) -> None:
        """Frees the episode's cache."""
        await self.engine.release(episode)

    def _grammar_of(self, toolset: Toolset) -> str:
        if toolset.digest not in self._grammars:
            self._grammars[toolset.digest] = turn_grammar(self.dialect.id, toolset)
        return self._grammars[toolset.digest]


def context_ids(dialect: Dialect, view: View) -> list[int]:
    """Ids to add before the next generation: the prompt, the last observations, or the user's words."""
    if not view.turns:
        return dialect.prompt(view.messages, view.toolset)
    if view.ids:
        return _reply(dialect, view, len(view.turns))
    ids = dialect.prompt(view.messages, view.toolset)  # a history without tokens, such as an oracle's
    for index, turn in enumerate(view.turns, start=1):
        ids += dialect.write(turn.action) + _reply(dialect, view, index)
    return ids


def _reply(dialect: Dialect, view: View, turns: int) -> list[int]:
    """What follows the agent's turn number `turns`."""
    if turns in view.user_messages:
        return dialect.say(view.user_messages[turns])
    return dialect.observe(view.turns[turns - 1].observations)
