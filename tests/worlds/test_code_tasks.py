"""What the tasks of the world `code` promise."""

import ast
import importlib
import json
import random
import subprocess
import sys

import pytest

from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.harness.loop import Harness
from quintain.harness.sandbox import Program
from quintain.worlds.code import TEMPLATES, Code, generate
from quintain.worlds.code.evaluate import encode, evaluate
from quintain.worlds.code.judging import same
from quintain.worlds.code.mutations import mutations
from quintain.worlds.code.repair import patches
from quintain.worlds.code.slices import cut_out
from quintain.worlds.code.sources import HIDDEN, SOURCES
from quintain.worlds.code.specifications import SPECIFICATIONS

EVERY = [(split, source) for split, sources in SOURCES.items() for source in sources]


@pytest.mark.parametrize("name", TEMPLATES)
async def test_the_reference_solves_a_task_of_every_template(name):
    split = TEMPLATES[name].splits[-1]
    tasks = generate(split, 2, 7, ("en", "zh"), (name,))
    episodes = await Harness(Code).rollout(tasks, OracleAgent(Code().solution, {task.id: task for task in tasks}))
    assert [episode.verdict.reasons for episode in episodes if not episode.success] == []


async def test_neither_silence_nor_chance_solves_a_task():
    tasks = [task for family in ("repair", "data", "program") for task in generate("eval", 18, 7, templates=(family,))]
    assert len(tasks) >= 50
    for agent in (SilentAgent(), RandomAgent()):
        episodes = await Harness(Code).rollout(tasks, agent)
        assert [episode.task_id for episode in episodes if episode.success or not episode.scored] == []


def test_a_seed_gives_the_same_tasks_in_another_process_and_others_with_another_seed():
    families = ("repair", "data", "program")
    program = (
        "import json\nfrom quintain.worlds.code import generate\n"
        f"print(json.dumps([task.to_json() for task in generate('eval', 12, 5, ('en', 'zh'), {families!r})]))"
    )
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = [task.to_json() for task in generate("eval", 12, 5, ("en", "zh"), families)]
    assert json.loads(there) == json.loads(json.dumps(here))
    assert {task.id for task in generate("eval", 12, 6, ("en", "zh"), families)} != {task["id"] for task in here}


def test_training_and_evaluation_share_no_module_no_template_and_no_table():
    modules = [{source.module for source in SOURCES[split]} for split in ("train", "eval")]
    assert modules[0] & modules[1] == set()
    pools = [generate(split, 60, 1, ("en",), ("data", "program")) for split in ("train", "eval")]
    assert {task.template for task in pools[0]} & {task.template for task in pools[1]} == set()
    assert {task.cluster for task in pools[0]} & {task.cluster for task in pools[1]} == set()


@pytest.mark.parametrize("family", ["repair", "program"])
def test_no_hidden_case_is_shown_and_the_faults_show_in_both(family):
    for task in generate("eval", 12, 2, ("en",), (family,)):
        test = next(text for name, text in task.setup["files"].items() if name.startswith("test_"))
        assert not [one for one, _ in task.answer["cases"] if f"({one})" in test or f"({one}," in test]
        assert len({one for one, _ in task.answer["cases"]}) == len(task.answer["cases"])


def test_a_fault_fails_hidden_cases_and_keeps_others():
    for task in generate("eval", 12, 3, ("en",), ("repair",)):
        names = {"__name__": "faulty"}
        exec(task.setup["files"][task.setup["target"]], names)
        right = [same(evaluate(call, names), expected) for call, expected in task.answer["cases"]]
        assert right.count(False) >= 2
        assert right.count(True) >= 2


@pytest.mark.parametrize(("split", "source"), EVERY, ids=[source.function for _, source in EVERY])
def test_what_is_cut_out_of_a_module_answers_as_the_module_does(split, source):
    cut = {"__name__": "cut"}
    exec(cut_out(source.module, source.function), cut)
    original = vars(importlib.import_module(source.module))
    rng = random.Random(1)
    calls = {source.expression(rng) for _ in range(25)}
    assert [call for call in calls if evaluate(call, cut) != evaluate(call, original)] == []


async def test_what_is_cut_out_runs_where_its_module_is_hidden():
    imports = sorted({name for _, source in EVERY for name in imported(cut_out(source.module, source.function))})
    assert imports
    world = Code()
    world.family = "repair"
    lines = "".join(f"import {name}\n" for name in imports)
    try:
        result = await world.sandbox.run(
            Program(source=lines + f"import sys\nprint(set(sys.modules) & set({HIDDEN!r}))")
        )
        assert (result.stdout, result.stderr) == (b"set()\n", b"")
    finally:
        await world.end_programs()


def imported(source):
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        if isinstance(statement, ast.ImportFrom):
            yield statement.module


def test_a_mutation_changes_one_place_and_still_is_python():
    source = (
        cut_out("shlex", "join")
        + "# é: bytes and letters are counted apart\n\n\ndef f(a):\n    return 'é' if a < 3 else -a\n"
    )
    found = mutations(source)
    changed = {one.apply(source.encode()).decode() for one in found}
    assert len(changed) == len(found) > 8
    for text in changed:
        ast.parse(text)
        assert len(text.splitlines()) == len(source.splitlines())
    assert "    return 'é' if a <= 3 else -a\n" in "".join(changed)


def test_docstrings_and_comments_stay():
    source = 'def f(a):\n    """At least 3 and not 4."""\n    # 5 or 6\n    return a + 7\n'
    for one in mutations(source):
        assert '"""At least 3 and not 4."""\n    # 5 or 6' in one.apply(source.encode()).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\na\n", "a\nc\na\n"),
        ("x\ny\nx\nz\n", "x\ny\nw\nz\n"),
        ("x\nx\nx\n", "x\nx\ny\n"),
        ("x\nx\nx\n", "y\nx\nx\n"),
        ("1\n2\n3\n4\n", "1\n2\n5\n6\n4\n"),
        ("1\n2\n3\n", "1\n3\n"),
    ],
)
def test_patches_lead_from_one_text_to_the_other_and_each_finds_one_place(before, after):
    text = before
    for old, new in patches(before, after):
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert text == after


@pytest.mark.parametrize(
    ("value", "other"),
    [(1, True), (1, 1.0), ("1", 1), ([1], (1,)), (b"a", "a"), ({}, set()), (None, False), (0.0, 1e-3), ([], [None])],
)
def test_values_of_another_type_are_not_the_same(value, other):
    assert same(encode(value), encode(value))
    assert not same(encode(value), encode(other))
    assert not same(encode(other), encode(value))


def test_floats_may_differ_in_the_last_digits_only():
    assert same(encode([0.1 + 0.2]), encode([0.3]))
    assert same(encode(float("inf")), encode(float("inf")))
    assert not same(encode(0.3), encode(0.3001))
    assert not same(["float", "junk"], encode(0.3))
    assert not same(["float", None], encode(0.3))


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_both_languages_name_every_parameter(name):
    one = SPECIFICATIONS[name]
    parameters = one.parameters(random.Random(1))
    for language in ("en", "zh"):
        assert "{" not in one.text(language, dict.fromkeys(parameters, 1))
        assert [key for key in parameters if "{" + key not in getattr(one, language)] == []
