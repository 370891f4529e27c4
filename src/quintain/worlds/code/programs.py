"""Program tasks: a function written to a specification, judged on inputs and properties it has not seen."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from quintain.worlds.code.drafts import Draft, Template
from quintain.worlds.code.evaluate import evaluate
from quintain.worlds.code.specifications import SPECIFICATIONS, Specification
from quintain.worlds.drawing import Language

VISIBLE, HIDDEN_CASES = 4, 24
_PATIENCE = 200

_PROMPTS: Final[dict[Language, str]] = {
    "en": "Write solution.py. {text} Examples are in test_solution.py; other inputs will be tried.",
    "zh": "请写 solution.py。{text} 例子在 test_solution.py 里；还会用别的输入来检查。",
}

_TEST = '''"""Run by the tool `test`. It can't be changed."""

import unittest

from solution import {functions}


class Visible(unittest.TestCase):
{cases}'''
_CASE = """    def test_{number}(self):
        self.assertEqual({expression}, {expected})
"""


def draw_program(
    rng: random.Random, split: str, language: Language, template: Template, specification: Specification
) -> Draft | None:
    """A specification with drawn parameters; None if too few different cases turn up."""
    parameters = specification.parameters(rng)
    source = specification.source(parameters)
    cases = _cases(rng, specification, parameters, source)
    if len(cases) < VISIBLE + HIDDEN_CASES // 2:
        return None
    visible = "\n".join(
        _CASE.format(number=number, expression=expression, expected=literal)
        for number, (expression, literal, _) in enumerate(cases[:VISIBLE], 1)
    )
    test = _TEST.format(functions=", ".join(specification.functions), cases=visible)
    return Draft(
        prompt=_PROMPTS[language].format(text=specification.text(language, parameters)),
        setup={
            "family": "program",
            "files": {"test_solution.py": test},
            "protected": ["test_solution.py"],
            "tests": "test_solution",
            "target": "solution.py",
            "plan": [
                ["read", {"path": "test_solution.py"}],
                ["write", {"path": "solution.py", "text": source}],
                ["test", {}],
            ],
        },
        answer={"module": "solution", "cases": [[expression, value] for expression, _, value in cases[VISIBLE:]]},
        cluster=f"{template.name} {sorted(parameters.items())}",
        key=source,
    )


def _cases(
    rng: random.Random, specification: Specification, parameters: dict[str, Any], source: str
) -> list[tuple[str, str, list[Any]]]:
    """Different calls with the literal and the encoded form of what the reference gives; plain calls come first."""
    names: dict[str, Any] = {"__name__": "reference"}
    exec(compile(source, "<reference>", "exec", dont_inherit=True), names)
    found: dict[str, tuple[str, str, list[Any]]] = {}
    for _ in range(_PATIENCE):
        makers: tuple[Callable[[random.Random, dict[str, Any]], str], ...] = specification.cases
        expression = (makers[0] if len(found) < VISIBLE else rng.choice(makers))(rng, parameters)
        if expression not in found:
            value = eval(expression, dict(names))
            found[expression] = (expression, repr(value), evaluate(expression, names))
        if len(found) == VISIBLE + HIDDEN_CASES:
            break
    return list(found.values())


PROGRAMS: Final = {
    name: Template(name, "program", one.level, (one.split,), partial(draw_program, specification=one))
    for name, one in SPECIFICATIONS.items()
}
