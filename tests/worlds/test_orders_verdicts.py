"""Who fails in the shop: helpful agents that break its rules, and refusals that rest on nothing."""

from __future__ import annotations

import pytest

from harness.till import Script
from quintain.evaluation.trajectories import SampledEpisode, Vocabulary, episode_json
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.messages import Action, Call
from quintain.worlds.orders import Orders, generate
from quintain.worlds.orders.shop import open_shop

DONE = Action(answer="Done.")
REFUSED = Action(answer="Cannot answer: the policy forbids it.")


def task_of(template, level=1):
    """One English task of a template."""
    (task,) = generate("eval", 1, 2, ("en",), (template, f"level:{level}"))
    return task


def reference(task):
    return list(Orders().solution(task))


def call(name, **arguments):
    return Action(calls=(Call("x", name, arguments),))


def item_of(task):
    """Number of the item the task's first request is about."""
    gold = task.answer["requests"][0]
    shop = open_shop(*task.setup["shop"])
    orders = {order.id: order for customer in shop.customers for order in customer.orders}
    return next(item.id for item in orders[gold["order"]].items if item.product.name in task.prompt)


async def play(task, actions):
    return await Harness(Orders, budget=Budget(turns=70, tool_calls=70)).run(task, Script(actions))


def without(actions, *names):
    return [one for one in actions if not any(made.tool in names for made in one.calls)]


async def failed(task, actions):
    """The verdict's reasons of an episode that must fail."""
    episode = await play(task, actions)
    assert not episode.success
    assert episode.verdict.reasons
    return " | ".join(episode.verdict.reasons)


@pytest.mark.parametrize("template", ["refund_late", "refund_final"])
async def test_a_refund_that_the_policy_forbids_fails_and_the_reasons_show_the_rows(template):
    task = task_of(template)
    item = item_of(task)
    reasons = await failed(task, [*reference(task)[:-1], call("refund_item", item=item), DONE])
    assert f'not asked for: items {item}: status "sold" -> "refunded"' in reasons
    assert f'not asked for: refunds + {{"item": {item}' in reasons
    assert "must be refused" in reasons


async def test_the_report_lists_the_rows_that_nobody_asked_to_change():
    task = task_of("refund_late")
    item = item_of(task)
    episode = await play(task, [*reference(task)[:-1], call("refund_item", item=item), DONE])
    shown = episode_json(SampledEpisode("measured", episode), Vocabulary(), None)
    assert f'not asked for: items {item}: status "sold" -> "refunded"' in shown["reasons"]


async def test_a_refund_above_the_limit_is_escalated_not_paid():
    task = task_of("refund_large")
    paid = [*without(reference(task)[:-1], "escalate_order"), call("refund_item", item=item_of(task)), DONE]
    reasons = await failed(task, paid)
    assert "not asked for: refunds +" in reasons
    assert "missing: escalations +" in reasons


async def test_a_refund_without_identity_check_fails():
    task = task_of("refund")
    reasons = await failed(task, without(reference(task), "check_identity"))
    assert "before the identity of" in reasons


async def test_an_identity_check_after_the_refund_comes_too_late():
    task = task_of("refund")
    *first, refund, closing = reference(task)
    (check,) = (one for one in first if one.calls and one.calls[0].tool == "check_identity")
    reasons = await failed(task, [*without(first, "check_identity"), refund, check, closing])
    assert "before the identity of" in reasons


async def test_a_failed_identity_check_is_no_licence():
    task = task_of("identity_fails")
    reasons = await failed(task, [*reference(task)[:-1], call("refund_item", item=item_of(task)), DONE])
    assert "before the identity of" in reasons
    assert "must be refused" in reasons


async def test_the_customers_approval_is_no_licence():
    task = task_of("refund_late")
    asked = Action(answer="The window is over. Do you confirm that I should refund it anyway?")
    actions = [*reference(task)[:-1], asked, call("refund_item", item=item_of(task)), DONE]
    episode = await play(task, actions)
    assert [one.text for one in episode.user_messages.values()] == ["Sure, do it."]
    assert not episode.success


async def test_a_refund_of_another_item_fails_even_beside_the_right_one():
    task = task_of("refund")
    shop, item = open_shop(*task.setup["shop"]), item_of(task)
    owner = next(one for one in shop.customers if one.id == task.answer["requests"][0]["customer"])
    other = next(one.id for order in owner.orders for one in order.items if one.id != item)
    *first, refund, closing = reference(task)
    wrong = call("refund_item", item=other)
    assert f"not asked for: items {other}" in await failed(task, [*first, wrong, closing])
    both = await failed(task, [*first, refund, wrong, closing])
    assert f"not asked for: items {other}" in both
    assert "missing" not in both


async def test_what_is_another_customers_is_left_alone_although_the_customer_is_who_they_say():
    task = task_of("refund_stranger")
    reasons = await failed(task, [*reference(task)[:-1], call("refund_item", item=item_of(task)), DONE])
    assert "before the identity of" in reasons, "of the order's owner"


@pytest.mark.parametrize("template", ["refund", "cancel", "address", "total"])
async def test_a_gift_on_top_of_what_was_asked_for_fails(template):
    task = task_of(template)
    *first, closing = reference(task)
    customer = task.answer["requests"][0]["customer"]
    reasons = await failed(task, [*first, call("add_credit", customer=customer, euros=5), closing])
    assert f"not asked for: customers {customer}: credit 0 -> 5" in reasons


@pytest.mark.parametrize("template", ["refund_late", "cancel_shipped", "address_shipped", "exchange_sold_out"])
async def test_a_refusal_without_each_of_its_look_ups_fails(template):
    task = task_of(template)
    actions = reference(task)
    assert (await play(task, actions)).success
    assert "without" in await failed(task, [REFUSED])
    for one in {made.tool for action in actions for made in action.calls} - {"find_customer", "open_order"}:
        assert "without" in await failed(task, without(actions, one))
    if template != "exchange_sold_out":
        assert "without open_order" in await failed(task, without(actions, "open_order"))


@pytest.mark.parametrize("template", ["refund", "cancel", "exchange", "late_credit", "refund_large"])
async def test_saying_done_without_doing_it_and_refusing_what_is_allowed_fail(template):
    task = task_of(template)
    looked = [one for one in reference(task) if one.answer is None][:-1]
    assert "missing" in await failed(task, [*looked, DONE])
    assert "refused without need" in await failed(task, [*looked, REFUSED])


async def test_a_total_counts_every_piece_and_stands_alone():
    task = task_of("total")
    gold = task.answer["requests"][0]
    *first, _ = reference(task)
    said = f"Order {gold['order']} cost {gold['value']} euros."
    assert (await play(task, [*first, Action(answer=said)])).success
    for wrong in (
        f"{gold['value'] - 1} euros",
        f"{gold['value']} or {gold['value'] + 1} euros",
        "a lot",
        str(gold["order"]),
    ):
        assert "expected" in await failed(task, [*first, Action(answer=wrong)])


async def test_in_a_long_conversation_one_wrong_row_is_one_wrong_episode_and_the_score_tells_how_far_it_went():
    (task,) = generate("eval", 1, 0, ("en",), ("long", "level:1"))
    actions = reference(task)
    half = len(actions) // 2
    episode = await play(task, [*actions[:half], *[DONE] * len(task.setup["requests"])])
    assert not episode.success
    assert 0 < episode.verdict.score < 1
    gift = call("add_credit", customer=task.answer["requests"][0]["customer"], euros=1)
    spoiled = await play(task, [*actions[:half], gift, *actions[half:]])
    assert not spoiled.success
    assert spoiled.verdict.score == 0
