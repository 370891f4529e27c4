"""A world with state, for tests: a ladder to climb."""

from __future__ import annotations

import time

from quintain import World, tool


class Ladder(World):
    name = "ladder"
    instructions = "Hold on."

    def reset(self, task):
        self.at = task.setup["start"]

    @tool
    def climb(self, rungs: int) -> int:
        """Climbs."""
        if self.at + rungs > 20:
            raise ValueError("the ladder has 20 rungs")
        self.at += rungs
        if rungs == 7:
            time.sleep(600)
        return self.at

    @tool(read_only=True)
    def look(self) -> list[int]:
        """The rungs above."""
        return list(range(self.at + 1, 21))
