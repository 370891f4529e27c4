"""The world `reasoning_gym`: the generators of reasoning-gym as an outside benchmark."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from quintain.harness.sandbox import Limits, Program
from quintain.harness.sandbox.shared import SharedSandbox
from quintain.harness.world import Solution
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InfraError, InputError
from quintain.interface.messages import Action
from quintain.interface.tasks import Task
from quintain.worlds.maths.world import Maths

EXCLUDED = {
    "codeio": "its answers depend on PYTHONHASHSEED",
    "composite": "it mixes other data sets and has no questions of its own",
    "game_of_life_halting": "its scorer accepts any answer",
    "isomorphic_strings": "its questions depend on PYTHONHASHSEED",
    "knight_swap": "its questions depend on PYTHONHASHSEED",
    "list_functions": "its questions depend on PYTHONHASHSEED",
    "polynomial_multiplication": "its questions depend on PYTHONHASHSEED",
    "ransom_note": "its questions depend on PYTHONHASHSEED",
    "word_ladder": "its answers depend on PYTHONHASHSEED",
}
"""Data sets that are not used, with the reason."""

EVALUATED = frozenset(
    (
        "binary_matrix",
        "countdown",
        "intermediate_integration",
        "n_queens",
        "puzzle24",
        "simple_integration",
        "spiral_matrix",
        "string_insertion",
    )
)
"""Data sets whose scorers evaluate the answer as Python; see `harmless`."""

_MATHEMATICS = "abs acos asin atan ceiling cos cosh exp factorial floor log sin sinh sqrt tan tanh"
_CALLED = re.compile(r"(\w+)\s*\(")
_REACHING = re.compile(r"__|[\\#`]|[^\W\d]\s*\.|[\])}'\"]\s*[.(]")

SIZE = 1000
"""Questions of one data set and seed."""

LIMITS = Limits(seconds=120.0, cpu_seconds=20.0, output_bytes=1 << 20)
"""Of one score; some puzzles take seconds to draw again."""


class ReasoningGym(Maths):
    """Questions of reasoning-gym, answered with or without the tools of `Maths`.

    A task succeeds with the full score of 1.0 by reasoning-gym's own scorer.

    Args:
        datasets: names of data sets; all that are usable by default.

    Raises:
        InputError: reasoning-gym is not installed, or a name is unknown or excluded.
    """

    name: ClassVar[str] = "reasoning_gym"

    def __init__(self, datasets: Sequence[str] = ()) -> None:
        super().__init__()
        chosen(datasets)

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Questions of each data set in turn; `templates` names data sets too.

        Raises:
            InputError: a name is unknown or excluded, `split` is not `eval`, or too many are asked for.
        """
        names = chosen(templates or options.get("datasets", ()))
        if split != "eval":
            raise InputError("reasoning_gym measures only: use split = 'eval'; the world maths has tasks to train on")
        if "en" not in languages:
            raise InputError(f"reasoning_gym languages {list(languages)}: its questions are English")
        if count > SIZE * len(names):
            raise InputError(f"reasoning_gym: {count} tasks were asked for; {len(names)} data sets have {SIZE} each")
        sizes = [count // len(names) + (place < count % len(names)) for place in range(len(names))]
        return [task for name, size in zip(names, sizes, strict=True) for task in _tasks(name, size, seed)]

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        """The data set's own score of the last answer."""
        answer = (episode.answer or "").strip()
        if not answer:
            return Verdict(success=False, reasons=("no answer",))
        if task.setup["dataset"] in EVALUATED and not harmless(answer):
            return Verdict(success=False, reasons=("the answer is a program",))
        found = await _score(task, answer)
        if "error" in found:
            return Verdict(success=False, reasons=(found["error"],), infra=True)
        score = min(1.0, max(0.0, found["score"]))
        reason = found.get("reason") or f"score {score:g} of 1"
        return Verdict(success=score == 1.0, score=score, reasons=() if score == 1.0 else (reason,))

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """None: only the answer counts."""
        return {}

    def solution(self, task: Task) -> Solution:
        """The data set's own answer.

        Raises:
            NotImplementedError: it gives none (a puzzle with many solutions).
        """
        if task.answer is None:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        yield Action(answer=task.answer)


def chosen(names: Sequence[str]) -> list[str]:
    """The named data sets, or all usable ones.

    Raises:
        InputError: one is unknown or excluded, or reasoning-gym is not installed.
    """
    known = _factory().DATASETS
    for name in names:
        if name not in known:
            raise InputError(f"reasoning_gym has no data set {name!r}; there are {', '.join(sorted(known))}")
        if name in EXCLUDED:
            raise InputError(f"reasoning_gym: {name!r} can't be used: {EXCLUDED[name]}")
    return list(names) or [name for name in sorted(known) if name not in EXCLUDED]


def harmless(answer: str) -> bool:
    """True if the text, evaluated as Python, reaches no attribute and calls nothing but functions of mathematics.

    The sandbox keeps a program from the machine, but not from the scorer in whose process it would run: it could
    print the score itself. Without attributes and calls there is no way from a literal to anything else.

    >>> harmless("[1, 2]"), harmless("x**2/2 + sqrt(2) + C"), harmless("().__class__"), harmless("print (1)")
    (True, True, False, False)
    """
    return not _REACHING.search(answer) and set(_CALLED.findall(answer)) <= set(_MATHEMATICS.split())


def _factory() -> Any:
    try:
        from reasoning_gym import factory
    except ModuleNotFoundError as error:
        text = f"the world reasoning_gym needs reasoning-gym: pip install 'quintain[reasoning-gym]' ({error})"
        raise InputError(text) from None
    return factory


def _tasks(name: str, count: int, seed: int) -> list[Task]:
    if not count:
        return []
    data = _factory().create_dataset(name, size=SIZE, seed=seed)
    entries = [data[index] for index in range(count)]
    return [
        Task(
            id=f"reasoning_gym-{name}-{seed}-{index}",
            world=ReasoningGym.name,
            prompt=entry["question"],
            setup={"dataset": name, "seed": seed, "index": index},
            answer=None if entry["answer"] is None else str(entry["answer"]),
            cluster=f"reasoning_gym:{name}",
            template=name,
            tags=("lang:en",),
        )
        for index, entry in enumerate(entries)
    ]


@cache
def _service() -> SharedSandbox:
    source = Path(__file__).with_name("scorer.py").read_text(encoding="utf-8")
    return SharedSandbox(modules={"reasoning_gym_scorer": f"{source}\nwarm_up()\n"})


async def _score(task: Task, answer: str) -> dict[str, Any]:
    request = {**task.setup, "size": SIZE, "question": task.prompt, "answer": answer}
    program = Program(
        source="import reasoning_gym_scorer; reasoning_gym_scorer.main()",
        stdin=json.dumps(request).encode(),
        limits=LIMITS,
    )
    try:
        done = await _service().run(program)
    except InputError as error:  # this machine can't confine programs: nothing an agent could mend
        raise InfraError(str(error)) from error
    if not done.ok or not done.stdout:  # the answer made the scorer end, hang or fill its memory
        return {"score": 0.0, "reason": f"the scorer did not survive the answer ({done.ended})"}
    found: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return found
