"""The in-process token engine: the trainer's own weights, continuous batching, KV kept across turns."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from quintain.inference.constraint import Constraint, Grammars
from quintain.inference.decoder import Decoder
from quintain.inference.kv import KVPool
from quintain.inference.room import room
from quintain.inference.sampler import draw
from quintain.inference.scheduler import Job, Scheduler
from quintain.inference.weights import Weights, take
from quintain.interface.errors import InfraError, InputError
from quintain.interface.generation import Generation, Load, Sampling
from quintain.machine import tune
from quintain.openmp import end_team

_Command = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Stats:
    """What the engine has done so far.

    Attributes:
        steps: forward passes.
        computed: tokens that went through the model.
        generated: tokens handed to callers.
        prompted: prompt tokens that callers sent; what of them was never computed came from shared or kept KV.
    """

    steps: int = 0
    computed: int = 0
    generated: int = 0
    prompted: int = 0


class LocalEngine:
    """Generates tokens with a transformers model in this process, many sessions at once.

    Draws depend on `(sampling.seed, session, position)` alone. The logits a draw is made from can still
    differ in the last bits with the batch's make-up, as floating-point sums do, so a token whose draw falls within
    that distance of a boundary may come out differently when other sessions run beside it.

    Args:
        model: a transformers causal LM; its parameters are used in place, never copied.
        kv_tokens: most tokens held in the KV cache; sessions wait when it is full.
        sessions: most sequences computed or kept at once.
        chunk: most prompt tokens in one step.
        grammars: compiles the grammars that callers ask for.

    Attributes:
        mismatch: none, as engine and trainer are one.

    Raises:
        InputError: the model's attention can't run in this engine.
    """

    mismatch = 0.0

    def __init__(
        self,
        model: Any,
        *,
        kv_tokens: int = 32_768,
        sessions: int = 64,
        chunk: int = 256,
        grammars: Grammars | None = None,
    ) -> None:
        tune()
        if min(kv_tokens, sessions, chunk) < 1:
            raise InputError(
                f"engine: kv_tokens {kv_tokens}, sessions {sessions} and chunk {chunk} must all be at least 1"
            )
        self._model = model
        self._decoder = Decoder(model)
        self._scheduler = Scheduler(KVPool(sessions, kv_tokens), chunk)
        context = int(getattr(model.config.get_text_config(), "max_position_embeddings", 0) or kv_tokens)
        self._limits = {"the model's context": context, "the KV budget": kv_tokens}
        self._remedy = f"shorten the prompt, or give the engine more kv_tokens (now {kv_tokens})"
        self._grammars = grammars
        self._version = 0
        self._stats = Stats()
        self._inbox: queue.SimpleQueue[_Command] = queue.SimpleQueue()
        self._held: list[Job] = []
        self._updates: list[_Command] = []
        self._closed = False
        self._busy = 0.0
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="quintain-engine", daemon=True)
        self._thread.start()

    @property
    def version(self) -> int:
        """Version of the weights now in use."""
        return self._version

    @property
    def stats(self) -> Stats:
        """What the engine has done so far."""
        return self._stats

    def load(self) -> Load:
        """How much it has to do."""
        scheduler = self._scheduler
        held = sum(len(row.ids) for row in list(scheduler.rows) if row.jobs)
        queued = len(self._held) + len(scheduler.queue)
        return Load(queued, held / scheduler.pool.budget, self._busy, time.monotonic() - self._began)

    async def generate(self, ids: Sequence[int], *, session: str, group: str, sampling: Sampling) -> Generation:
        """Continues `ids`; cancelling the caller frees its place.

        Args:
            ids: the whole sequence so far.
            session: calls of one session extend each other, and cost only what is new.
            group: a hint this engine does not need: it finds shared prefixes by comparing tokens.
            sampling: how to draw; generation also ends, as `length`, where the context or the cache does.

        Raises:
            InputError: no ids, or a grammar where the engine was given no `grammars`.
            ContextFull: they leave no room for a token in the model's context or in the KV budget.
            InfraError: the engine is closed, or its computation failed.
        """
        most = room(len(ids), sampling, self._limits, self._remedy)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Generation] = loop.create_future()

        def done(result: Generation | Exception) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: whoever asked is gone
                loop.call_soon_threadsafe(_settle, future, result)

        end_team()  # the caller waits now: its helper threads must not slow those of the worker
        job = Job(session, list(ids), len(ids), sampling, most, done, self._constraint(sampling.grammar))
        self._send(lambda: self._accept(job))
        try:
            return await future
        except asyncio.CancelledError:
            self._inbox.put(lambda: self._scheduler.cancel(job))
            raise

    async def release(self, session: str) -> None:
        """Forgets a session."""
        self._send(lambda: self._scheduler.release(session))

    async def sleep(self) -> None:
        """Nothing to free: the weights are the trainer's own."""

    async def update(self, weights: Weights = None, *, version: int | None = None) -> int:
        """Takes new weights once no generation is under way; returns the new version.

        Requests that come meanwhile wait for the new weights. KV of the old ones is dropped and recomputed.

        Args:
            weights: a state dict to load, or a function that changes the parameters in place, or None if they
                are changed already.
            version: number of the new weights; by default one more than that of the last.

        Raises:
            InputError: the state dict is of another model.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()

        def apply() -> None:
            result: int | Exception
            # What goes wrong in this thread must reach the caller, who waits in another.
            try:
                result = self._take(weights, version)
            except Exception as error:
                result = error
            loop.call_soon_threadsafe(_settle, future, result)

        self._send(lambda: self._updates.append(apply))
        return await future

    def _take(self, weights: Weights, version: int | None) -> int:
        take(self._model, weights)
        self._scheduler.forget()
        self._version = self._version + 1 if version is None else version
        return self._version

    def close(self) -> None:
        """Ends the thread; whatever is under way fails."""
        if not self._closed:
            self._closed = True
            self._inbox.put(lambda: None)
            self._thread.join()

    def _constraint(self, grammar: str) -> Constraint | None:
        if not grammar:
            return None
        if self._grammars is None:
            raise InputError("generate: a grammar is asked for, but the engine was given no grammars")
        return self._grammars.begin(grammar)

    def _send(self, command: _Command) -> None:
        if self._closed:
            raise InfraError("the engine is closed")
        self._inbox.put(command)

    def _accept(self, job: Job) -> None:
        """Queues a job, or holds it back until the weights that wait have been taken."""
        if job.cancelled:
            return
        self._stats = replace(self._stats, prompted=self._stats.prompted + len(job.ids))
        if self._updates:
            self._held.append(job)
        else:
            self._scheduler.add(job)

    def _run(self) -> None:
        """The worker thread: commands, then one step, for ever."""
        while not self._closed:
            self._commands()
            if self._scheduler.busy:
                began = time.monotonic()
                self._guarded_step()
                self._busy += time.monotonic() - began
        while not self._inbox.empty():
            self._inbox.get()()
        self._fail(InfraError("the engine was closed while generations were under way"))

    def _commands(self) -> None:
        """Runs what has come in; sleeps if there is nothing else to do."""
        if not self._scheduler.busy and not self._updates:
            end_team()
            self._inbox.get()()
        while not self._inbox.empty():
            self._inbox.get()()
        if self._updates and not self._scheduler.busy:
            updates, self._updates = self._updates, []
            held, self._held = self._held, []
            for apply in updates:
                apply()
            for job in held:
                self._accept(job)

    def _guarded_step(self) -> None:
        # A failed step must reach the callers, who wait in another thread, and must not end this one.
        try:
            self._step()
        except Exception as error:
            self._fail(InfraError(f"the engine's step failed: {type(error).__name__}: {error}"))

    @torch.inference_mode()
    def _step(self) -> None:
        scheduler = self._scheduler
        scheduler.admit()
        rows, works = scheduler.works()
        logits = self._decoder.forward(scheduler.pool, works)
        wanted, draws, asks = scheduler.computed(rows, works)
        drawn = draw(logits if len(wanted) == len(works) else logits[wanted], asks) if asks else []
        computed = sum(work.count for work in works)
        self._stats = replace(
            self._stats,
            steps=self._stats.steps + 1,
            computed=self._stats.computed + computed,
            generated=self._stats.generated + len(drawn),
        )
        scheduler.advance(draws, drawn, self._version)

    def _fail(self, error: Exception) -> None:
        """Ends everything under way with an error."""
        jobs = self._held + self._scheduler.queue + [job for row in self._scheduler.rows for job in row.jobs]
        self._held, self._scheduler.queue = [], []
        self._scheduler.forget()
        for job in jobs:
            job.done(error)


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
