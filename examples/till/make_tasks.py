"""Writes train.jsonl and eval.jsonl. A shop (a cluster) is on one side only: no evaluated price is trained on."""

from __future__ import annotations

import random
from pathlib import Path

from quintain.interface.tasks import Task, save_tasks

ITEMS = ("tea", "bread", "soap", "honey", "rice", "salt", "a pen", "a cup", "a lamp", "a brush")


FIRST = ("Mill", "Oak", "River", "North", "Stone", "Lime", "Hill", "Garden", "Abbey", "Ferry", "Rose", "Tower")
SECOND = ("Lane", "Gate", "Yard", "Row", "Street", "Court")
PLACES = [f"{first} {second}" for first in FIRST for second in SECOND]
"""Where each shop stands: its tasks say so, and no evaluated task reads like one of training."""


def shop_tasks(shop: str, place: str) -> list[Task]:
    """Four tasks about one shop: two look-ups and two sums."""
    draw = random.Random(f"{shop} in {place}")
    items = draw.sample(ITEMS, 6)
    prices = {item: draw.randrange(20, 2000) for item in items}
    tasks = []
    for number, chosen in enumerate((items[:1], items[1:2], items[2:4], items[4:6])):
        names, several = " and ".join(chosen), len(chosen) > 1
        prompt = f"do {names} cost together" if several else f"does {names} cost"
        tasks.append(
            Task(
                id=f"{shop}-{number}",
                world="till",
                prompt=f"How many cents {prompt} in {place}?",
                setup={"prices": prices, "items": list(chosen)},
                answer=str(sum(prices[item] for item in chosen)),
                cluster=shop,
                template="sum" if several else "price",
                tags=("lang:en",),
            )
        )
    return tasks


def write(folder: Path) -> None:
    """Writes both files."""
    for split, own in (("train", PLACES[:60]), ("eval", PLACES[60:])):
        made = [shop_tasks(f"{split}-shop-{n}", place) for n, place in enumerate(own)]
        save_tasks(folder / f"{split}.jsonl", [task for tasks in made for task in tasks])


if __name__ == "__main__":
    write(Path(__file__).parent)
