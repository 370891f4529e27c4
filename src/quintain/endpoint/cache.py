"""Replies on disk, keyed by the request: what was paid for once is never asked again."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from quintain.interface.errors import InputError
from quintain.interface.words import encodable


@dataclass(frozen=True, slots=True)
class Stored:
    """A reply as it came.

    Attributes:
        text: what was written.
        problem: why it can't be used; "" if it can.
        prompt_tokens: of all its tries.
        completion_tokens: of all its tries.
    """

    text: str
    problem: str
    prompt_tokens: int
    completion_tokens: int


class ReplyCache:
    """One SQLite file. A reply is safe from SIGKILL once `put` returns.

    Args:
        path: of the file, made if missing.

    Raises:
        InputError: the file is no cache.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            # NORMAL waits for the disk at checkpoints only: 256 replies a second must not wait one by one
            self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, text TEXT, problem TEXT, "
                "prompt_tokens INTEGER, completion_tokens INTEGER) WITHOUT ROWID"
            )
        except sqlite3.OperationalError as error:  # a full disk, missing rights, a folder in its place
            raise InputError(f"{path}: {error}; mend that and run the same command again") from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path}: no cache of replies ({error}); remove it to start a new one") from None

    def get(self, key: str) -> Stored | None:
        """The reply to a request asked before."""
        query = "SELECT text, problem, prompt_tokens, completion_tokens FROM replies WHERE key = ?"
        row = self._db.execute(query, (key,)).fetchone()
        return None if row is None else Stored(*row)

    def put(self, key: str, reply: Stored) -> None:
        """Keeps a reply."""
        row = (key, encodable(reply.text), reply.problem, reply.prompt_tokens, reply.completion_tokens)
        self._db.execute("INSERT OR REPLACE INTO replies VALUES (?,?,?,?,?)", row)

    def close(self) -> None:
        """Closes the file."""
        self._db.close()
