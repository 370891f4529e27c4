"""The model agent: renders what it sees by a dialect, asks an engine for tokens, parses them back."""

from __future__ import annotations

from dataclasses import replace

from quintain.agents.context import Step, next_step
from quintain.agents.window import Window, summary_of
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
        window: what it does when its context fills; None: the episode ends with `limit(context)`.
    """

    def __init__(
        self,
        engine: Engine,
        dialect: Dialect,
        sampling: Sampling,
        name: str = "model",
        *,
        grammar: bool = False,
        window: Window | None = None,
    ) -> None:
        self.engine = engine
        self.dialect = dialect
        self.sampling = sampling
        self.name = name
        self._grammar = grammar
        self._window = window
        self._sessions: dict[str, str] = {}
        self._grammars: dict[str, str] = {}

    @property
    def version(self) -> int:
        """Version of the engine's weights."""
        return self.engine.version

    async def act(self, view: View) -> Action:
        """One turn: the new context's tokens, a generation, and what it means.

        Raises:
            ContextFull: there is no room for another token.
        """
        step = next_step(self.dialect, view)
        most, summarises = min(self.sampling.max_tokens, view.remaining.tokens), False
        if self._window is not None:
            step, most, summarises = self._window.fit(self.dialect, view, step, most)
        sampling = replace(
            self.sampling,
            max_tokens=most,
            stop=self.dialect.stop,
            seed=view.seed,
            grammar=self._grammar_of(view.toolset) if self._grammar and not summarises else "",
        )
        session = await self._session(view, step)
        made = await self.engine.generate(step.ids, session=session, group=view.task_id, sampling=sampling)
        cut = made.finish == "length"
        action = self.dialect.parse(made.ids, cut=cut, prefix=f"{len(view.turns)}.")
        if summarises:
            action = summary_of(action)
        closing = self.dialect.stop[:1] if cut else ()
        return replace(action, context=step.context, generation=made, closing=closing, discard=step.reason)

    async def release(self, episode: str) -> None:
        """Frees the episode's cache."""
        await self.engine.release(self._sessions.pop(episode, episode))

    async def _session(self, view: View, step: Step) -> str:
        """The engine's session for a segment: each has its own cache, and its own draws for the same tokens."""
        number = sum(bool(turn.action.discard) for turn in view.turns) + bool(step.reason)
        session = f"{view.episode}/{number}" if number else view.episode
        before = self._sessions.get(view.episode, session)
        self._sessions[view.episode] = session
        if before != session:
            await self.engine.release(before)
        return session

    def _grammar_of(self, toolset: Toolset) -> str:
        if toolset.digest not in self._grammars:
            self._grammars[toolset.digest] = turn_grammar(self.dialect.id, toolset)
        return self._grammars[toolset.digest]
