"""Tasks of published benchmarks, from files that the user has. They are for measuring only.

Each benchmark is a line of `BENCHMARKS`: which columns hold what, and how its authors hide it from crawlers. Read are
CSV, TSV, JSON, JSON Lines, Excel and Parquet, by the file's ending; columns are found whatever their case.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Literal

from quintain.interface.errors import InputError
from quintain.interface.files import json_lines
from quintain.interface.tasks import Task
from quintain.interface.words import language_of

csv.field_size_limit(10_000_000)  # questions with whole documents in them


@dataclass(frozen=True, slots=True)
class Benchmark:
    """How a benchmark's file is laid out.

    Attributes:
        question: columns that may hold the question, the first there is counts.
        answer: columns that may hold the gold answer; none for reports without one.
        cluster: columns of what tasks have in common.
        level: a column whose value becomes the template.
        cipher: `sha256` (XOR with the digest of the canary), `plain` (XOR with the canary itself), or none.
        hidden: columns that are enciphered.
    """

    question: tuple[str, ...]
    answer: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    level: str = ""
    cipher: Literal["", "sha256", "plain"] = ""
    hidden: tuple[str, ...] = ()


BENCHMARKS: dict[str, Benchmark] = {
    "browsecomp": Benchmark(("problem",), ("answer",), (), "problem_topic", "sha256", ("problem", "answer")),
    "browsecomp_zh": Benchmark(("question",), ("answer",), (), "topic", "sha256", ("topic", "question", "answer")),
    "gaia": Benchmark(("question",), ("final answer",), (), "level"),
    "hle": Benchmark(("question",), ("answer",), (), "category"),
    "xbench_deepsearch": Benchmark(("prompt",), ("answer",), (), "", "plain", ("prompt", "answer")),
    "webwalkerqa": Benchmark(("question",), ("answer",), ("root_url",), "type"),
    "frames": Benchmark(("prompt",), ("answer",), (), "reasoning_types"),
    "seal_0": Benchmark(("question",), ("answer", "answers"), (), "topic"),
    "academicbrowse": Benchmark(("question",), ("answer",), (), "domain"),
    "deepresearch_bench": Benchmark(("prompt",), (), (), "topic"),
}


def load_benchmark(name: str, path: Path) -> list[Task]:
    """The text-only tasks of a benchmark's file, in its order.

    Questions that come with an image are left out: messages hold text only.

    Raises:
        InputError: the benchmark is unknown, or the file is missing, unreadable or laid out otherwise.
    """
    if name not in BENCHMARKS:
        raise InputError(f"research: benchmark {name!r}; known are {', '.join(BENCHMARKS)}")
    if not path.is_file():
        raise InputError(f"research: file of {name} not found: {path}")
    kind = BENCHMARKS[name]
    tasks = []
    for number, row in enumerate(_rows(path), start=1):
        record = {str(key).strip().lower(): value for key, value in row.items()}
        if record.get("image"):
            continue
        tasks.append(_task(name, kind, _clear(kind, record, f"{path}, row {number}"), number, path))
    if not tasks:
        raise InputError(f"research: no text-only task in {path}")
    return tasks


def _task(name: str, kind: Benchmark, record: dict[str, Any], number: int, path: Path) -> Task:
    question = _first(record, kind.question)
    answer = _first(record, kind.answer)
    if not question or (kind.answer and not answer):
        wanted = " and ".join(" or ".join(one) for one in (kind.question, kind.answer) if one)
        raise InputError(f"{path}, row {number}: {name} has the columns {wanted}; found {', '.join(record)}")
    identity = _first(record, ("task_id", "id")) or str(number)
    level = _first(record, (kind.level, f"info.{kind.level}"))
    files = [one for one in (_first(record, ("file_name",)),) if one]
    return Task(
        id=f"{name}-{identity}",
        world="research",
        prompt=question,
        setup={"files": files, "canary": str(record.get("canary") or "")},
        answer=answer or None,
        cluster=_first(record, kind.cluster) or f"{name}-{identity}",
        template=f"{name}:{level}" if level else name,
        tags=(f"lang:{language_of(question)}", "benchmark"),
    )


def _first(record: dict[str, Any], names: tuple[str, ...]) -> str:
    value = next((record[name] for name in names if name and record.get(name) not in (None, "", [])), "")
    if isinstance(value, list):
        return str(value[0]) if len(value) == 1 else "; ".join(map(str, value))
    return str(value).strip()


def _clear(kind: Benchmark, record: dict[str, Any], where: str) -> dict[str, Any]:
    """A record with its hidden columns deciphered."""
    canary = str(record.get("canary") or "")
    if not kind.cipher:
        return record
    if not canary:
        raise InputError(f"{where}: the column canary, which is the key, is missing or empty")
    key = hashlib.sha256(canary.encode()).digest() if kind.cipher == "sha256" else canary.encode()
    return record | {name: _decipher(str(record[name]), key, where) for name in kind.hidden if record.get(name)}


def _decipher(text: str, key: bytes, where: str) -> str:
    try:
        data = base64.b64decode(text, validate=True)
        return bytes(one ^ other for one, other in zip(data, cycle(key), strict=False)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise InputError(f"{where}: can't be deciphered with its canary; is the file as published?") from None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        yield from _separated(path, "\t" if kind == ".tsv" else ",")
    elif kind in (".jsonl", ".json"):
        yield from (_flat(record, path) for record in _json(path))
    elif kind == ".xlsx":
        yield from _sheet(path)
    elif kind == ".parquet":
        yield from (_flat(record, path) for record in _parquet(path))
    else:
        raise InputError(f"research: {path}: read are .csv, .tsv, .json, .jsonl, .xlsx and .parquet files")


def _separated(path: Path, delimiter: str) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        yield from csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a table in UTF-8: {error}") from None


def _json(path: Path) -> list[Any]:
    if path.suffix.lower() == ".jsonl":
        return [record for _, record in json_lines(path)]
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON: {error}") from None
    return found if isinstance(found, list) else [found]


def _flat(record: Any, path: Path) -> dict[str, Any]:
    """A record with the keys of its inner objects as `outer.inner`."""
    if not isinstance(record, dict):
        raise InputError(f"{path}: a task is a JSON object, found {type(record).__name__}")
    inner = {
        f"{key}.{name}": one for key, value in record.items() if isinstance(value, dict) for name, one in value.items()
    }
    return record | inner


def _sheet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError:
        raise InputError("reading .xlsx files needs the package openpyxl: pip install 'quintain[research]'") from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise InputError(f"{path}: not an Excel file: {error}") from None
    rows = book.worksheets[0].iter_rows(values_only=True)
    names = [str(name) for name in next(rows, ())]
    yield from (dict(zip(names, row, strict=False)) for row in rows if any(cell is not None for cell in row))


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ModuleNotFoundError:
        raise InputError("reading .parquet files needs the package pyarrow: pip install pyarrow") from None
    try:
        table = parquet.read_table(path)
    except ArrowInvalid as error:
        raise InputError(f"{path}: not a Parquet file: {' '.join(str(error).split())}") from None
    yield from table.to_pylist()
