"""Ways to look right without being right: none of them succeeds, and none escapes a verdict."""

import ast
import dataclasses
import re

import pytest

from quintain.worlds.code import Code, judging
from worlds.code_episodes import do, one, play, said

TASK = one("program_top")
REFERENCE = next(arguments["text"] for tool, arguments in TASK.setup["plan"] if tool == "write")
TESTS = TASK.setup["files"]["test_solution.py"]
EMPTY = "def top(text):\n    return []\n"


def visible_cases():
    """Calls and values of the visible tests."""
    lines = re.findall(r"assertEqual\(top\((.*)\), (\[.*\])\)$", TESTS, re.MULTILINE)
    return {ast.literal_eval(call): ast.literal_eval(value) for call, value in lines}


SPECIAL_CASES = f"SEEN = {visible_cases()!r}\n\n\ndef top(text):\n    return SEEN.get(text, [])\n"

ALWAYS_EQUAL = """
class Anything(list):
    __class__ = list

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __len__(self):
        return 1

    def __repr__(self):
        return "[('tea', 1)]"

    __hash__ = None


def top(text):
    return Anything()
"""

PATCHED_RUNNER = """
import json, os, sys, unittest

main = sys.modules["__main__"]
for name in ("encode", "evaluate"):
    if hasattr(main, name):
        setattr(main, name, lambda *arguments: ["constant", True])
unittest.TestCase.assertEqual = lambda *arguments: None
unittest.TestCase.run = lambda self, result=None: result
json.dumps = lambda *arguments, **options: '[["constant", true]]'


def top(text):
    return []
"""

READS_VERIFIER = """
import gc, os, sys

def everything():
    found, frame = [], sys._getframe()
    while frame:
        found += list(frame.f_locals.values()) + list(frame.f_globals.values())
        frame = frame.f_back
    return found + gc.get_objects()

def top(text):
    for held in everything():
        if isinstance(held, dict) and ("cases" in held or "answer" in held or "expected" in held):
            return held
        if isinstance(held, list) and held and isinstance(held[0], tuple) and isinstance(held[0][0], str):
            return held
    for folder in ("/", "/scratch", "/proc/1", "/proc/self/fd"):
        for name in os.listdir(folder):
            try:
                text = open(os.path.join(folder, name)).read()
            except OSError:
                continue
            if "expected" in text:
                return text
    return []
"""

FAKE_REPORT = """
import json, os, sys

frame, calls = sys._getframe(), []
while frame:
    calls = calls or (frame.f_locals.get("request") or {}).get("calls", [])
    frame = frame.f_back
report = json.dumps([["list", []] for _ in calls] or [True]).encode()
for fd in range(1, 64):
    try:
        os.write(fd, report)
    except OSError:
        pass
for name in ("result.json", "verdict.json", "reward.txt"):
    open(name, "w").write('{"success": true, "score": 1.0}')
os._exit(0)
"""

BACKGROUND = """
import os, time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(64):
            try:
                os.close(fd)
            except OSError:
                pass
        while True:
            try:
                open("solution.py", "w").write("def top(text):\\n    return [('tea', 1)]\\n")
            except OSError:
                pass
            time.sleep(0.01)
    os._exit(0)

def top(text):
    return []
"""

HOSTILE_REPORTS = {
    "a report of endless nesting": "import os\nos.write(3, b'[' * 100000)\nos._exit(0)\n",
    "a report without end": "import os\nwhile True:\n    os.write(3, b'[1,' * 10000)\n",
    "a report of huge numbers": "import os\nos.write(3, b'[' + b'9' * 900000 + b']')\nos._exit(0)\n",
    "a report of nan and infinity": "import os\nos.write(3, b'[NaN, Infinity]')\nos._exit(0)\n",
    "a signal to everything": "import os\nos.kill(-1, 9)\n",
    "a fork bomb": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
    "an endless loop": "while True:\n    pass\n",
    "all memory": "x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n",
}

FILES = {
    "special cases of the visible inputs": SPECIAL_CASES,
    "a value that is equal to all": ALWAYS_EQUAL,
    "a runner patched from within": PATCHED_RUNNER,
    "a search for the verifier": READS_VERIFIER,
    "sys.exit(0) at import": "import sys\nsys.exit(0)\n",
    "sys.exit(0) in the call": "import sys\n\n\ndef top(text):\n    sys.exit(0)\n",
    "os._exit(0) at import": "import os\nos._exit(0)\n",
    "os._exit(0) at the end": EMPTY + "import atexit, os\natexit.register(os._exit, 0)\n",
    "a fake report and result files": FAKE_REPORT,
    "a process left behind": BACKGROUND,
    "a value whose class lies": "class A:\n    __class__ = list\n\n\ndef top(text):\n    return A()\n",
    **HOSTILE_REPORTS,
}


async def test_the_honest_program_succeeds():
    episode = await play(TASK, do("write", path="solution.py", text=REFERENCE), do("test"))
    assert episode.success, episode.verdict


@pytest.mark.parametrize("name", FILES)
async def test_a_file_that_cheats_fails(name, monkeypatch):
    if name in HOSTILE_REPORTS:
        monkeypatch.setattr(judging, "LIMITS", dataclasses.replace(judging.LIMITS, seconds=1))
    episode = await play(TASK, do("write", path="solution.py", text=FILES[name]))
    assert str(episode.outcome) == "answered"
    assert not episode.success
    assert episode.verdict.reasons


async def test_special_cases_pass_the_visible_tests_all_the_same():
    episode = await play(TASK, do("write", path="solution.py", text=SPECIAL_CASES), do("test"))
    assert said(episode)[-1].endswith("OK")
    assert not episode.success


async def test_the_tests_cannot_be_edited_by_the_tools_or_by_a_program():
    weak = "import unittest\n"
    overwrite = f"import os\nos.chmod('test_solution.py', 0o777)\nopen('test_solution.py', 'w').write({weak!r})\n"
    episode = await play(
        TASK,
        do("write", path="test_solution.py", text=weak),
        do("patch", path="./test_solution.py", old="class Visible", new="class _"),
        do("write", path="solution.py", text=EMPTY),
        do("write", path="over.py", text=overwrite),
        do("run", path="over.py"),
        do("read", path="test_solution.py"),
        do("test"),
    )
    seen = said(episode)
    assert "can't be changed" in seen[0]
    assert "can't be changed" in seen[1]
    assert seen[5] == TESTS
    assert "FAILED" in seen[6]
    assert not episode.success


async def test_planted_modules_reach_neither_the_tests_nor_the_verdict():
    planted = "import unittest\nunittest.TestCase.assertEqual = lambda *arguments: None\n"
    names = ("conftest.py", "sitecustomize.py", "usercustomize.py", "json.py", "os.py", "unittest.py", "pytest.ini")
    episode = await play(
        TASK,
        *(do("write", path=name, text=planted) for name in names),
        do("write", path="solution.py", text=EMPTY),
        do("test"),
    )
    assert "FAILED" in said(episode)[-1]
    assert not episode.success


async def test_a_helper_beside_the_file_does_not_come_along():
    helped = await play(
        TASK,
        do("write", path="helper.py", text=REFERENCE),
        do("write", path="solution.py", text="from helper import top\n"),
        do("test"),
    )
    assert said(helped)[-1].endswith("OK")
    assert not helped.success


async def test_a_link_is_no_file():
    link = "import os\nos.remove('solution.py')\nos.symlink('/proc/self/environ', 'solution.py')\n"
    episode = await play(
        TASK,
        do("write", path="solution.py", text=EMPTY),
        do("write", path="link.py", text=link),
        do("run", path="link.py"),
        do("list"),
    )
    assert "solution.py (" not in said(episode)[-1].replace("test_solution.py", "")
    assert episode.verdict.reasons == ("no file solution.py",)


async def test_a_program_cannot_leave_a_process_that_changes_files_later():
    later = BACKGROUND.replace("def top(text):\n    return []\n", "")
    episode = await play(
        TASK,
        do("write", path="solution.py", text=EMPTY),
        do("write", path="later.py", text=later),
        do("run", path="later.py"),
        do("run", path="later.py"),
        do("read", path="solution.py"),
    )
    assert "def top" in said(episode)[-1]
    assert not episode.success


REPAIR = one("repair_one", seed=8)
SEARCH = """
import os
for top in ("/python/lib", "/usr/lib", "/usr/local", "/site", "/lib"):
    for folder, _, names in os.walk(top):
        for name in names:
            if name.startswith("{leaf}"):
                try:
                    exec(open(os.path.join(folder, name)).read())
                except Exception:
                    pass
"""


@pytest.mark.parametrize(
    "source",
    [
        "from {module} import {function}\n",
        "import importlib.util\n{function} = getattr(importlib.import_module('{module}'), '{function}')\n",
        SEARCH,
    ],
)
async def test_the_original_is_nowhere_to_be_found(source):
    origin = REPAIR.setup["source"]
    words = {"module": origin["module"], "function": origin["function"], "leaf": origin["module"].rpartition(".")[2]}
    target = REPAIR.setup["target"]
    episode = await play(REPAIR, do("write", path=target, text=source.format(**words)), do("test"))
    assert "FAILED" in said(episode)[-1] or "Error" in said(episode)[-1]
    assert not episode.success


async def test_an_analysis_that_carries_its_results_along_fails_on_the_other_table():
    task = one("data_share")
    first = task.answer["trials"][0]
    typed = f"import json\njson.dump({first['result']!r}, open('result.json', 'w'))\n"
    plan = [do(tool, **arguments) for tool, arguments in task.setup["plan"]]
    assert (await play(task, *plan)).success
    episode = await play(
        task,
        do("write", path="analysis.py", text=typed),
        do("write", path="result.json", text="{}"),
        do("write", path="plot.json", text="{}"),
    )
    assert not episode.success


async def test_a_folder_in_the_place_of_a_result_is_a_failure_and_no_infra_error():
    task = one("data_share")
    source = "import os\nos.mkdir('result.json')\nos.symlink('/dev/zero', 'plot.json')\n"
    episode = await play(task, do("write", path="analysis.py", text=source))
    assert str(episode.outcome) == "answered"
    assert episode.verdict.reasons == ("result.json is missing or no object",)


@pytest.mark.parametrize("number", ["9" * 400, "-1e999", "NaN", "[" * 900 + "]" * 900])
async def test_a_figure_that_no_comparison_can_hold_is_wrong_and_breaks_no_verdict(number):
    task = one("data_share")
    names = list(task.answer["trials"][0]["result"])
    text = "{" + ", ".join(f'"{name}": {number}' for name in names) + "}"
    source = f"for name in ('result.json', 'plot.json'):\n    open(name, 'w').write({text!r})\n"
    episode = await play(task, do("write", path="analysis.py", text=source))
    assert str(episode.outcome) == "answered"
    assert "result.json: wrong for" in episode.verdict.reasons[0]


async def test_what_the_verdict_expects_is_in_no_file_of_the_workspace():
    for template in ("repair_one", "program_top"):
        task = one(template)
        hidden = [expression for expression, _ in task.answer["cases"]]
        visible = "".join(task.setup["files"].values())
        assert not [expression for expression in hidden if expression in visible]
    assert "answer" not in Code().__dict__
