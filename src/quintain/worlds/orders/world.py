"""The world `orders`: a support agent of a shop, its customers, its policies and its database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal

from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.messages import Action, Call, Message, message
from quintain.interface.tasks import Task
from quintain.interface.tools import tool
from quintain.interface.view import View
from quintain.worlds.drawing import LANGUAGES, Language
from quintain.worlds.orders.customer import closings, is_question, reply
from quintain.worlds.orders.judging import judge
from quintain.worlds.orders.phrases import THOUGHTS
from quintain.worlds.orders.shop import image_of, open_shop, policies
from quintain.worlds.orders.tasks import SHOPS, generate
from quintain.worlds.orders.views import FoundCustomer, FoundProduct, Identity, ListedOrder, OpenedOrder, OrderItem
from quintain.worlds.rows import open_copy

Topic = Literal["refund", "cancel", "address", "exchange", "credit"]


class Orders(World):
    """Customer support on a live database: what counts is its state at the end, and that the shop's rules were kept.

    An episode succeeds if every request was closed, the rows that had to change did, no other row changed, the
    customer's identity was confirmed before anything was changed or told, and each refusal rests on the look-ups that
    justify it. The tools refuse what is impossible (an order that does not exist); what is forbidden they let happen.
    """

    name: ClassVar[str] = "orders"
    instructions: ClassVar[str] = (
        "You serve a shop's customers with the tools. Ask the customer for what you need, as a question. Check the "
        "customer's identity before you change or tell anything; act only on orders of that customer and as the shop's "
        "policies allow. Say when a request is done. If it is forbidden, change nothing and reply "
        "`Cannot answer: <reason>`."
    )

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.place: list[Any] = []
        self.database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Tasks of shops that are made on the fly (`tasks.generate`)."""
        return generate(split, count, seed, languages, templates)

    def data_digest(self) -> str:
        """Digest of one shop of each side and language: they change whenever the making of shops does."""
        return _shops_digest()

    def reset(self, task: Task) -> None:
        """Opens the task's shop; the customer's script goes into the database too, so that one image is all state."""
        self.place, self.requests = task.setup["shop"], task.setup["requests"]
        self.database = open_copy(self._image())
        self.database.execute("INSERT INTO script VALUES(0, ?)", (json.dumps([self.place, self.requests]),))

    def _image(self) -> bytes:
        split, language, number = self.place
        return image_of(split, language, number)

    def snapshot(self) -> bytes:
        """The database as SQLite serializes it."""
        return self.database.serialize()

    def restore(self, state: bytes) -> None:
        """Takes a state back."""
        self.database = open_copy(state)
        self.place, self.requests = json.loads(self._row("script", 0)["text"])

    def close(self) -> None:
        """Closes the database."""
        self.database.close()

    @tool
    def find_customer(self, name: str) -> list[FoundCustomer]:
        """Finds customers by their whole name.

        Args:
            name: first and last name.
        """
        self._log("find_customer", name)
        rows = self._rows("SELECT id, name FROM customers WHERE name = ? COLLATE NOCASE ORDER BY id", name.strip())
        return [FoundCustomer(*row) for row in rows]

    @tool
    def check_identity(self, customer: str, postcode: str) -> Identity:
        """Compares a postcode with the customer's.

        Args:
            customer: id such as C12.
            postcode: as the customer says it.
        """
        known = self._row("customers", customer)["postcode"]
        confirmed = postcode.strip() == known
        self._log("check_identity", customer, customer, "confirmed" if confirmed else "failed")
        return Identity(customer, confirmed)

    @tool
    def list_orders(self, customer: str) -> list[ListedOrder]:
        """Lists a customer's orders.

        Args:
            customer: id.
        """
        self._log("list_orders", customer, customer)
        self._row("customers", customer)
        rows = self._rows("SELECT id, status FROM orders WHERE customer = ? ORDER BY id", customer)
        return [ListedOrder(row["id"], row["status"], [one.product for one in self._items(row["id"])]) for row in rows]

    @tool
    def open_order(self, order: int) -> OpenedOrder:
        """Shows an order and its items.

        Args:
            order: number.
        """
        self._log("open_order", order)
        row = self._row("orders", order)
        days = (row["placed_days_ago"], row["delivered_days_ago"])
        return OpenedOrder(order, row["customer"], row["status"], *days, row["address"], self._items(order))

    @tool
    def find_product(self, name: str) -> FoundProduct:
        """Shows price and stock of a product.

        Args:
            name: its whole name.
        """
        self._log("find_product", name.strip())
        rows = self._rows("SELECT id, name, price, stock FROM products WHERE name = ? COLLATE NOCASE", name.strip())
        if not rows:
            raise ValueError(f"no product named {name!r}")
        return FoundProduct(*rows[0])

    @tool
    def read_policy(self, topic: Topic) -> str:
        """What the shop allows.

        Args:
            topic: which policy.
        """
        self._log("read_policy", topic)
        return str(self._row("policies", topic, "topic")["text"])

    @tool
    def refund_item(self, item: int) -> str:
        """Pays back the whole price of an item.

        Args:
            item: number.
        """
        row, order = self._sold(item)
        amount = row["quantity"] * row["price"]
        self._write("refund_item", item, order["customer"], "UPDATE items SET status = 'refunded' WHERE id = ?", item)
        self.database.execute("INSERT INTO refunds(item, amount) VALUES(?, ?)", (item, amount))
        return f"refunded {amount} euros"

    @tool
    def cancel_order(self, order: int) -> str:
        """Cancels an order.

        Args:
            order: number.
        """
        row = self._row("orders", order)
        if row["status"] == "cancelled":
            raise ValueError(f"order {order} is cancelled already")
        statement = "UPDATE orders SET status = 'cancelled' WHERE id = ?"
        self._write("cancel_order", order, row["customer"], statement, order)
        return f"order {order} is cancelled"

    @tool
    def change_address(self, order: int, address: str) -> str:
        """Sends an order to another address.

        Args:
            order: number.
            address: the new one.
        """
        row = self._row("orders", order)
        statement = "UPDATE orders SET address = ? WHERE id = ?"
        self._write("change_address", order, row["customer"], statement, " ".join(address.split()), order)
        return f"order {order} goes to {address}"

    @tool
    def exchange_item(self, item: int, product: str) -> str:
        """Takes an item back and sends another product.

        Args:
            item: number.
            product: id of the other product, such as P12.
        """
        row, order = self._sold(item)
        stock = self._row("products", product)["stock"]
        if stock < row["quantity"]:
            raise ValueError(f"only {stock} of {product} in stock, {row['quantity']} needed")
        statement = "UPDATE products SET stock = stock - ? WHERE id = ?"
        self._write("exchange_item", item, order["customer"], statement, row["quantity"], product)
        self.database.execute("UPDATE items SET product = ? WHERE id = ?", (product, item))
        return f"item {item} is now {product}"

    @tool
    def add_credit(self, customer: str, euros: int) -> str:
        """Gives a customer credit.

        Args:
            customer: id.
            euros: how much.
        """
        if not 0 < euros <= 1000:
            raise ValueError(f"a credit is 1 to 1000 euros, found {euros}")
        self._row("customers", customer)
        statement = "UPDATE customers SET credit = credit + ? WHERE id = ?"
        self._write("add_credit", customer, customer, statement, euros, customer)
        return f"{customer} has {euros} euros more credit"

    @tool
    def escalate_order(self, order: int) -> str:
        """Hands an order to a supervisor.

        Args:
            order: number.
        """
        row = self._row("orders", order)
        self._write("escalate_order", order, row["customer"], "INSERT INTO escalations(order_id) VALUES(?)", order)
        return f"order {order} is escalated"

    def user(self, view: View) -> Message | None:
        """The customer: answers a question, says the next request, or has none left."""
        answer = view.turns[-1].action.answer or ""
        closed = len(closings(view.turns))
        if closed >= len(self.requests):
            return None
        if not is_question(answer):
            return message("user", self.requests[closed]["text"])
        split, language, _ = self.place
        return message("user", reply(answer, self.requests[closed]["facts"], language, split))

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """The calls of the reference solution, each with what it is about, and whether it was made."""
        done = {(row["tool"], row["subject"]) for row in self._rows("SELECT tool, subject FROM log")}
        wanted = [(name, str(next(iter(arguments.values())))) for name, arguments in _planned(task)]
        return {f"{name} {subject}": (name, subject) in done for name, subject in wanted}

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Compares the rows with what they must be, and the log with the shop's rules (`judging.judge`)."""
        return judge(task.answer["requests"], open_copy(self._image()), self.database, closings(episode.turns))

    def solution(self, task: Task) -> Solution:
        """The conversation as the generator planned it.

        Raises:
            NotImplementedError: the task was not made by the generator.
        """
        if "plan" not in task.setup:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        thoughts = THOUGHTS[_language(task)]
        for number, step in enumerate(task.setup["plan"]):
            if "call" in step:
                name, arguments = step["call"]
                thought = thoughts.get(name, thoughts["act"])
                yield Action(thought=thought, calls=(Call(f"c{number}", name, arguments),))
            else:
                ((kind, text),) = step.items()
                yield Action(thought=thoughts[kind], answer=text)

    def _sold(self, item: int) -> tuple[sqlite3.Row, sqlite3.Row]:
        """An item that can still be given back, and its order."""
        row = self._row("items", item)
        if row["status"] != "sold":
            raise ValueError(f"item {item} is {row['status']} already")
        return row, self._row("orders", row["order_id"])

    def _items(self, order: int) -> list[OrderItem]:
        query = (
            "SELECT items.id, name, category, quantity, items.price, status FROM items "
            "JOIN products ON products.id = product WHERE order_id = ? ORDER BY items.id"
        )
        return [OrderItem(*row) for row in self._rows(query, order)]

    def _row(self, table: str, key: Any, column: str = "id") -> sqlite3.Row:
        rows = self._rows(f"SELECT * FROM {table} WHERE {column} = ?", key)
        if not rows:
            raise ValueError(f"no {table.removesuffix('s')} {key!r}")
        return rows[0]

    def _rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        return list(self.database.execute(query, values))

    def _write(self, name: str, subject: Any, customer: str, statement: str, *values: Any) -> None:
        self._log(name, subject, customer)
        self.database.execute(statement, values)

    def _log(self, name: str, subject: Any, customer: str = "", result: str = "") -> None:
        statement = "INSERT INTO log(tool, subject, customer, result) VALUES(?, ?, ?, ?)"
        self.database.execute(statement, (name, str(subject), customer, result))


def _planned(task: Task) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((step["call"][0], step["call"][1]) for step in task.setup.get("plan", ()) if "call" in step)


def _language(task: Task) -> Language:
    return "zh" if "lang:zh" in task.tags else "en"


@cache
def _shops_digest() -> str:
    """Of what the shops hold, not of SQLite's files: those differ between its versions."""
    shops = [open_shop(split, language, 0) for split in SHOPS for language in LANGUAGES]
    return digest({"world": "orders", "shops": [[repr(shop), policies(shop)] for shop in shops]})
