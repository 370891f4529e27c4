"""What people say of episodes: kept, flagged, corrected. Two files of JSON Lines in the run's folder.

`review.jsonl` holds one judgement a line, the last of an episode counts. `corrections.jsonl` holds turns rewritten by
hand, as `corrections` of a recover stage reads them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from quintain.interface.errors import InputError
from quintain.interface.files import json_lines

REVIEW = "review.jsonl"
CORRECTIONS = "corrections.jsonl"


class Judgement(BaseModel):
    """One line of `review.jsonl`.

    Attributes:
        stage: of the episode.
        episode: its id.
        flag: `keep` (read, and good to learn from), `flag` (something is wrong) or "" (taken back).
        remark: why.
        at: when, in UTC.
    """

    model_config = ConfigDict(extra="forbid")

    stage: str
    episode: str
    flag: Literal["keep", "flag", ""]
    remark: str = ""
    at: str = ""


def read_review(run: Path) -> dict[tuple[str, str], Judgement]:
    """The last judgement of every episode, by stage and id.

    Raises:
        InputError: a line is wrong; the message names it.
    """
    path = run / REVIEW
    found: dict[tuple[str, str], Judgement] = {}
    for number, record in json_lines(path) if path.is_file() else ():
        try:
            one = Judgement.model_validate(record)
        except ValidationError as error:
            raise InputError(f"{path}:{number}: {error.errors()[0]['msg']}; mend or remove the line") from None
        found[one.stage, one.episode] = one
    return found


def said_of(folder: Path) -> dict[str, Judgement]:
    """What people say of the episodes of one stage, by id; judgements that were taken back are left out.

    Args:
        folder: of the stage; its run keeps the file beside it.

    Raises:
        InputError: a line of the file is wrong; the message names it.
    """
    folder = folder.resolve()
    found = read_review(folder.parent)
    return {episode: one for (stage, episode), one in found.items() if stage == folder.name and one.flag}


def add_judgement(run: Path, one: Judgement) -> Judgement:
    """Appends a judgement, with the time."""
    dated = one.model_copy(update={"at": datetime.now(UTC).isoformat(timespec="seconds")})
    _append(run / REVIEW, dated.model_dump())
    return dated


def add_correction(run: Path, record: dict[str, Any]) -> None:
    """Appends a correction that was checked."""
    _append(run / CORRECTIONS, record)


def _append(path: Path, record: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
