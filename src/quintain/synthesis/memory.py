"""The entity memory: statements by entity in one SQLite file, incremental, deduplicated, of any size.

SQLite comes with Python, lives in one file and keeps on disk what does not fit into memory. Nothing here holds more
than one batch, one document or one excerpt at a time.
"""

from __future__ import annotations

import hashlib
import math
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from quintain.interface.errors import InputError
from quintain.interface.words import fold, language_of
from quintain.synthesis.documents import Document
from quintain.synthesis.statements import Statement, statements

SCHEMA = 1
BATCH = 500
"""Documents written at once: a write waits for the disk."""
MOST = 12
"""Most statements of the entity itself in an excerpt: enough for several questions, short enough for one prompt."""
MOST_OTHERS = 6
"""Most statements of each further entity."""

_TABLES = """
CREATE TABLE IF NOT EXISTS documents (hash BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entities (
    id INTEGER PRIMARY KEY, language TEXT, place INTEGER, name TEXT, folded TEXT,
    UNIQUE (language, folded), UNIQUE (language, place));
CREATE TABLE IF NOT EXISTS statements (
    id INTEGER PRIMARY KEY, hash BLOB UNIQUE, entity INTEGER, language TEXT, text TEXT, source TEXT, time TEXT,
    attribute TEXT, value TEXT);
CREATE INDEX IF NOT EXISTS by_entity ON statements (entity);
CREATE INDEX IF NOT EXISTS by_attribute ON statements (language, attribute, id) WHERE attribute <> '';
CREATE INDEX IF NOT EXISTS by_value ON statements (language, value, attribute) WHERE attribute <> '';
"""
_COLUMNS = "entities.name, text, statements.language, source, time, attribute, value"
_FROM = f"SELECT {_COLUMNS} FROM statements JOIN entities ON entities.id = statements.entity"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What one question is made from: statements about an entity, and about entities it leads to.

    Attributes:
        id: of the memory; the statistical cluster of everything made from it.
        entity: what it is about.
        language: of entity and statements.
        own: statements about the entity.
        linked: statements about entities that a value of `own` names.
        peers: statements about another entity that has an attribute in common.
        telling: values of `own` that no other entity has for that attribute: each alone tells which one is meant.
    """

    id: str
    entity: str
    language: str
    own: tuple[Statement, ...]
    linked: tuple[Statement, ...] = ()
    peers: tuple[Statement, ...] = ()
    telling: frozenset[str] = frozenset()

    @property
    def all(self) -> tuple[Statement, ...]:
        """All statements, its own first."""
        return self.own + self.linked + self.peers


class Memory:
    """One memory on disk. Adding what it already holds changes nothing.

    Args:
        path: of the SQLite file, made if missing.

    Raises:
        InputError: the file is no memory, or of a newer version.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        try:
            self._db = sqlite3.connect(path)
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA:
                raise InputError(f"{path}: memory schema {version} is newer than {SCHEMA}; update quintain")
            self._db.executescript(f"PRAGMA journal_mode = WAL; {_TABLES} PRAGMA user_version = {SCHEMA};")
            self._db.execute("CREATE TEMP TABLE made (id TEXT PRIMARY KEY) WITHOUT ROWID")
        except sqlite3.OperationalError as error:  # a full disk, missing rights, a folder in its place
            raise InputError(f"{path}: {error}; mend that and run the same command again") from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path}: no memory ({error}); remove it to build it again") from None

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def is_new(self, identity: str) -> bool:
        """True the first time this opened memory is asked about a sample's id; the ids are kept on disk."""
        return self._db.execute("INSERT OR IGNORE INTO temp.made VALUES (?)", (identity,)).rowcount == 1

    def add(self, documents: Iterable[Document], counts: Counter[str], held_out: frozenset[str] = frozenset()) -> None:
        """Adds documents; an interrupted batch leaves nothing behind.

        Args:
            documents: read one at a time.
            counts: counts documents by language, statements, and what was left out by reason.
            held_out: folded names of entities that only evaluation may use.
        """
        waiting, added = iter(documents), BATCH
        while added == BATCH:
            added = 0
            with self._db:
                for added, document in enumerate(islice(waiting, BATCH), start=1):  # noqa: B007
                    self._add(document, counts, held_out)

    def _add(self, document: Document, counts: Counter[str], held_out: frozenset[str]) -> None:
        counts[f"documents {language_of(document.text)}"] += 1
        if fold(document.title) in held_out:
            counts["about an entity held out for evaluation"] += 1
            return
        if not self._first_seen(document):
            counts["duplicate documents"] += 1
            return
        found = list(statements(document, counts))
        if not found:
            counts["documents without a statement"] += 1
        for one in found:
            counts["statements" if self._insert(one) else "duplicate statements"] += 1

    def _first_seen(self, document: Document) -> bool:
        key = hashlib.sha256(f"{fold(document.title)}\0{' '.join(document.text.split())}".encode()).digest()
        return self._db.execute("INSERT OR IGNORE INTO documents VALUES (?)", (key,)).rowcount == 1

    def _insert(self, one: Statement) -> bool:
        entity = self._entity(one)
        row = (one.hash, entity, one.language, one.text, one.source, one.time, one.attribute, one.value)
        columns = "hash, entity, language, text, source, time, attribute, value"
        done = self._db.execute(f"INSERT OR IGNORE INTO statements ({columns}) VALUES (?,?,?,?,?,?,?,?)", row)
        return done.rowcount == 1

    def _entity(self, one: Statement) -> int:
        """Its row; an entity with statements in two languages has one in each."""
        folded = fold(one.entity)
        if (known := self._find(folded, one.language)) is not None:
            return known
        place = self.entities(one.language)
        row = (one.language, place, one.entity, folded)
        made = self._db.execute("INSERT INTO entities (language, place, name, folded) VALUES (?,?,?,?)", row)
        return int(made.lastrowid or 0)

    def _find(self, folded: str, language: str) -> int | None:
        query = "SELECT id FROM entities WHERE language = ? AND folded = ?"
        row = self._db.execute(query, (language, folded)).fetchone()
        return None if row is None else int(row[0])

    def entities(self, language: str) -> int:
        """Number of entities in a language."""
        row = self._db.execute("SELECT max(place) FROM entities WHERE language = ?", (language,)).fetchone()
        return 0 if row[0] is None else int(row[0]) + 1

    def summary(self) -> dict[str, int]:
        """Numbers of entities and statements by language, and of entities with a single statement."""
        found: dict[str, int] = {}
        for language, entities in self._db.execute("SELECT language, count(*) FROM entities GROUP BY language"):
            found[f"entities {language}"] = entities
        for language, count in self._db.execute("SELECT language, count(*) FROM statements GROUP BY language"):
            found[f"statements {language}"] = count
        single = "SELECT count(*) FROM (SELECT 1 FROM statements GROUP BY entity HAVING count(*) = 1)"
        found["entities with one statement"] = self._db.execute(single).fetchone()[0]
        return found

    def excerpts(self, language: str, seed: int) -> Iterator[Excerpt]:
        """An excerpt of every entity of a language, in a random order that the seed fixes.

        The order is a walk whose stride shares no factor with the number of entities, so no list has to be shuffled.
        """
        count = self.entities(language)
        rng = random.Random(f"memory {language} {seed}")
        stride = next(
            step for step in iter(lambda: rng.randrange(1, 2 * count + 2), None) if math.gcd(step, count) <= 1
        )
        start = rng.randrange(count or 1)
        for number in range(count):
            yield self._excerpt(language, (start + number * stride) % count, seed)

    def _excerpt(self, language: str, place: int, seed: int) -> Excerpt:
        query = "SELECT id, name FROM entities WHERE language = ? AND place = ?"
        identity, name = self._db.execute(query, (language, place)).fetchone()
        rng = random.Random(f"excerpt {language} {name} {seed}")
        own = self._about(identity, MOST, rng)
        linked_ids = [found for one in own if one.value and (found := self._find(fold(one.value), language))]
        others = [other for other in dict.fromkeys(linked_ids) if other != identity]
        linked = [one for other in others for one in self._about(other, MOST_OTHERS, rng)]
        telling = frozenset(one.value for one in own if one.attribute and self._tells(one))
        return Excerpt(
            f"{language}:{name}", name, language, own, tuple(linked), self._peers(identity, own, rng), telling
        )

    def _tells(self, one: Statement) -> bool:
        query = (
            "SELECT count(DISTINCT entity) FROM statements WHERE language = ? AND value = ? AND attribute = ? "
            "AND attribute <> ''"
        )
        return bool(self._db.execute(query, (one.language, one.value, one.attribute)).fetchone()[0] == 1)

    def _about(self, entity: int, most: int, rng: random.Random) -> tuple[Statement, ...]:
        """At most `most` of an entity's statements, chosen at random, in the order they came."""
        ids = [row[0] for row in self._db.execute("SELECT id FROM statements WHERE entity = ?", (entity,))]
        chosen = sorted(rng.sample(ids, min(most, len(ids))))
        marks = ",".join("?" * len(chosen))
        rows = self._db.execute(f"{_FROM} WHERE statements.id IN ({marks}) ORDER BY statements.id", chosen)
        return tuple(Statement(*row) for row in rows)

    def _peers(self, entity: int, own: tuple[Statement, ...], rng: random.Random) -> tuple[Statement, ...]:
        """Statements of one other entity that has an attribute of this one."""
        shared = [one.attribute for one in own if one.attribute]
        if not shared:
            return ()
        last = self._db.execute("SELECT max(id) FROM statements").fetchone()[0]
        attribute, after = rng.choice(shared), rng.randrange(last)
        query = (
            "SELECT entity FROM statements WHERE language = ? AND attribute = ? AND entity <> ? AND id > ? "
            "AND attribute <> '' ORDER BY id LIMIT 1"
        )
        for start in (after, 0):
            row = self._db.execute(query, (own[0].language, attribute, entity, start)).fetchone()
            if row is not None:
                return self._about(row[0], MOST_OTHERS, rng)
        return ()


def build(
    path: Path,
    documents: Iterable[Document],
    counts: Counter[str],
    held_out: frozenset[str] = frozenset(),
) -> dict[str, int]:
    """Adds documents to the memory at `path`; returns what it then holds."""
    with closing(Memory(path)) as memory:
        memory.add(documents, counts, held_out)
        return memory.summary()
