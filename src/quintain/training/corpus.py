"""The corpus of a continual pre-training stage: documents by source, and those too long for its context."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from quintain.training.checkpoint import atomic_folder
from quintain.training.documents import Document
from quintain.training.store import Store, StoreWriter

GENERAL = "general"
"""The one source whose documents may be cut. All others are kept whole: half a decision teaches a wrong one."""

REPORT = "corpus.json"
_FITTING, _TOO_LONG = "sources", "too_long"


class Corpus:
    """Documents on disk, as `build_corpus` wrote them.

    Attributes:
        sources: what this stage learns from, by source.
        too_long: what does not fit its context and waits for a later stage, by source.
        report: documents and tokens by source, and what was cut or left to a later stage.
    """

    def __init__(self, folder: Path) -> None:
        self.report: dict[str, Any] = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        self.sources = {name: Store(folder / _FITTING / name) for name in self.report[_FITTING]}
        self.too_long = {name: Store(folder / _TOO_LONG / name) for name in self.report[_TOO_LONG]}

    def waiting(self) -> Iterator[Document]:
        """The documents that were too long, for a stage with a longer context."""
        for name, store in self.too_long.items():
            for number in range(len(store)):
                yield Document(name, *store.read(number))  # type: ignore[arg-type]


def build_corpus(
    documents: Iterable[Document], context: int, folder: Path, skipped: Counter[str] | None = None
) -> Corpus:
    """Writes documents by source, one at a time; an interrupted build leaves nothing behind.

    A document longer than `context` is cut into pieces if it is general text, and otherwise kept whole among
    those too long. So nothing synthetic is ever truncated. A document that came before, token for token, is left out.

    Args:
        documents: of all sources, in any order.
        context: longest document of this stage, in tokens.
        folder: where the corpus goes.
        skipped: what is left out while `documents` is read, by reason; goes into the report.
    """
    with atomic_folder(folder) as scratch, ExitStack() as files:
        shelves = _Shelves(scratch, files)
        seen = files.enter_context(closing(_Seen()))
        for document in documents:
            if seen.first_time(document):
                shelves.add(document, context)
            else:
                shelves.duplicates[document.source] += 1
        (scratch / REPORT).write_text(json.dumps({**shelves.report(), "skipped": skipped or {}}), encoding="utf-8")
    return Corpus(folder)


class _Seen:
    """Which documents came before, token for token; kept on disk, so that memory stays flat."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None)  # a file without a name, gone when closed
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE seen (hash BLOB PRIMARY KEY) WITHOUT ROWID")

    def first_time(self, document: Document) -> bool:
        """False for a document whose source and tokens were all there before."""
        data = np.asarray(document.ids, dtype=np.int32).tobytes() + document.source.encode()
        key = hashlib.blake2b(data, digest_size=16).digest()
        return self._db.execute("INSERT OR IGNORE INTO seen VALUES (?)", (key,)).rowcount == 1

    def close(self) -> None:
        """Forgets everything."""
        self._db.close()


class _Shelves:
    """One writer for each kind and source, opened when first needed."""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        self._folder = folder
        self._files = files
        self._writers: dict[tuple[str, str], StoreWriter] = {}
        self._documents: Counter[tuple[str, str]] = Counter()
        self._tokens: Counter[tuple[str, str]] = Counter()
        self._cut: Counter[str] = Counter()
        self._given: Counter[str] = Counter()
        self.duplicates: Counter[str] = Counter()

    def add(self, document: Document, context: int) -> None:
        self._given[document.source] += len(document.ids)
        if len(document.ids) <= context:
            self._put(_FITTING, document)
        elif document.source == GENERAL:
            self._cut_up(document, context)
        else:
            self._put(_TOO_LONG, document)

    def _put(self, kind: str, document: Document) -> None:
        key = (kind, document.source)
        if key not in self._writers:
            self._writers[key] = self._files.enter_context(StoreWriter(self._folder / kind / document.source))
        self._writers[key].add(document.ids, document.weights)
        self._documents[key] += 1
        self._tokens[key] += len(document.ids)

    def _cut_up(self, document: Document, context: int) -> None:
        self._cut[document.source] += 1
        for start in range(0, len(document.ids), context):
            piece = slice(start, start + context)
            self._put(_FITTING, Document(document.source, document.ids[piece], document.weights[piece]))

    def report(self) -> dict[str, Any]:
        """Counts by source: what fits, what is too long, what was cut or came twice, tokens given that are nowhere."""
        by_kind = {
            kind: {
                source: {"documents": self._documents[kind, source], "tokens": self._tokens[kind, source]}
                for one, source in self._writers
                if one == kind
            }
            for kind in (_FITTING, _TOO_LONG)
        }
        kept: Counter[str] = Counter()
        for (_, source), tokens in self._tokens.items():
            kept[source] += tokens
        return {
            **by_kind,
            "cut": dict(self._cut),
            "duplicates": dict(self.duplicates),
            "truncated_tokens": {one: self._given[one] - kept[one] for one in kept},
        }
