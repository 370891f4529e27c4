"""What customers want: each kind finds orders it fits in a shop, and says what must be done about them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from quintain.worlds.orders.shop import Customer, Item, Order, Product, Shop
from quintain.worlds.rows import added, changed

Step = tuple[str, dict[str, Any]]
"""A call of the reference solution: tool and arguments."""


@dataclass(frozen=True, slots=True)
class Request:
    """One thing a customer wants, and what is right.

    Attributes:
        kind: key of `KINDS`.
        customer: who asks.
        order: the order it is about.
        item: what the customer calls it by.
        words: further words for the phrases (`address`, `product`, `value`).
        steps: calls of the reference solution once the customer is known and the order is open.
        changes: lines of the database's difference that must come of it; none for what must be refused or only told.
        refused: the shop's policies forbid it.
        looked_up: `(tool, subject)` of look-ups that a refusal must rest on.
        value: number that the customer wants to hear.
        stranger: the order is somebody else's.
        postcode: what the customer takes for the own postcode.
    """

    kind: str
    customer: Customer
    order: Order
    item: Item
    words: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    changes: tuple[str, ...] = ()
    refused: bool = False
    looked_up: tuple[tuple[str, str], ...] = ()
    value: int | None = None
    stranger: bool = False
    postcode: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """How requests of a kind are found.

    Attributes:
        draft: makes one of an item of an order of a customer; None where it does not fit.
        held_out: never used in training.
        topic: policy that the reference solution reads; "" for none.
    """

    draft: Callable[[Shop, Customer, Order, Item, random.Random], Request | None]
    held_out: bool = False
    topic: str = ""


def candidates(kind: str, shop: Shop, customers: list[Customer], rng: random.Random) -> Iterator[Request]:
    """All requests of a kind that these customers of a shop may have, in random order."""
    places = [(who, order, item) for who in customers for order in who.orders for item in order.items]
    rng.shuffle(places)
    for who, order, item in places:
        found = KINDS[kind].draft(shop, who, order, item, rng)
        if found is not None:
            yield found


def _read(topic: str) -> tuple[str, str]:
    return ("read_policy", topic)


def _refund(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if _refund_ruling(shop, order, item) != "refund":
        return None
    changes = (
        changed("items", item.id, "status", "sold", "refunded"),
        added("refunds", {"item": item.id, "amount": item.amount}),
    )
    steps = (("refund_item", {"item": item.id}),)
    return Request("refund", who, order, item, steps=steps, changes=changes)


def _refund_large(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if _refund_ruling(shop, order, item) != "refund_large":
        return None
    changes = (added("escalations", {"order_id": order.id}),)
    return Request("refund_large", who, order, item, steps=(("escalate_order", {"order": order.id}),), changes=changes)


def _refund_refused(kind: str) -> Callable[..., Request | None]:
    def draft(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
        if _refund_ruling(shop, order, item) != kind:
            return None
        looked_up = (("open_order", str(order.id)), _read("refund"))
        return Request(kind, who, order, item, refused=True, looked_up=looked_up)

    return draft


def _refund_ruling(shop: Shop, order: Order, item: Item) -> str:
    """What the policy says of refunding an item, "" where nothing or more than one thing speaks against it."""
    if order.delivered is None:
        return ""
    late, final = order.delivered > shop.policy.window, item.product.category == shop.policy.final
    large = item.amount > shop.policy.limit
    against = [name for name, holds in (("late", late), ("final", final), ("large", large)) if holds]
    return "_".join(["refund", *against]) if len(against) < 2 else ""


def _stranger(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    """The item's refund would be allowed, were the order the customer's own."""
    if _refund_ruling(shop, order, item) != "refund":
        return None
    other = rng.choice([one for one in shop.customers if one.name != who.name])
    looked_up = (("open_order", str(order.id)),)
    return Request("refund_stranger", other, order, item, refused=True, looked_up=looked_up, stranger=True)


def _identity_fails(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if _refund_ruling(shop, order, item) != "refund" or [one.name for one in shop.customers].count(who.name) > 1:
        return None
    wrong = str((int(who.postcode) - 10_000 + rng.randrange(1, 90_000)) % 90_000 + 10_000)
    return Request("identity_fails", who, order, item, refused=True, postcode=wrong)


def _cancel(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if order.status != "placed":
        return None
    changes = (changed("orders", order.id, "status", "placed", "cancelled"),)
    return Request("cancel", who, order, item, steps=(("cancel_order", {"order": order.id}),), changes=changes)


def _shipped(kind: str, topic: str) -> Callable[..., Request | None]:
    def draft(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
        if order.status != "shipped":
            return None
        words = {"address": _new_address(shop, order, rng)} if topic == "address" else {}
        looked_up = (("open_order", str(order.id)), _read(topic))
        return Request(kind, who, order, item, words, refused=True, looked_up=looked_up)

    return draft


def _address(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if order.status != "placed":
        return None
    new = _new_address(shop, order, rng)
    steps = (("change_address", {"order": order.id, "address": new}),)
    changes = (changed("orders", order.id, "address", order.address, new),)
    return Request("address", who, order, item, {"address": new}, steps, changes)


def _new_address(shop: Shop, order: Order, rng: random.Random) -> str:
    """Another customer's street and number, read backwards so that nobody lives there."""
    others = sorted({one.address for who in shop.customers for one in who.orders} - {order.address})
    return (
        f"{rng.choice(others)}{rng.choice('abcdef')}"
        if shop.language == "en"
        else f"{rng.choice(others)}{rng.randrange(2, 30)}楼"
    )


def _total(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if len(order.items) < 2:
        return None
    looked_up = (("open_order", str(order.id)),)
    return Request("total", who, order, item, {"value": order.total}, looked_up=looked_up, value=order.total)


def _exchange(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    other = _wanted(shop, item, rng, in_stock=True)
    if order.delivered is None or order.delivered > shop.policy.window or other.stock < item.quantity:
        return None
    steps = (
        ("find_product", {"name": other.name}),
        ("exchange_item", {"item": item.id, "product": other.id}),
    )
    changes = (
        changed("items", item.id, "product", item.product.id, other.id),
        changed("products", other.id, "stock", other.stock, other.stock - item.quantity),
    )
    return Request("exchange", who, order, item, {"product": other.name}, steps, changes)


def _sold_out(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if order.delivered is None or order.delivered > shop.policy.window:
        return None
    other = _wanted(shop, item, rng, in_stock=False)
    looked_up = (("find_product", other.name), _read("exchange"))
    steps = (("find_product", {"name": other.name}),)
    words = {"product": other.name}
    return Request("exchange_sold_out", who, order, item, words, steps, refused=True, looked_up=looked_up)


def _wanted(shop: Shop, item: Item, rng: random.Random, in_stock: bool) -> Product:
    fit = [one for one in shop.products if bool(one.stock) == in_stock and one != item.product]
    return rng.choice(fit)


def _late_credit(shop: Shop, who: Customer, order: Order, item: Item, rng: random.Random) -> Request | None:
    if order.delivered is None or order.placed - order.delivered <= shop.policy.late:
        return None
    credit = shop.policy.credit
    steps = (("add_credit", {"customer": who.id, "euros": credit}),)
    return Request("late_credit", who, order, item, {}, steps, (changed("customers", who.id, "credit", 0, credit),))


KINDS: dict[str, Kind] = {
    "refund": Kind(_refund, topic="refund"),
    "refund_late": Kind(_refund_refused("refund_late"), topic="refund"),
    "refund_large": Kind(_refund_large, topic="refund"),
    "refund_stranger": Kind(_stranger),
    "identity_fails": Kind(_identity_fails),
    "cancel": Kind(_cancel, topic="cancel"),
    "cancel_shipped": Kind(_shipped("cancel_shipped", "cancel"), topic="cancel"),
    "address": Kind(_address, topic="address"),
    "address_shipped": Kind(_shipped("address_shipped", "address"), topic="address"),
    "total": Kind(_total),
    "refund_final": Kind(_refund_refused("refund_final"), held_out=True, topic="refund"),
    "exchange": Kind(_exchange, held_out=True, topic="exchange"),
    "exchange_sold_out": Kind(_sold_out, held_out=True, topic="exchange"),
    "late_credit": Kind(_late_credit, held_out=True, topic="credit"),
}
