"""Writes train.jsonl and eval.jsonl. A shop (a cluster) is on one side only: no evaluated price is trained on."""

from __future__ import annotations

import random
from pathlib import Path

from quintain.interface.tasks import Task, save_tasks

ITEMS = ("tea", "bread", "soap", "honey", "rice", "salt", "a pen", "a cup", "a lamp", "a brush")


def shop_tasks(shop: str) -> list[Task]:
    """Four tasks about one shop: two look-ups and two sums."""
    draw = random.Random(shop)
    items = draw.sample(ITEMS, 6)
    prices = {item: draw.randrange(20, 2000) for item in items}
    tasks = []
    for number, chosen in enumerate((items[:1], items[1:2], items[2:4], items[4:6])):
        names, several = " and ".join(chosen), len(chosen) > 1
        prompt = f"How many cents do {names} cost together?" if several else f"How many cents does {names} cost?"
        tasks.append(
            Task(
                id=f"{shop}-{number}",
                world="till",
                prompt=prompt,
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
    for split, shops in (("train", 60), ("eval", 12)):
        save_tasks(folder / f"{split}.jsonl", [task for n in range(shops) for task in shop_tasks(f"{split}-shop-{n}")])


if __name__ == "__main__":
    write(Path(__file__).parent)
