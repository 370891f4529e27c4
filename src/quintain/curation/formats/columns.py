"""What stands beside the messages of an exchanged episode: whose it is and how it went, one flat column each."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, get_args

from quintain.interface.episode import Episode, Outcome, Verdict
from quintain.interface.errors import LimitKind
from quintain.interface.words import encodable

_LIMIT = re.compile(r"limit\((\w+)\)")
_KINDS = ("answered", "declined", "agent_error", "infra_error")


_MEDIA = ("image", "images", "audio", "audios", "video", "videos")
"""Keys beside a text that hold what is none."""


class Rejected(Exception):
    """A record can't be exchanged faithfully.

    Args:
        reason: one word, for counts.
        detail: one line for a person.
    """

    def __init__(self, reason: str, detail: str) -> None:
        detail = " ".join(encodable(detail).split())  # it quotes what may be no text, or several lines
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def check_media(one: dict[str, Any], where: str) -> None:
    """Refuses images and the like beside a text.

    Raises:
        Rejected: there are some.
    """
    for key in (key for key in _MEDIA if one.get(key)):
        raise Rejected("image" if key.startswith("image") else "content", f"{key!r} {where}; only text is accepted")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a record came from, for what it does not say itself.

    Attributes:
        name: of its file, without the ending; the world of episodes that name none.
        number: of its line or item, from 1.
        success: the verdict of episodes that have none; None leaves them unscored.
        copy: number of files of that name before it, which tells the ids of episodes without one apart.
    """

    name: str
    number: int
    success: bool | None = None
    copy: int = 0


def columns(episode: Episode) -> dict[str, Any]:
    """The columns of an episode."""
    return {
        "id": episode.id,
        "task": episode.task_id,
        "cluster": episode.cluster,
        "world": episode.world,
        "template": episode.template,
        "tags": list(episode.tags),
        "agent": episode.agent,
        "outcome": str(episode.outcome),
        "success": episode.success if episode.scored else None,
        "score": episode.verdict.score if episode.verdict else None,
    }


def identity(record: dict[str, Any], origin: Origin, prompt: str) -> dict[str, Any]:
    """Id, task, cluster and the like; an episode that names no task belongs to all others with its prompt.

    Raises:
        Rejected: a column has the wrong type.
    """
    same_prompt = "prompt-" + hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:16]
    task = _text(record, "task") or same_prompt
    tags = record.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise Rejected("column", f"'tags' must be a list of texts, found {tags!r}")
    return {
        "id": _text(record, "id") or f"{origin.name}{f'~{origin.copy}' if origin.copy else ''}-{origin.number}",
        "task_id": task,
        "cluster": _text(record, "cluster") or task,
        "world": _text(record, "world") or origin.name,
        "template": _text(record, "template"),
        "tags": tuple(tags),
        "agent": _text(record, "agent") or "imported",
    }


def verdict_of(record: dict[str, Any], origin: Origin) -> Verdict | None:
    """The verdict a record states, or the one its origin assumes; an infra error has none.

    Raises:
        Rejected: a column has the wrong type, or a value it can't have.
    """
    success = record.get("success")
    if success is None and record.get("score") is not None:
        raise Rejected("column", f"'score' is {record['score']!r} without 'success', which a score does not say")
    if record.get("outcome") == "infra_error":
        if success is not None:
            raise Rejected("column", f"'success' is {success!r}, and an infra error has no verdict")
        return None
    if success is None:
        return None if origin.success is None else Verdict(origin.success)
    score = record.get("score")
    if not isinstance(success, bool) or isinstance(score, bool) or not isinstance(score, int | float | None):
        raise Rejected("column", f"'success' must be true or false and 'score' a number, found {success!r}, {score!r}")
    if score is not None and not 0 <= score <= 1:  # also what is no number
        raise Rejected("column", f"'score' must be from 0 to 1, found {score!r}")
    return Verdict(success, score)


def outcome_of(record: dict[str, Any], answered: bool, declines: bool) -> Outcome:
    """The outcome a record states, or the one its last turn shows."""
    stated = _text(record, "outcome")
    limit = _LIMIT.fullmatch(stated)
    if limit and limit[1] in get_args(LimitKind):
        return Outcome("limit", limit[1])  # type: ignore[arg-type]
    if stated and stated not in _KINDS:
        limits = "|".join(get_args(LimitKind))
        raise Rejected("column", f"'outcome' must be one of {', '.join(_KINDS)}, limit({limits}), found {stated!r}")
    if stated:
        return Outcome(stated)  # type: ignore[arg-type]
    if not answered:
        return Outcome("limit", "turns", "the record ends without an answer")
    return Outcome("declined" if declines else "answered")


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise Rejected("column", f"{key!r} must be text, found {value!r}")
    return "" if value is None else str(value)
