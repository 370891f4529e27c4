"""People's corrections: a turn rewritten by hand, one JSON line each, checked as strictly as any call.

{"episode": "desk-1#0", "turn": 2, "thought": "The title was wrong.", "calls": [{"tool": "open", "arguments": {...}}]}
{"stage": "own", "episode": "desk-2#0", "turn": 3, "answer": "12 km2"}

Stages that play one pool have episodes of the same ids: there a line needs its `stage`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from quintain.interface.episode import Episode
from quintain.interface.errors import InputError
from quintain.interface.files import numbered_lines
from quintain.interface.messages import Action, Call
from quintain.interface.tools import Toolset
from quintain.synthesis.recovery import Point


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Call(_Strict):
    tool: str
    arguments: dict[str, Any]


class _Correction(_Strict):
    stage: str = ""
    episode: str
    turn: int
    thought: str = ""
    calls: list[_Call] = []
    answer: str | None = None

    @model_validator(mode="after")
    def _one_deed(self) -> _Correction:
        if bool(self.calls) == (self.answer is not None):
            raise ValueError("a correction has either `calls` or an `answer`")
        return self


def read_corrections(
    path: Path, episodes: Iterable[Episode], toolset: Callable[[str], Toolset], stage: str = ""
) -> Iterator[Point]:
    """Corrections of these episodes as points to go on from; those of other episodes are passed over.

    Args:
        path: JSON Lines.
        episodes: what may be corrected.
        toolset: that every call must fit.
        stage: of the episodes; lines that name another one are passed over.

    Raises:
        InputError: the file is missing, or a line is wrong; the message names it.
    """
    if not path.is_file():
        raise InputError(f"corrections not found: {path}")
    known = {episode.id: episode for episode in episodes}
    for number, line in numbered_lines(path):
        where = f"{path}:{number}"
        one = read_correction(line, where)
        if one.episode not in known or one.stage not in ("", stage):
            continue
        episode = known[one.episode]
        if not 0 <= one.turn < len(episode.turns):
            raise InputError(
                f"{where}: episode {one.episode!r} has turns 0 to {len(episode.turns) - 1}, not {one.turn}"
            )
        yield Point(episode, one.turn, "person", _action(one, toolset(episode.world), where), label=f"p{number}")


def homeless_corrections(path: Path, homes: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines whose episode no stage has, each as `FILE:LINE: EPISODE`.

    Args:
        path: JSON Lines.
        homes: the stages that have an episode, by its id.

    Raises:
        InputError: a line is wrong, or names no stage where several have its episode.
    """
    found = []
    for number, line in numbered_lines(path):
        where = f"{path}:{number}"
        one = read_correction(line, where)
        stages = [name for name in homes.get(one.episode, ()) if one.stage in ("", name)]
        if len(stages) > 1:
            both = ", ".join(stages)
            raise InputError(f"{where}: stages {both} have an episode {one.episode!r}; name one of them as `stage`")
        if not stages:
            found.append(f"{where}: {one.episode}")
    return found


def checked_correction(line: bytes, stage: str, episode: Episode, toolset: Toolset) -> dict[str, Any]:
    """A correction of one episode of a stage that may be kept in a file for `read_corrections`, as its record.

    Raises:
        InputError: it is of another episode or turn, or does not fit the tools.
    """
    one = read_correction(line, "correction")
    if one.episode != episode.id or not 0 <= one.turn < len(episode.turns):
        raise InputError(f"correction: episode {episode.id!r} has turns 0 to {len(episode.turns) - 1}, not {one.turn}")
    _action(one, toolset, "correction")
    return {"stage": stage, **one.model_dump(exclude_defaults=True, exclude={"stage"})}


def read_correction(line: bytes, where: str) -> _Correction:
    """Reads one line.

    Raises:
        InputError: it is wrong; the message names `where`.
    """
    try:
        return _Correction.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}: {place + ': ' if place else ''}{message[0].lower()}{message[1:]}") from None


def _action(one: _Correction, toolset: Toolset, where: str) -> Action:
    for call in one.calls:
        try:
            json.dumps(call.arguments, allow_nan=False)
        except ValueError as error:  # NaN, or a number too large
            raise InputError(f"{where}: arguments of {call.tool} are no JSON: {error}") from None
        wrong = toolset.check(call.tool, call.arguments)
        if wrong is not None:
            raise InputError(f"{where}: {wrong.message}")
    calls = tuple(Call(str(number), call.tool, call.arguments) for number, call in enumerate(one.calls))
    return Action(thought=one.thought, calls=calls, answer=one.answer)
