"""The algebra tool: what it gives, and that no text of an agent does more than that."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from quintain.harness.sandbox import Bubblewrap, CannotConfine, Program
from quintain.worlds.maths import kernel
from quintain.worlds.maths.algebra import MAX_LENGTH, algebra, equal, ready


@pytest.fixture(autouse=True)
async def _confines():
    try:
        await ready()
    except CannotConfine as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("operation", "expression", "variable", "result"),
    [
        ("simplify", "gcd(84, 36)", "", "12"),
        ("simplify", "lcm(4, 6, 10)", "", "60"),
        ("simplify", "0.1 + 0.2", "", "3/10"),
        ("simplify", "(x^2 - 1) / (x - 1)", "", "x + 1"),
        ("simplify", "２ × x ÷ ４", "", "x/2"),
        ("expand", "(x + 1)**3", "", "x**3 + 3*x**2 + 3*x + 1"),
        ("factor", "x**2 - 5*x + 6", "", "(x - 3)*(x - 2)"),
        ("factor", "360", "", "2**3 * 3**2 * 5"),
        ("factor", "1", "", "1"),
        ("solve", "3*x + 4 = 19", "", "x = 5"),
        ("solve", "w*(w + 8) = 105", "", "w = -15 or w = 7"),
        ("solve", "x + y = 3; x - y = 1", "", "x = 2, y = 1"),
        ("solve", "a*x = b", "x", "x = b/a"),
        ("solve", "2*e + i = 7", "e", "e = 7/2 - i/2"),
        ("solve", "x = x + 1", "", "no solution"),
        ("solve", "2*x = x + x", "", "every value is a solution"),
        ("differentiate", "x**3 + a*x", "x", "a + 3*x**2"),
        ("integrate", "x*sin(x)", "", "-x*cos(x) + sin(x)"),
    ],
)
async def test_results(operation, expression, variable, result):
    assert await algebra(operation, expression, variable) == result


@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ("__import__('os').system('true')", "use numbers"),
        ("x.__class__", "use numbers"),
        ("(lambda: 1)()", "use numbers"),
        ("[x for x in (1,)]", "use numbers"),
        ("f'{1}'", "use numbers"),
        ("'a' * 10**9", "use numbers"),
        ("x[0]", "use numbers"),
        ("1 if x else 2", "use numbers"),
        ("1 < 2", "use numbers"),
        ("True", "use numbers"),
        ("1j", "use numbers"),
        ("sqrt(x=1)", "use numbers"),
        ("eval(1)", "no function 'eval'"),
        ("Symbol(1)", "no function 'Symbol'"),
        ("_x + 1", "no variable"),
        ("x := 1", "cannot read"),
        ("x; import os", "cannot read"),
        ("x\nimport os", "cannot read"),
        ("2x", "cannot read"),
        ("", "cannot read"),
        ("\0", "cannot read"),
        ("1e999", "too large"),
        ("9**9**9", "exponent is above"),
        ("2**(3*10**9)", "exponent is above"),
        ("factorial(10**9)", "factorial of more"),
        ("binomial(10**9, 10**8)", "binomial of more"),
        ("10**1000", "1001 characters"),
        ("1 / 0", "division by zero"),
        ("-" * 150 + "1", "nested more than"),
        ("1" * (MAX_LENGTH + 1), f"at most {MAX_LENGTH}"),
    ],
)
async def test_everything_else_is_one_clear_error(expression, cause):
    with pytest.raises(ValueError, match=cause) as caught:
        await algebra("simplify", expression)
    assert "\n" not in str(caught.value)


async def test_what_takes_too_long_is_stopped_and_the_next_request_is_served():
    with pytest.raises(ValueError, match=r"too hard: (stopped after|it needs too much memory)"):
        await algebra("expand", "(x + y + z + u + v)**900")
    assert await algebra("simplify", "1 + 1") == "2"


async def test_the_unknown_must_be_named_where_there_are_several():
    with pytest.raises(ValueError, match="name the variable; the expression has a, x"):
        await algebra("differentiate", "a*x")
    with pytest.raises(ValueError, match="one ="):
        await algebra("solve", "x = 1 = 2")


async def test_expressions_are_compared_by_value_and_hostile_ones_are_simply_not_equal():
    texts = ("x**2 + 2*x + 1", "(1 + x)*(x + 1)", "x**2 + 2*x", "", "__import__('os')", "x" * 1000)
    assert await equal({"expression": "(x + 1)**2"}, texts) == [True, True, False, False, False, False]
    texts = ("x**2", "x**2 + C", "x**2 + 7", "2*x", "x**2 + x")
    assert await equal({"integrand": "2*x", "variable": "x"}, texts) == [True, True, True, False, False]


def test_several_event_loops_and_concurrent_requests_share_the_sandboxes():
    async def several():
        return await asyncio.gather(*(algebra("simplify", f"{n} + {n}") for n in range(8)))

    assert [asyncio.run(several()) for _ in range(2)] == [[str(2 * n) for n in range(8)]] * 2


async def test_a_cancelled_request_costs_the_others_nothing():
    slow = asyncio.create_task(algebra("expand", "(x + y + z + u + v)**900"))
    await asyncio.sleep(0.1)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await asyncio.gather(*(algebra("simplify", f"{n} + 1") for n in range(4))) == ["1", "2", "3", "4"]


async def test_a_module_of_the_worlds_own_is_loaded_once_and_programs_can_not_change_it_for_the_next():
    box = Bubblewrap(modules={"own": "count = 1"})
    change = await box.run(Program(source="import own; own.count += 1; print(own.count)"))
    again = await box.run(Program(source="import own; print(own.count)"))
    await box.close()
    assert (change.stdout, again.stdout) == (b"2\n", b"1\n")


@given(st.text(max_size=40))
def test_no_text_makes_the_parser_do_more_than_give_an_expression_or_refuse(text):
    with suppress(kernel.Refused, TypeError):  # TypeError: a function with too few or too many arguments
        assert isinstance(kernel.parse(text), sympy.Basic)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 50))
def test_parsed_numbers_are_exact(a, b, c):
    assert kernel.parse(f"({a}) * ({b}) / {c} - {a}") == sympy.Rational(a * b, c) - a


def test_the_kernel_is_self_contained_for_it_runs_where_this_package_is_not():
    source = Path(kernel.__file__).read_text(encoding="utf-8")
    assert "quintain" not in source
