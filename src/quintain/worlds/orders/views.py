"""What the tools of a shop show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundCustomer:
    """A customer by name."""

    customer: str
    name: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Result of an identity check."""

    customer: str
    confirmed: bool


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """An order with the names of what was bought."""

    order: int
    status: str
    products: list[str]


@dataclass(frozen=True, slots=True)
class OrderItem:
    """A line of an order; prices are in euros for one piece."""

    item: int
    product: str
    category: str
    quantity: int
    price: int
    status: str


@dataclass(frozen=True, slots=True)
class OpenedOrder:
    """An order."""

    order: int
    customer: str
    status: str
    placed_days_ago: int
    delivered_days_ago: int | None
    address: str
    items: list[OrderItem]


@dataclass(frozen=True, slots=True)
class FoundProduct:
    """A product that is sold."""

    product: str
    name: str
    price: int
    stock: int
