"""Published benchmarks are read from the files their authors publish; the questions here are invented."""

from __future__ import annotations

import asyncio
import base64
import csv
import hashlib
import json
from itertools import cycle

import pytest

from quintain.interface.errors import InputError
from quintain.worlds.research import Research
from quintain.worlds.research.benchmarks import BENCHMARKS, load_benchmark

CANARY = "canary-of-the-test:0000"
ASKED, GOLD = "Which town has the café?", "Tor"


def hidden(text, key):
    """As the authors of BrowseComp and xbench hide texts: XOR with the key again and again, then Base64."""
    return base64.b64encode(bytes(a ^ b for a, b in zip(text.encode(), cycle(key), strict=False))).decode()


def sha(text):
    return hidden(text, hashlib.sha256(CANARY.encode()).digest())


def plain(text):
    return hidden(text, CANARY.encode())


FILES = {
    "browsecomp": ("b.csv", {"problem": sha(ASKED), "answer": sha(GOLD), "problem_topic": "Art", "canary": CANARY}),
    "browsecomp_zh": (
        "z.xlsx",
        {"Topic": sha("艺术"), "Question": sha("哪个城镇？"), "Answer": sha(GOLD), "canary": CANARY},
    ),
    "gaia": (
        "g.jsonl",
        {"task_id": "u-1", "Question": ASKED, "Level": 2, "Final answer": GOLD, "file_name": "a.xlsx"},
    ),
    "hle": ("h.parquet", {"id": "h1", "question": ASKED, "answer": GOLD, "image": "", "category": "Other"}),
    "xbench_deepsearch": (
        "x.csv",
        {
            "id": "7",
            "prompt": plain("哪个城镇？"),
            "answer": plain(GOLD),
            "reference_steps": plain("s"),
            "canary": CANARY,
        },
    ),
    "webwalkerqa": (
        "w.json",
        {"question": ASKED, "answer": GOLD, "root_url": "http://r/", "info": {"type": "multi_source", "lang": "en"}},
    ),
    "frames": ("f.tsv", {"Prompt": ASKED, "Answer": GOLD, "reasoning_types": "Multiple constraints"}),
    "seal_0": ("s.parquet", {"question": ASKED, "answers": [GOLD], "topic": "Others"}),
    "academicbrowse": ("a.jsonl", {"question": ASKED, "answer": GOLD, "explanation": "e", "domain": "History"}),
    "deepresearch_bench": ("d.jsonl", {"id": 51, "topic": "Finance", "language": "en", "prompt": ASKED}),
}


def write(folder, name):
    file, record = FILES[name]
    path = folder / file
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as out:
            made = csv.DictWriter(out, record, delimiter="\t" if path.suffix == ".tsv" else ",")
            made.writeheader()
            made.writerow(record)
    elif path.suffix == ".xlsx":
        from openpyxl import Workbook

        book = Workbook()
        book.active.append(list(record))
        book.active.append(list(record.values()))
        book.save(path)
    elif path.suffix == ".parquet":
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist([record]), path)
    else:
        path.write_text(json.dumps([record] if path.suffix == ".json" else record), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_benchmark_is_read_as_its_authors_publish_it(tmp_path, name):
    (task,) = load_benchmark(name, write(tmp_path, name))
    chinese = name in ("browsecomp_zh", "xbench_deepsearch")
    assert task.prompt == ("哪个城镇？" if chinese else ASKED)
    assert task.answer == (None if name == "deepresearch_bench" else GOLD)
    assert task.tags[0] == ("lang:zh" if chinese else "lang:en")
    assert task.world == "research"


def test_levels_files_clusters_and_canaries_are_kept(tmp_path):
    (gaia,) = load_benchmark("gaia", write(tmp_path, "gaia"))
    assert (gaia.id, gaia.template, gaia.setup["files"]) == ("gaia-u-1", "gaia:2", ["a.xlsx"])
    (walker,) = load_benchmark("webwalkerqa", write(tmp_path, "webwalkerqa"))
    assert (walker.cluster, walker.template) == ("http://r/", "webwalkerqa:multi_source")
    (topic,) = load_benchmark("browsecomp_zh", write(tmp_path, "browsecomp_zh"))
    assert (topic.template, topic.setup["canary"]) == ("browsecomp_zh:艺术", CANARY)


def test_questions_with_an_image_are_left_out(tmp_path):
    path = tmp_path / "h.jsonl"
    rows = [
        {"id": str(n), "question": "?", "answer": "a", "image": image} for n, image in enumerate(["", "data:image/png"])
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [task.id for task in load_benchmark("hle", path)] == ["hle-0"]


@pytest.mark.parametrize(
    ("name", "file", "content", "reason"),
    [
        ("unknown", "a.csv", "", "known are browsecomp"),
        ("frames", "none.tsv", None, "not found"),
        ("frames", "a.txt", "x", "read are .csv"),
        ("frames", "a.tsv", "", "no text-only task"),
        (
            "frames",
            "a.tsv",
            "Other\tAnswer\nx\ty\n",
            "row 1: frames has the columns prompt and answer; found other, answer",
        ),
        ("frames", "a.csv", "Prompt,Answer\nWas?,größer\n".encode("cp1252"), "a.csv: not a table in UTF-8"),
        ("frames", "a.tsv", "Prompt\tAnswer\n" + "x" * 10_000_001 + "\ty\n", "not a table in UTF-8: field larger"),
        ("frames", "a.xlsx", "no archive", "a.xlsx: not an Excel file"),
        ("frames", "a.parquet", "no table", "a.parquet: not a Parquet file"),
        ("gaia", "a.jsonl", "{broken", "a.jsonl:1: not valid JSON"),
        ("gaia", "a.json", "[1]", "a task is a JSON object, found int"),
        ("browsecomp", "a.csv", "problem,answer\nx,y\n", "the column canary"),
        ("browsecomp", "a.csv", "problem,answer,canary\nnot base64!,y,k\n", "can't be deciphered"),
        ("browsecomp", "a.csv", f"problem,answer,canary\n{sha(ASKED)},{sha(GOLD)},wrong key\n", "can't be deciphered"),
    ],
)
def test_a_file_that_is_laid_out_otherwise_is_one_line_that_says_how(tmp_path, name, file, content, reason):
    if content is not None:
        (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        load_benchmark(name, tmp_path / file)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_questions_with_a_file_need_their_folder_and_are_left_out_without_one(tmp_path):
    options = {"benchmark": "gaia", "benchmark_file": str(write(tmp_path, "gaia"))}
    with pytest.raises(InputError, match="has 0 such tasks of gaia; 1 were asked for"):
        Research.generate("eval", 1, 0, ("en",), (), **options)
    with pytest.raises(InputError, match=r"1 files of tasks are not in .*, such as 'a\.xlsx' of gaia-u-1"):
        Research.generate("eval", 1, 0, ("en",), (), **options, files=str(tmp_path))


def test_benchmarks_are_for_evaluation_only_and_reports_get_no_score(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"")
    options = {"benchmark": "gaia", "benchmark_file": str(write(tmp_path, "gaia")), "files": str(tmp_path)}
    assert [task.id for task in Research.generate("eval", 1, 0, ("en",), (), **options)] == ["gaia-u-1"]
    with pytest.raises(InputError, match="benchmark = 'gaia' needs `benchmark_file`"):
        Research.generate("eval", 1, 0, ("en",), (), benchmark="gaia")
    with pytest.raises(InputError, match="for measuring only"):
        Research.generate("train", 1, 0, ("en",), (), **options)
    with pytest.raises(InputError, match="has 1 such tasks of gaia; 9 were asked for"):
        Research.generate("eval", 9, 0, ("en",), (), **options)
    (report,) = load_benchmark("deepresearch_bench", write(tmp_path, "deepresearch_bench"))
    verdict = asyncio.run(Research().verify(report, None))
    assert verdict.infra
    assert "no gold answer" in verdict.reasons[0]
