"""A till: the agent looks up prices and adds them. The smallest world that can be measured and trained on."""

from __future__ import annotations

from quintain import Episode, Task, Verdict, World, tool
from quintain.harness.world import Solution
from quintain.interface.messages import Action, Call


class Till(World):
    """One shop's price list; one instance per episode."""

    name = "till"
    instructions = "Use the tools. Reply with the number of cents only."

    def reset(self, task: Task) -> None:
        """Takes the task's price list."""
        self.prices = task.setup["prices"]

    @tool
    def price(self, item: str) -> int:
        """Price of one item, in cents.

        Args:
            item: exact name of the item.
        """
        return self.prices[item]

    @tool
    def add(self, amounts: list[int]) -> int:
        """Sum of amounts.

        Args:
            amounts: what to add.
        """
        return sum(amounts)

    def verify(self, task: Task, episode: Episode) -> Verdict:
        """Right is the exact number and nothing around it."""
        answer = (episode.answer or "").strip()
        return Verdict(success=answer == task.answer, reasons=(f"answered {answer!r}, expected {task.answer!r}",))


class TaughtTill(Till):
    """The same till with a reference solution, so that an oracle can play it and a model can learn from that."""

    def solution(self, task: Task) -> Solution:
        """Looks every item up, adds if there are several, answers."""
        amounts = []
        for number, item in enumerate(task.setup["items"]):
            (seen,) = yield Action(calls=(Call(f"price{number}", "price", {"item": item}),))
            amounts.append(seen.value)
        if len(amounts) > 1:
            (seen,) = yield Action(calls=(Call("sum", "add", {"amounts": amounts}),))
        yield Action(answer=seen.content)
