"""Makes tasks: draws a shop, a customer and requests, and writes the conversation down."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from quintain.interface.tasks import Task
from quintain.worlds.drawing import Language, Split, draw_tasks, known_languages, known_split, known_templates
from quintain.worlds.orders.phrases import CLOSINGS, GIVEN, QUESTIONS, REQUESTS, SAYS
from quintain.worlds.orders.requests import KINDS, Request, candidates
from quintain.worlds.orders.shop import Customer, Shop, open_shop

SHOPS: dict[Split, int] = {"train": 300, "eval": 250}
"""Shops of each side and language."""

LEVELS = (1, 2, 3)
"""1: the customer says everything at once. 2: name, postcode and order number must be asked for. 3: the customer does
not know the order number either, so the order must be found by what was bought."""

_PATIENCE = 60
"""Shops drawn in a row without a new task after which a template and language count as used up."""


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of task.

    Attributes:
        kinds: of requests one of which is drawn for each place in the conversation.
        requests: fewest and most of a conversation.
        held_out: never used in training.
        long: 20 to 60 turns; made only where `long` or its name is asked for.
    """

    kinds: tuple[str, ...]
    requests: tuple[int, int] = (1, 1)
    held_out: bool = False
    long: bool = False


_ALONE = ("identity_fails", "refund_stranger")
"""Kinds that end a conversation in life: whoever fails the identity check has no second request."""

_SEEN = tuple(name for name, kind in KINDS.items() if not kind.held_out and name not in _ALONE)
_ALL = tuple(name for name in KINDS if name not in _ALONE)

TEMPLATES: dict[str, Template] = {
    **{name: Template((name,), held_out=kind.held_out) for name, kind in KINDS.items()},
    "two_requests": Template(_SEEN, (2, 2)),
    "three_requests": Template(_ALL, (3, 3), held_out=True),
    "conversation": Template(_SEEN, (9, 13), long=True),
}


def generate(
    split: str, n: int, seed: int, languages: Sequence[str] = ("en",), templates: Sequence[str] = ()
) -> list[Task]:
    """Makes `n` different tasks; templates, languages and levels in turn.

    The shops of `train` and `eval` share no name, product, address, wording or policy figure. Held-out templates carry
    the tag `held_out_template` and are part of `eval` only. The same arguments give the same tasks in every process.

    Args:
        split: `train` or `eval`.
        n: how many.
        seed: of the draws.
        languages: `en`, `zh` or both.
        templates: names of templates, or `seen`, `held_out` and `long` for the three kinds; `level:1` to `level:3`
            keep to these levels. By default all short templates the split may use, at all levels.

    Raises:
        InputError: an argument is unknown, or there are fewer than `n` different tasks.
    """
    side = known_split("orders", split)
    levels = [level for level in LEVELS if f"level:{level}" in templates] or list(LEVELS)
    names = _names(split, [name for name in templates if name not in {f"level:{level}" for level in LEVELS}])
    rng = random.Random(f"orders {split} {seed}")
    places = [
        (name, language, level)
        for level in levels
        for language in known_languages("orders", languages)
        for name in names
    ]

    def one(place: tuple[str, Language, int], _: int) -> Task | None:
        return _draw(side, *place, rng)

    return draw_tasks("orders", f"{split} tasks of {', '.join(names)}", n, places, one, patience=_PATIENCE)


def _names(split: str, wanted: Sequence[str]) -> list[str]:
    kinds = {
        "seen": [name for name, one in TEMPLATES.items() if not one.held_out and not one.long],
        "held_out": [name for name, one in TEMPLATES.items() if one.held_out],
        "long": [name for name, one in TEMPLATES.items() if one.long],
    }
    usual = kinds["seen"] + kinds["held_out"] * (split == "eval")
    return known_templates("orders", split, wanted, kinds=kinds, usual=usual, allowed=usual + kinds["long"])


def _draw(split: Split, name: str, language: Language, level: int, rng: random.Random) -> Task | None:
    shop = open_shop(split, language, rng.randrange(SHOPS[split]))
    requests = _requests(TEMPLATES[name], shop, rng)
    return _Writer(shop, name, level, requests, rng).task() if requests else None


def _requests(template: Template, shop: Shop, rng: random.Random) -> list[Request]:
    """Requests of one customer about different orders; empty where the shop has no fit."""
    count = rng.randint(*template.requests)
    customers = [shop.customers[0]] if template.long else list(shop.customers)
    kinds = rng.choices(template.kinds, k=3 * count) if template.long else rng.sample(template.kinds, count)
    found: list[Request] = []
    for kind in kinds:
        taken = {one.order.id for one in found}
        fit = (one for one in candidates(kind, shop, customers, rng) if one.order.id not in taken)
        request = next(fit, None)
        if request is not None and len(found) < count:
            found.append(request)
            customers = [request.customer]
    return found if len(found) == count else []


class _Writer:
    """Writes a conversation down as a task: prompt, script of the customer, gold, and the plan of the oracle."""

    def __init__(self, shop: Shop, template: str, level: int, requests: list[Request], rng: random.Random) -> None:
        self._shop, self._template, self._level, self._requests = shop, template, level, requests
        self._rng = rng
        self._customer: Customer = requests[0].customer
        self._postcode = requests[0].postcode or self._customer.postcode
        self._plan: list[dict[str, Any]] = []
        self._topics: set[str] = set()
        self._listed = False

    def task(self) -> Task:
        texts = [self._first_words(one, number) for number, one in enumerate(self._requests)]
        for number, request in enumerate(self._requests):
            self._plan_request(request, number)
        shop, template = self._shop, TEMPLATES[self._template]
        what = " ".join(f"{one.kind} {one.order.id} {one.item.id} {one.words}" for one in self._requests)
        digest = sha256(f"{self._customer.id} {what}".encode()).hexdigest()[:8]
        setup = {
            "shop": [shop.split, shop.language, shop.number],
            "requests": [
                {"text": text, "facts": self._facts(one)} for text, one in zip(texts, self._requests, strict=True)
            ],
            "plan": self._plan,
        }
        answer = {"requests": [self._gold(one) for one in self._requests]}
        tags = [f"lang:{shop.language}", f"hops:{len(self._requests)}", f"level:{self._level}"]
        tags += ["held_out_template"] * template.held_out
        name = f"orders-{shop.split}-{self._template}-{shop.language}-{self._level}-{shop.number}-{digest}"
        return Task(name, "orders", texts[0], setup, answer, shop.cluster, self._template, tuple(tags))

    def _facts(self, request: Request) -> dict[str, Any]:
        """What the customer can tell; the order number is unknown at level 3, unless nobody could find it otherwise."""
        known = self._level < 3 or request.stranger
        facts = {"name": self._customer.name, "postcode": self._postcode, "order": request.order.id if known else None}
        return facts | {key: value for key, value in request.words.items() if key == "address"}

    def _first_words(self, request: Request, number: int) -> str:
        shop = self._shop
        wordings = REQUESTS[request.kind][shop.language][shop.split]
        text = self._rng.choice(wordings).format(item=request.item.product.name, **request.words)
        facts = self._facts(request)
        told = [key for key in facts if key == "order" or number == 0] if self._level == 1 else []
        if self._level == 1 and "address" in facts:
            told = [*dict.fromkeys([*told, "address"])]
        joint = " " if shop.language == "en" else ""
        said = joint.join([text, *(GIVEN[shop.language][key][shop.split].format(**facts) for key in told)])
        return SAYS[shop.language]["next"][shop.split].format(request=said) if number else said

    def _gold(self, request: Request) -> dict[str, Any]:
        return {
            "kind": request.kind,
            "changes": list(request.changes),
            "refused": request.refused,
            "looked_up": [list(one) for one in request.looked_up],
            "customer": self._customer.id,
            "value": request.value,
            "order": request.order.id,
            "identified": not request.postcode,
        }

    def _plan_request(self, request: Request, number: int) -> None:
        """The turns of the oracle: ask, find, open, read, act, close."""
        missing = self._missing(request, number)
        if missing:
            self._ask(missing)
        if number == 0:
            self._identify()
        if not request.postcode:
            self._open(request)
            topic = KINDS[request.kind].topic
            if topic and topic not in self._topics:
                self._topics.add(topic)
                self._call(("read_policy", {"topic": topic}))
            for step in request.steps:
                self._call(step)
        words = {"item": request.item.product.name, "order": request.order.id, **request.words}
        self._plan.append({"close": CLOSINGS[self._shop.language][request.kind].format(**words)})

    def _missing(self, request: Request, number: int) -> list[str]:
        if self._level == 1:
            return []
        names = ["name", "postcode"] if number == 0 else []
        if request.postcode:  # without an identity nothing else matters
            return names
        names += ["order"] if self._level == 2 or request.stranger else []
        return names + ["address"] * ("address" in request.words and not request.refused)

    def _ask(self, names: list[str]) -> None:
        words = QUESTIONS[self._shop.language]
        *first, last = (words[name] for name in names)
        comma = ", " if self._shop.language == "en" else "、"
        listed = words["and"].join(filter(None, (comma.join(first), last)))
        self._plan.append({"ask": words["ask"].format(facts=listed)})

    def _identify(self) -> None:
        """Finds the customer and checks the namesakes one after the other until one is confirmed."""
        self._call(("find_customer", {"name": self._customer.name}))
        for one in self._shop.customers:
            if one.name == self._customer.name:
                self._call(("check_identity", {"customer": one.id, "postcode": self._postcode}))
            if one.id == self._customer.id:
                return

    def _open(self, request: Request) -> None:
        if self._level == 3 and not request.stranger and not self._listed:
            self._listed = True
            self._call(("list_orders", {"customer": self._customer.id}))
        self._call(("open_order", {"order": request.order.id}))

    def _call(self, step: tuple[str, dict[str, Any]]) -> None:
        self._plan.append({"call": list(step)})
