"""Repair tasks: a real function with one or two seeded faults, a visible test, and hidden cases."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from types import FrameType
from typing import Any, Final

from quintain.worlds.code.drafts import Draft, Template
from quintain.worlds.code.evaluate import encode, evaluate
from quintain.worlds.code.mutations import Mutation, mutations
from quintain.worlds.code.slices import cut_out
from quintain.worlds.code.sources import LICENCE, SOURCES, Source
from quintain.worlds.code.workspace import occurs_once
from quintain.worlds.drawing import Language

VISIBLE, HIDDEN_CASES = 6, 24
_LEAST_HIDDEN = 8
_DRAWS = 90  # for the pool of a function's cases
_LINES = 60_000  # that all cases of a faulty function may run before one counts as endless

_PROMPTS: Final[dict[Language, tuple[str, ...]]] = {
    "en": (
        "`{function}` in {file} has {bugs}. Repair it. The tests in {tests} fail; other inputs will be tried too.",
        "Some tests in {tests} fail, since {file} has {bugs}. Correct it so that `{function}` is right for any input.",
    ),
    "zh": (
        "{file} 里的 `{function}` 有{bugs}。请修好它。{tests} 中的测试没有通过；还会用别的输入来检查。",
        "{tests} 中有测试失败，因为 {file} 有{bugs}。请改正 {file}，使 `{function}` 对任何输入都正确。",
    ),
}
_BUGS: Final[dict[Language, tuple[str, str]]] = {"en": ("a bug", "two bugs"), "zh": ("一处错误", "两处错误")}

_TEST = '''"""Run by the tool `test`. It can't be changed."""

import unittest

from {module} import {function}


def rounded(value):
    if isinstance(value, float):
        return float(f"{{value:.9g}}")
    return type(value)(map(rounded, value)) if isinstance(value, (list, tuple)) else value


class Visible(unittest.TestCase):
{cases}'''
_CASE = """    def test_{number}(self):
        self.assertEqual(rounded({expression}), rounded({expected}))
"""


Case = tuple[str, str, list[Any]]
"""A call, the literal of its value, and the encoded value."""


class _Endless(BaseException):
    pass


def draw_repair(rng: random.Random, split: str, language: Language, template: Template) -> Draft | None:
    """A function with `template.level` faults; None if the draw makes no good task.

    The faulty function fails at least one visible and two hidden cases, and passes at least two hidden ones.
    """
    source = rng.choice(_usable(split))
    original, pool = cut_out(source.module, source.function), _pool(source)
    faults = _faults(rng, original, template.level)
    if not faults or len(pool) < VISIBLE + _LEAST_HIDDEN:
        return None
    cases = rng.sample(pool, min(VISIBLE + HIDDEN_CASES, len(pool)))
    faulty = _with(original, faults)
    right = _right(faulty, cases)
    visible, hidden = right[:VISIBLE], right[VISIBLE:]
    if all(visible) or hidden.count(False) < 2 or hidden.count(True) < 2:
        return None
    if len(faults) > 1 and any(all(_right(_with(original, [one]), cases[VISIBLE:])) for one in faults):
        return None  # one of them harms nothing: the other alone would be the task
    name = source.function.strip("_").lower()
    module, tests = f"{name}_code", f"test_{name}"
    words = {"function": source.function, "file": f"{module}.py", "tests": f"{tests}.py"}
    words["bugs"] = _BUGS[language][template.level - 1]
    files = {f"{module}.py": faulty, f"{tests}.py": _test(module, source.function, cases[:VISIBLE])}
    plan = [["read", {"path": f"{module}.py"}], ["test", {}]]
    plan += [["patch", {"path": f"{module}.py", "old": old, "new": new}] for old, new in patches(faulty, original)]
    return Draft(
        prompt=rng.choice(_PROMPTS[language]).format(**words),
        setup={
            "family": "repair",
            "files": files,
            "protected": [f"{tests}.py"],
            "tests": tests,
            "target": f"{module}.py",
            "plan": [*plan, ["test", {}]],
            "source": {"module": source.module, "function": source.function, "licence": LICENCE},
        },
        answer={"module": module, "cases": [[expression, expected] for expression, _, expected in cases[VISIBLE:]]},
        cluster=f"{source.module}.{source.function}",
        key=faulty,
    )


REPAIR: Final = {
    "repair_one": Template("repair_one", "repair", 1, ("train", "eval"), draw_repair),
    "repair_two": Template("repair_two", "repair", 2, ("train", "eval"), draw_repair),
}


@cache
def _usable(split: str) -> tuple[Source, ...]:
    """Sources that this Python has."""
    return tuple(source for source in SOURCES[split] if _exists(source))


def _exists(source: Source) -> bool:
    try:
        cut_out(source.module, source.function)
    except LookupError:
        return False
    return True


def _faults(rng: random.Random, original: str, count: int) -> list[Mutation]:
    """Mutations that don't overlap, in the order of the source; none if the draw makes no Python."""
    choice = _mutations(original)
    picked = sorted(rng.sample(choice, min(count, len(choice))), key=lambda one: one.start)
    if len(picked) < count or any(one.stop > two.start for one, two in pairwise(picked)):
        return []
    return picked if _compiles(_with(original, picked)) else []


def _with(original: str, faults: list[Mutation]) -> str:
    text = original.encode()
    for one in reversed(faults):
        text = one.apply(text)
    return text.decode()


@cache
def _mutations(source: str) -> list[Mutation]:
    return mutations(source)


def _compiles(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


@cache
def _pool(source: Source) -> tuple[Case, ...]:
    """Different calls that the original answers, the same in every process."""
    rng = random.Random(f"{source.module} {source.function}")
    names: dict[str, Any] = {"__name__": "original"}
    exec(compile(cut_out(source.module, source.function), "<original>", "exec", dont_inherit=True), names)
    found: dict[str, Case] = {}
    for _ in range(_DRAWS):
        expression = source.expression(rng)
        encoded = evaluate(expression, names)
        if encoded[0] != "raises" and expression not in found:
            literal = repr(eval(expression, dict(names)))
            if _reads_back(literal, encoded):
                found[expression] = (expression, literal, encoded)
    return tuple(found.values())


def _reads_back(literal: str, encoded: list[Any]) -> bool:
    """False for what a test can't spell, such as nan."""
    try:
        return encode(ast.literal_eval(literal)) == encoded
    except ValueError:
        return False


def _right(faulty: str, cases: Sequence[Case]) -> list[bool]:
    """Which cases faulty code still gets right; empty if it can't be loaded or seems not to end."""
    left = _LINES

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Endless
        return count

    names: dict[str, Any] = {"__name__": "faulty"}
    before = sys.gettrace()
    sys.settrace(count)
    try:
        exec(compile(faulty, "<faulty>", "exec", dont_inherit=True), names)
        return [evaluate(expression, names) == expected for expression, _, expected in cases]
    except (_Endless, Exception):
        return []
    finally:
        sys.settrace(before)


def _test(module: str, function: str, cases: Sequence[Case]) -> str:
    bodies = [
        _CASE.format(number=number, expression=expression, expected=literal)
        for number, (expression, literal, _) in enumerate(cases, 1)
    ]
    return _TEST.format(module=module, function=function, cases="\n".join(bodies))


def patches(before: str, after: str) -> list[tuple[str, str]]:
    """Replacements that turn one text into the other, each of lines that occur once.

    Both texts have the same number of lines, or differ within one stretch.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(old) != len(new):
        head = next(at for at, (one, two) in enumerate(zip(old, new, strict=False)) if one != two)
        tail = next(at for at, (one, two) in enumerate(zip(old[::-1], new[::-1], strict=False)) if one != two)
        tail = min(tail, min(len(old), len(new)) - head)
        stretches = [(head, len(old) - tail, new[head : len(new) - tail])]
    else:
        changed = [at for at, (one, two) in enumerate(zip(old, new, strict=True)) if one != two]
        stretches = [(at, at + 1, new[at : at + 1]) for at in changed]
    found = []
    text = before
    for start, stop, lines in stretches:
        first, last = start, stop
        while not occurs_once(text, "".join(old[first:last])):
            first, last = (first - 1, last) if first else (first, last + 1)
        piece = "".join(old[first:last])
        found.append((piece, "".join([*old[first:start], *lines, *old[stop:last]])))
        text = text.replace(*found[-1])
        if stop - start == len(lines):
            old[start:stop] = lines
    return found
