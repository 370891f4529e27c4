"""When calls are those that a task asks for: BFCL's rules by hand, and against the package's own checker."""

from __future__ import annotations

import copy
import sys
import types
from random import Random

import pytest

from quintain.worlds.bfcl.matching import wrong_calls
from quintain.worlds.bfcl.single import SingleTurn, first_values

MUTATIONS = 8
"""Changed answers for every task."""


def function(name="f", required=(), **properties):
    parameters = {"type": "dict", "properties": properties, "required": list(required)}
    return {"name": name, "description": "", "parameters": parameters}


def fits(schema, value, *right):
    document = function(x=schema)
    return not wrong_calls([("f", {"x": value})], [document], [{"f": {"x": list(right)}}])


TEXT, WHOLE, FLOAT, TRUTH = ({"type": kind} for kind in ("string", "integer", "float", "boolean"))


def list_of(kind, outer="array"):
    return {"type": outer, "items": {"type": kind}}


@pytest.mark.parametrize(
    ("schema", "value", "right"),
    [
        (TEXT, "new york, ny", ["New York NY"]),
        (TEXT, "it's 'x'", ['It"s "x"']),
        (WHOLE, 5, [4, 5]),
        (FLOAT, 5, [5.0]),
        (FLOAT, 5, [5]),
        (WHOLE, 0.5, [0.5]),
        (TEXT, 7, [7]),
        ({"type": "any"}, [1], [[1]]),
        (list_of("string"), ["A-b", "c"], [["ab", "C"]]),
        (list_of("float", "tuple"), [1, 2], [[1, 2]]),
        (list_of("integer"), [], [""]),
        ({"type": "dict"}, {"k": "A B", "n": 1}, [{"k": ["ab"], "n": [1, 2], "o": ["", 3]}]),
        (list_of("dict"), [{"a": 1}, {"a": 2}], [[{"a": [1]}, {"a": [2]}]]),
    ],
)
def test_right(schema, value, right):
    assert fits(schema, value, *right)


@pytest.mark.parametrize(
    ("schema", "value", "right"),
    [
        (TEXT, "new yorks", ["New York"]),
        (WHOLE, 5.0, [5]),
        (WHOLE, True, [1]),
        (WHOLE, "5", [5]),
        (TRUTH, 1, [True]),
        (FLOAT, True, [1.0]),
        (list_of("string"), ["c", "a"], [["a", "c"]]),
        (list_of("float"), [1, 2], [[1.0, 2.0]]),
        (list_of("integer"), [1], [[1, 2]]),
        (list_of("integer"), 1, [[1]]),
        ({"type": "dict"}, {"k": "a", "z": 1}, [{"k": ["a"]}]),
        ({"type": "dict"}, {}, [{"k": ["a"]}]),
        (list_of("dict"), [{"a": 2}, {"a": 1}], [[{"a": [1]}, {"a": [2]}]]),
        (TEXT, None, ["x"]),
        (FLOAT, 10**400, [1.0]),
    ],
)
def test_wrong(schema, value, right):
    assert not fits(schema, value, *right)


F, G = function("f", ["x"], x=WHOLE, y=WHOLE), function("g", x=WHOLE)
ANSWER = [{"f": {"x": [1], "y": ["", 2]}}, {"g": {"x": [3]}}]


@pytest.mark.parametrize(
    ("calls", "fault"),
    [
        ([("f", {"x": 1}), ("g", {"x": 3})], ""),
        ([("g", {"x": 3}), ("f", {"x": 1, "y": 2})], ""),
        ([("f", {"x": 1})], "1 calls where 2 are right"),
        ([("f", {"x": 1}), ("f", {"x": 1})], "calls f, not g"),
        ([("f", {"y": 2}), ("g", {"x": 3})], "no call fits f: f: x is required; calls g, not f"),
        ([("f", {"x": 1, "z": 0}), ("g", {"x": 3})], "no call fits f: f: no z is asked for; calls g, not f"),
        ([("g", {}), ("f", {"x": 1})], "g: x may not be left out"),
        ([("", {}), ("f", {"x": 1})], "calls no tool, not g"),
    ],
)
def test_calls_are_matched_in_any_order_each_once(calls, fault):
    found = wrong_calls(calls, [F, G], ANSWER)
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def mutated(calls, values, rng):
    """The calls with one thing changed."""
    calls = copy.deepcopy(calls)
    name, arguments = rng.choice(calls)
    parameter = rng.choice([*arguments, "another"])
    value = arguments.get(parameter)
    others = [None, [], {}, 0, True, "", "x", 1.5, [[]], str(value), [value], rng.choice(values)]
    if isinstance(value, str):
        others += [value.upper(), f"{value}.", value.replace(" ", ""), f"'{value}"]
    elif isinstance(value, int | float):
        others += [value + 1, float(value), int(value)]
    elif isinstance(value, list):
        others += [
            value[::-1],
            value[1:],
            [str(one) for one in value],
            [float(one) if type(one) is int else one for one in value],
        ]
    elif isinstance(value, dict):
        others += [{**value, "q": 1}, dict(list(value.items())[1:]), {key: str(one) for key, one in value.items()}]
    changes = [
        lambda: calls.remove((name, arguments)),
        lambda: calls.append((name, dict(arguments))),
        lambda: rng.shuffle(calls),
        lambda: arguments.pop(parameter, None),
        *[lambda: arguments.update({parameter: rng.choice(others)})] * 5,
    ]
    rng.choice(changes)()
    return calls


@pytest.fixture
def reference(monkeypatch):
    """The package's own checker; the table of vendors it imports, for one setting of names, is replaced."""
    pytest.importorskip("bfcl_eval")
    table = types.ModuleType("bfcl_eval.constants.model_config")
    table.MODEL_CONFIG_MAPPING = {"any": types.SimpleNamespace(underscore_to_dot=False)}
    monkeypatch.setitem(sys.modules, table.__name__, table)
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def valid(task, calls):
        written = [{name: arguments} for name, arguments in calls]
        return ast_checker(task.setup["functions"], written, task.answer, Language.PYTHON, task.template, "any")[
            "valid"
        ]

    return valid


def test_it_agrees_with_the_packages_own_checker_on_every_task_and_its_mutations(reference):
    tasks = [task for task in SingleTurn.generate("eval", 1240, 0, ["en"], []) if task.answer]
    rng, rejected = Random(0), 0
    for task in tasks:
        calls = [(name, first_values(right)) for one in task.answer for name, right in one.items()]
        values = [value for one in task.answer for right in one.values() for those in right.values() for value in those]
        tried = [calls, *(mutated(calls, values, rng) for _ in range(MUTATIONS))]
        for one in tried:
            fault = wrong_calls(one, task.setup["functions"], task.answer)
            assert (fault == "") == reference(task, one), (task.id, one, fault)
            rejected += fault != ""
    assert 0.3 < rejected / (len(tasks) * (1 + MUTATIONS)) < 0.9
