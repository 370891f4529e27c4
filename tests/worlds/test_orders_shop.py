"""The shop's database and tools, its scripted customer, and rewinding."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.till import Script
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.interface.messages import Action, Call
from quintain.worlds.orders import Orders, customer, generate
from quintain.worlds.orders.customer import is_question, reply
from quintain.worlds.orders.shop import PRIVATE, image_of, open_shop
from quintain.worlds.rows import differences, open_copy

FACTS = {"name": "Ada Lind", "postcode": "40213", "order": 1042, "address": "Oak Avenue 3"}
UNKNOWN = {**FACTS, "order": None}


def world_of(template="refund", level=1):
    (task,) = generate("eval", 1, 2, ("en",), (template, f"level:{level}"))
    world = Orders()
    world.reset(task)
    return world, task


def call(world, name, /, **arguments):
    return world.toolset()[name].function(**arguments)


def test_examples():
    result = doctest.testmod(customer)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("May I have your name?", "My name is Ada Lind."),
        ("What is your postcode and the order number?", "My postcode is 40213. It is order 1042."),
        ("Where should it go? Please give the new address.", "The new address is Oak Avenue 3."),
        ("请问邮编是什么？", "My postcode is 40213."),
        ("Why do you want that?", "I changed my mind."),
        ("Shall I go ahead?", "Yes, please go ahead."),
        ("Can you confirm your name?", "My name is Ada Lind."),
        ("What is the weather like?", "I am not sure what you need from me."),
    ],
)
def test_the_customer_tells_what_is_asked_for_and_nothing_else(question, said):
    assert is_question(question)
    assert reply(question, FACTS, "en", "train") == said


def test_the_customer_does_not_know_every_order_number_and_speaks_chinese_too():
    assert reply("Which order is it?", UNKNOWN, "en", "train") == "I do not have the order number."
    assert reply("订单号和姓名？", FACTS, "zh", "train") == "我叫Ada Lind。订单号是1042。"


@pytest.mark.parametrize(
    ("answer", "open_still"),
    [
        ("Done: it is refunded.", False),
        ("Done. Is there anything else I can do?", False),
        ("Cannot answer: too late. Do you have questions?", False),
        ("无法回答：太晚了？", False),
        ("Please provide your postcode.", True),
        ("请提供邮编。", True),
        ("Anything else, such as your name?", True),
        ("", False),
    ],
)
def test_a_question_keeps_a_request_open_and_an_offer_of_more_help_closes_it(answer, open_still):
    assert is_question(answer) == open_still


@given(st.text(max_size=200))
def test_no_text_makes_the_customer_say_more_than_the_facts_asked_for(question):
    said = reply(question, FACTS, "en", "train")
    assert said
    if not customer.facts_asked(question):
        assert said == "I am not sure what you need from me."


def test_impossible_calls_are_refused_and_change_nothing():
    world, _ = world_of()
    shop = open_shop(*world.place)
    order = shop.customers[0].orders[0]
    before = open_copy(image_of(*world.place))
    for name, arguments in [
        ("open_order", {"order": -1}),
        ("refund_item", {"item": 0}),
        ("cancel_order", {"order": 5}),
        ("change_address", {"order": 5, "address": "x"}),
        ("exchange_item", {"item": order.items[0].id, "product": "P0"}),
        ("exchange_item", {"item": order.items[0].id, "product": shop.products[0].id}),  # sold out
        ("add_credit", {"customer": shop.customers[0].id, "euros": -5}),
        ("add_credit", {"customer": "C0", "euros": 5}),
        ("find_product", {"name": "'; DROP TABLE orders; --"}),
        ("check_identity", {"customer": "C0", "postcode": "1"}),
    ]:
        with pytest.raises(ValueError, match=r"^(no|only|a credit)"):
            call(world, name, **arguments)
    assert differences(before, world.database, PRIVATE) == []


def test_nothing_is_refunded_or_cancelled_twice():
    world, task = world_of("cancel")
    order = task.answer["requests"][0]["order"]
    call(world, "cancel_order", order=order)
    with pytest.raises(ValueError, match="already"):
        call(world, "cancel_order", order=order)
    item = call(world, "open_order", order=order).items[0].item
    call(world, "refund_item", item=item)
    with pytest.raises(ValueError, match="already"):
        call(world, "refund_item", item=item)


def test_a_namesake_is_told_apart_by_the_postcode():
    shop = open_shop("eval", "en", 3)
    names = [one.name for one in shop.customers]
    twice = max(names, key=names.count)
    first, second = [one for one in shop.customers if one.name == twice][:2]
    world = Orders()
    world.reset(next(task for task in generate("eval", 400, 0) if task.setup["shop"] == ["eval", "en", 3]))
    assert [one.customer for one in call(world, "find_customer", name=twice.upper())][:2] == [first.id, second.id]
    assert not call(world, "check_identity", customer=first.id, postcode=second.postcode).confirmed
    assert call(world, "check_identity", customer=second.id, postcode=second.postcode).confirmed


def test_a_snapshot_brings_back_every_row_the_log_and_the_customers_script():
    world, task = world_of("cancel")
    call(world, "open_order", order=task.answer["requests"][0]["order"])
    state = world.snapshot()
    call(world, "cancel_order", order=task.answer["requests"][0]["order"])
    other = Orders()
    other.restore(state)
    assert differences(open_copy(image_of(*world.place)), other.database, PRIVATE) == []
    assert differences(other.database, world.database) != []
    assert [row["tool"] for row in other.database.execute("SELECT tool FROM log")] == ["open_order"]
    assert (other.requests, other.place) == (world.requests, world.place)


async def test_a_branch_before_a_change_goes_on_without_it(tmp_path):
    _, task = world_of("cancel")
    actions = list(Orders().solution(task))

    harness = Harness(Orders, journal=Journal(tmp_path))
    episode = await harness.run(task, Script(actions))
    assert episode.success
    at = len(actions) - 2
    refuser = Script([Action(answer="Cannot answer: no.")])
    branch = await harness.branch(episode, at, task, refuser, state=harness.journal.state_at(episode.id, at), name="b")
    assert not branch.success
    assert any("refused without need" in reason for reason in branch.verdict.reasons)
    harness.journal.close()


async def test_of_two_calls_of_one_turn_the_one_that_fails_changes_nothing_and_the_other_stays():
    _, task = world_of("cancel")
    order = task.answer["requests"][0]["order"]

    twice = Action(calls=tuple(Call(name, "cancel_order", {"order": order}) for name in "ab"))
    episode = await Harness(Orders).run(task, Script([twice, Action(answer="Done.")]))
    assert [one.error for one in episode.turns[0].observations] == ["", "exception"]
    reasons = " | ".join(episode.verdict.reasons)
    assert "before the identity" in reasons
    assert "not asked for" not in reasons
    assert "missing" not in reasons
