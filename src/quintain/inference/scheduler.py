"""Which rows are computed next: continuous batching over rows that several sessions may share.

A *row* is a token sequence with a slot in the KV pool. It only ever grows. A request looks for the live row that
shares the longest prefix with it; that one rule gives everything: a session's next turn finds its own row and costs
only its new tokens; members of a group find the row whose prompt is the same; other groups find the system prompt
and the tools; two sessions whose tokens are all the same join one row and are computed once until their draws
differ, when all but the most common continuation fork off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from quintain.inference.attention import Work
from quintain.inference.constraint import Constraint
from quintain.inference.kv import KVPool
from quintain.inference.prefix import shared_length
from quintain.inference.sampler import Ask, Draw
from quintain.interface.generation import FinishReason, Generation, Sampling

_TRIES = 4
"""Requests that may look in vain for a slot in one step."""

WORTH = 16
"""A prefix still being computed by another row is waited for if it saves at least this many tokens."""


@dataclass(eq=False, slots=True)
class Job:
    """One request under way.

    Attributes:
        session: whose tokens these are.
        ids: prompt and what has been generated.
        prompt: length of the prompt.
        sampling: how to draw.
        most: upper bound of generated tokens that also fits the context.
        done: called once with the generation, or with the error that ended it.
        constraint: the grammar its tokens must follow.
        order: running number, to serve the oldest first.
        logprobs: of the generated tokens under the model.
        sampled: under the distribution drawn from.
    """

    session: str
    ids: list[int]
    prompt: int
    sampling: Sampling
    most: int
    done: Callable[[Generation | Exception], Any]
    constraint: Constraint | None = None
    order: int = 0
    logprobs: list[float] = field(default_factory=list)
    sampled: list[float] = field(default_factory=list)
    cancelled: bool = False

    def take(self, drawn: Draw) -> FinishReason | None:
        """Appends a token; says why the generation is over, if it is."""
        self.ids.append(drawn.token)
        self.logprobs.append(drawn.logprob)
        self.sampled.append(drawn.sampled_logprob)
        if drawn.token in self.sampling.stop:
            return "stop"
        if self.constraint is not None:
            self.constraint.advance(drawn.token)
        return "length" if len(self.logprobs) >= self.most else None

    def generation(self, finish: FinishReason, version: int) -> Generation:
        """What the caller gets."""
        ids = tuple(self.ids[self.prompt :])
        extras = {"constrained": True} if self.constraint else {}
        return Generation(ids, tuple(self.logprobs), tuple(self.sampled), finish, version, extras)


@dataclass(eq=False, slots=True)
class Row:
    """A token sequence in a slot of the pool.

    Attributes:
        slot: where its keys and values are.
        ids: its tokens; the last one is never computed before its logits are needed.
        computed: how many have keys and values.
        jobs: requests it works for; none when it is idle.
        holders: sessions whose last tokens it holds, with how many.
        used: when it last mattered, to evict the oldest first.
    """

    slot: int
    ids: list[int]
    computed: int = 0
    jobs: list[Job] = field(default_factory=list)
    holders: dict[str, int] = field(default_factory=dict)
    used: int = 0

    @property
    def todo(self) -> int:
        """Tokens still to compute before its next draw."""
        return len(self.ids) - self.computed


class Scheduler:
    """Rows, sessions and the queue. Knows tokens and slots, nothing of tensors.

    Args:
        pool: the KV cache.
        chunk: most prompt tokens in one step, so that long prompts don't starve decoding rows.
    """

    def __init__(self, pool: KVPool, chunk: int) -> None:
        self.pool = pool
        self.chunk = chunk
        self.rows: list[Row] = []
        self.queue: list[Job] = []
        self._clock = 0

    @property
    def busy(self) -> bool:
        """Something is under way or waits."""
        return bool(self.queue) or any(row.jobs for row in self.rows)

    def forget(self) -> None:
        """Drops all rows (new weights). Requires that nothing is under way."""
        self.rows = []

    def release(self, session: str) -> None:
        """The session is over; its row stays as a prefix for others until its slot is needed."""
        for row in self.rows:
            row.holders.pop(session, None)

    def cancel(self, job: Job) -> None:
        """Drops a request wherever it is."""
        job.cancelled = True
        if job in self.queue:
            self.queue.remove(job)
        for row in self.rows:
            if job in row.jobs:
                row.jobs.remove(job)

    def add(self, job: Job) -> None:
        """Queues a request."""
        job.order = self._tick()
        self.queue.append(job)

    def admit(self) -> None:
        """Gives waiting requests rows, oldest first, as far as slots go."""
        held = {name for row in self.rows for name in row.holders}
        waiting, full = [], 0
        for job in self.queue:
            # Once slots have run out, only a session with a row of its own can still be placed: skip the search.
            if full < _TRIES or job.session in held:
                placed = self._place(job)
                full += placed is None
            else:
                placed = None
            if not placed:
                waiting.append(job)
        self.queue = waiting

    def works(self) -> tuple[list[Row], list[Work]]:
        """What to compute next: every decoding row, and prompts up to the chunk size."""
        self._grow()
        active = [row for row in self.rows if row.jobs]
        rows = [row for row in active if row.todo == 1]
        left = self.chunk
        counts = {id(row): 1 for row in rows}
        for row in sorted((row for row in active if row.todo > 1), key=lambda row: row.used):
            count = min(left, row.todo)
            if count:
                rows.append(row)
                counts[id(row)] = count
                left -= count
        return rows, [Work(row.slot, row.computed, counts[id(row)], row.ids) for row in rows]

    def computed(
        self, rows: Sequence[Row], works: Sequence[Work]
    ) -> tuple[list[int], list[tuple[Row, Job]], list[Ask]]:
        """Books computed tokens; returns the works whose logits are wanted, and the draws to make from them."""
        wanted: list[int] = []
        draws: list[tuple[Row, Job]] = []
        asks: list[Ask] = []
        for index, (row, work) in enumerate(zip(rows, works, strict=True)):
            row.computed = work.stop
            if row.todo:
                continue
            for job in row.jobs:
                draws.append((row, job))
                allowed = job.constraint.allowed() if job.constraint else None
                asks.append(Ask(len(wanted), job.sampling, job.session, len(job.ids), allowed))
            wanted.append(index)
        return wanted, draws, asks

    def advance(self, draws: Sequence[tuple[Row, Job]], drawn: Sequence[Draw], version: int) -> None:
        """Appends the drawn tokens, finishes requests, and forks rows whose jobs drew different tokens."""
        by_row: dict[int, list[tuple[Job, Draw]]] = {}
        for (row, job), token in zip(draws, drawn, strict=True):
            by_row.setdefault(id(row), []).append((job, token))
        for row in [row for row in self.rows if id(row) in by_row]:
            self._advance_row(row, by_row[id(row)], version)

    def _advance_row(self, row: Row, pairs: list[tuple[Job, Draw]], version: int) -> None:
        row.jobs = []
        common = Counter(drawn.token for _, drawn in pairs).most_common(1)[0][0]
        length = len(row.ids)
        row.ids.append(common)
        apart: dict[int, list[Job]] = {}
        for job, drawn in pairs:
            finish = job.take(drawn)
            if finish is not None:
                self._finish(row, job, length + (drawn.token == common), finish, version)
            elif drawn.token == common:
                row.jobs.append(job)
            else:
                apart.setdefault(drawn.token, []).append(job)
        row.used = self._tick()
        for jobs in apart.values():
            if not self._place(jobs[0]):
                self.queue[:0] = jobs
                continue
            for job in jobs[1:]:
                self._join(job)

    def _finish(self, row: Row, job: Job, length: int, finish: FinishReason, version: int) -> None:
        self.release(job.session)
        row.holders[job.session] = length
        job.done(job.generation(finish, version))

    def _join(self, job: Job) -> None:
        if not self._place(job):
            self.queue.insert(0, job)

    def _place(self, job: Job) -> bool | None:
        """Gives a job a row; False if it waits for a prefix under way, None if it waits for a slot."""
        row, shared = self._best(job.ids)
        if row is None:
            return self._open(job, None, 0)
        if shared == len(job.ids) == len(row.ids):
            row.jobs.append(job)
            return True
        if not row.jobs and all(held <= shared for name, held in row.holders.items() if name != job.session):
            row.computed = min(shared, row.computed, len(job.ids) - 1)
            row.ids, row.jobs, row.used = list(job.ids), [job], self._tick()
            return True
        if row.jobs and min(shared, len(job.ids) - 1) - row.computed >= WORTH:
            return False
        return self._open(job, row, min(shared, row.computed, len(job.ids) - 1))

    def _best(self, ids: list[int]) -> tuple[Row | None, int]:
        """The row that shares the longest prefix; among equals a whole match, then an idle one."""
        best: Row | None = None
        most = (0, False, False)
        for row in self.rows:
            shared = shared_length(row.ids, ids)
            rank = (shared, shared == len(row.ids), not row.jobs)
            if shared and rank > most:
                best, most = row, rank
        return best, most[0]

    def _open(self, job: Job, source: Row | None, length: int) -> bool | None:
        """A new row for the job, its first `length` tokens copied from `source`; None if there is no slot."""
        slot = self._slot(source)
        if slot is None:
            return None
        if source is not None and source.slot != slot:
            self.pool.copy(source.slot, slot, length)
        self.rows.append(Row(slot, list(job.ids), length, [job], used=self._tick()))
        return True

    def _slot(self, spare: Row | None) -> int | None:
        """The free slot next to `spare`'s (rows of a group are read together), or that of an idle row of long ago.

        A row that a session may come back to is evicted only while less than half of the slots are at work: so
        sessions beyond the slots wait for others to end rather than push each other out at every tool call,
        and sessions that nobody released can't block the engine either.
        """
        free = set(range(self.pool.slots)) - {row.slot for row in self.rows}
        if free:
            return min(free) if spare is None else min(free, key=lambda slot: (abs(slot - spare.slot), slot))
        scarce = 2 * sum(bool(row.jobs) for row in self.rows) < self.pool.slots
        idle = [row for row in self.rows if not row.jobs and (scarce or not row.holders)]
        if not idle:
            return None
        victim = min(idle, key=lambda row: (row is spare, bool(row.holders), row.used))
        self.rows.remove(victim)
        return victim.slot

    def _grow(self) -> None:
        """Widens the slots if a row at work has outgrown them.

        The budget then allows fewer of them: idle rows go first, then the newest rows at work, whose jobs
        queue up again and are recomputed later. The oldest always stays, so the engine always gets on.
        """
        length = max((len(row.ids) for row in self.rows if row.jobs), default=0)
        if length <= self.pool.capacity:
            return
        slots, capacity = self.pool.slots_at(length)
        self.rows.sort(key=lambda row: (not row.jobs, not row.holders, row.jobs[0].order if row.jobs else -row.used))
        for row in self.rows[slots:]:
            self.queue[:0] = row.jobs
        self.rows = sorted(self.rows[:slots], key=lambda row: row.slot)
        self.pool.resize(slots, capacity, [row.slot for row in self.rows])
        for index, row in enumerate(self.rows):
            row.slot = index

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
