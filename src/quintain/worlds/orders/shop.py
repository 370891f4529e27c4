"""A shop: customers, goods, orders and policies, drawn from its number and laid down in SQLite."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from quintain.worlds.drawing import Language, Split
from quintain.worlds.orders.names import CUSTOMS, NAMES, Customs, Names
from quintain.worlds.orders.phrases import POLICIES

Status = Literal["placed", "shipped", "delivered"]

SCHEMA = """
PRAGMA page_size = 1024;
CREATE TABLE customers(id TEXT PRIMARY KEY, name TEXT, postcode TEXT, credit INTEGER) WITHOUT ROWID;
CREATE TABLE products(id TEXT PRIMARY KEY, name TEXT, category TEXT, price INTEGER, stock INTEGER) WITHOUT ROWID;
CREATE TABLE orders(
    id INTEGER PRIMARY KEY, customer TEXT, status TEXT, address TEXT,
    placed_days_ago INTEGER, delivered_days_ago INTEGER
);
CREATE TABLE items(
    id INTEGER PRIMARY KEY, order_id INTEGER, product TEXT, quantity INTEGER, price INTEGER, status TEXT
);
CREATE TABLE refunds(id INTEGER PRIMARY KEY, item INTEGER, amount INTEGER);
CREATE TABLE escalations(id INTEGER PRIMARY KEY, order_id INTEGER);
CREATE TABLE policies(topic TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
CREATE TABLE log(id INTEGER PRIMARY KEY, tool TEXT, subject TEXT, customer TEXT, result TEXT);
CREATE TABLE script(id INTEGER PRIMARY KEY, text TEXT);
"""

PRIVATE = ("log", "script")
"""The shop's record of who looked up and changed what, and the customer's script: a verdict compares the others."""

LONG_ORDERS = 20
"""Orders of each shop's first customer: enough for a conversation of many requests."""


@dataclass(frozen=True, slots=True)
class Product:
    """What is sold; the price is in whole euros."""

    id: str
    name: str
    category: str
    price: int
    stock: int


@dataclass(frozen=True, slots=True)
class Item:
    """A line of an order."""

    id: int
    product: Product
    quantity: int

    @property
    def amount(self) -> int:
        """What was paid for it, in euros."""
        return self.quantity * self.product.price


@dataclass(frozen=True, slots=True)
class Order:
    """What a customer bought at once; `delivered` is None until it arrives."""

    id: int
    customer: str
    status: Status
    address: str
    placed: int
    delivered: int | None
    items: tuple[Item, ...]

    @property
    def total(self) -> int:
        """What was paid for it, in euros."""
        return sum(item.amount for item in self.items)


@dataclass(frozen=True, slots=True)
class Customer:
    """Somebody who ordered something; names may occur twice in a shop, postcodes never."""

    id: str
    name: str
    postcode: str
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """What the shop allows. Days and euros are the last ones allowed.

    Attributes:
        window: days after delivery for a refund or an exchange.
        limit: euros of a refund that need no supervisor.
        final: category that is never refunded.
        late: days an order may take without a credit.
        credit: euros of credit for an order that took longer.
    """

    window: int
    limit: int
    final: str
    late: int
    credit: int


@dataclass(frozen=True, slots=True)
class Shop:
    """One shop."""

    split: Split
    language: Language
    number: int
    policy: Policy
    products: tuple[Product, ...]
    customers: tuple[Customer, ...] = field(default=())

    @property
    def cluster(self) -> str:
        """What the tasks of this shop share."""
        return f"shop-{self.split}-{self.language}-{self.number}"


@lru_cache(maxsize=64)
def open_shop(split: Split, language: Language, number: int) -> Shop:
    """The shop of that number, the same in every process."""
    return _Builder(split, language, number).shop()


@lru_cache(maxsize=64)
def image_of(split: Split, language: Language, number: int) -> bytes:
    """The shop as a serialized SQLite database, the log empty."""
    shop = open_shop(split, language, number)
    with sqlite3.connect(":memory:", isolation_level=None) as connection:
        connection.executescript(SCHEMA)
        _fill(connection, shop)
        return connection.serialize()


def _fill(connection: sqlite3.Connection, shop: Shop) -> None:
    orders = [order for customer in shop.customers for order in customer.orders]
    items = [(order, item) for order in orders for item in order.items]
    tables: dict[str, Iterator[tuple[object, ...]]] = {
        "customers": ((one.id, one.name, one.postcode, 0) for one in shop.customers),
        "products": ((one.id, one.name, one.category, one.price, one.stock) for one in shop.products),
        "orders": ((one.id, one.customer, one.status, one.address, one.placed, one.delivered) for one in orders),
        "items": (
            (item.id, order.id, item.product.id, item.quantity, item.product.price, "sold") for order, item in items
        ),
        "policies": iter(policies(shop).items()),
    }
    for table, rows in tables.items():
        for row in rows:
            connection.execute(f"INSERT INTO {table} VALUES({', '.join('?' * len(row))})", row)


def policies(shop: Shop) -> dict[str, str]:
    """What `read_policy` says, by topic."""
    policy = shop.policy
    values = {"window": policy.window, "limit": policy.limit, "final": policy.final}
    values |= {"late": policy.late, "credit": policy.credit}
    return {topic: texts[shop.split].format(**values) for topic, texts in POLICIES[shop.language].items()}


class _Builder:
    def __init__(self, split: Split, language: Language, number: int) -> None:
        self._key = (split, language, number)
        self._rng = random.Random(f"orders {split} {language} {number}")
        self._names: Names = NAMES[split, language]
        self._customs: Customs = CUSTOMS[split]
        self._order = self._rng.randrange(1000, 9000)
        self._item = self._rng.randrange(100, 900)

    def shop(self) -> Shop:
        policy = self._policy()
        products = self._products()
        names = [self._name() for _ in range(self._customs.customers - 1)]
        names.append(self._rng.choice(names))  # somebody has a namesake
        self._rng.shuffle(names)
        postcodes = self._rng.sample(range(10_000, 100_000), len(names))
        first = self._rng.randrange(10, 80)
        customers = tuple(
            self._customer(f"C{first + at}", name, str(postcodes[at]), LONG_ORDERS if at == 0 else 0, policy, products)
            for at, name in enumerate(names)
        )
        return Shop(*self._key, policy, products, customers)

    def _policy(self) -> Policy:
        rng, customs = self._rng, self._customs
        final = rng.choice(sorted(self._names.goods))
        return Policy(
            rng.choice(customs.windows),
            rng.choice(customs.limits),
            final,
            rng.randrange(4, 12),
            5 * rng.randrange(1, 6),
        )

    def _products(self) -> tuple[Product, ...]:
        rng, names = self._rng, self._names
        joint = " " if self._key[1] == "en" else ""
        pairs = [
            (f"{colour}{joint}{good}", kind)
            for kind, goods in names.goods.items()
            for good in goods
            for colour in names.colours
        ]
        chosen = rng.sample(pairs, 36)
        first = rng.randrange(100, 700)
        stocks = [0] * 6 + [rng.randrange(1, 20) for _ in range(30)]
        return tuple(
            Product(f"P{first + at}", name, kind, rng.randrange(5, 120), stocks[at])
            for at, (name, kind) in enumerate(chosen)
        )

    def _name(self) -> str:
        first, last = self._rng.choice(self._names.first), self._rng.choice(self._names.last)
        return f"{first} {last}" if self._key[1] == "en" else last + first

    def _customer(
        self, identity: str, name: str, postcode: str, orders: int, policy: Policy, products: tuple[Product, ...]
    ) -> Customer:
        rng = self._rng
        count = orders or rng.randint(*self._customs.orders)
        goods = rng.sample(products, len(products))  # a customer buys nothing twice, so a product names its order
        address = self.address()
        made: list[Order] = []
        for _ in range(count):
            size = min(rng.choice((1, 1, 2)), len(goods) - (count - len(made)) + 1)
            made.append(self._draw_order(identity, address, policy, [goods.pop() for _ in range(size)]))
        return Customer(identity, name, postcode, tuple(made))

    def address(self) -> str:
        """Some address."""
        street, number = self._rng.choice(self._names.streets), self._rng.randrange(1, 200)
        return f"{street} {number}" if self._key[1] == "en" else f"{street}{number}号"

    def _draw_order(self, customer: str, address: str, policy: Policy, goods: list[Product]) -> Order:
        rng = self._rng
        self._order += rng.randrange(1, 9)
        status: Status = rng.choice(("placed", "shipped", "delivered", "delivered", "delivered"))
        delivered = self._delivered(policy) if status == "delivered" else None
        placed = (delivered or 0) + rng.randrange(1, policy.late + 8)
        return Order(self._order, customer, status, address, placed, delivered, tuple(map(self._draw_item, goods)))

    def _delivered(self, policy: Policy) -> int:
        """Days ago; on the side with edges often just at the border of what is allowed."""
        if self._customs.edges and self._rng.random() < 0.4:
            return policy.window + self._rng.randrange(2)
        early = self._rng.random() < 0.6
        return self._rng.randrange(1, policy.window - 1) if early else policy.window + self._rng.randrange(3, 40)

    def _draw_item(self, product: Product) -> Item:
        self._item += self._rng.randrange(1, 5)
        return Item(self._item, product, self._rng.choice((1, 1, 1, 2, 3)))
