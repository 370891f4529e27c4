"""A world any random model can learn: the first token it writes should be one of a quarter of the vocabulary."""

from __future__ import annotations

import os

from quintain import Task, Verdict, World
from quintain.interface.errors import InfraError
from quintain.interface.tools import Toolset


class Picker(World):
    name = "picker"
    instructions = "Pick."

    @classmethod
    def generate(cls, split, count, seed, languages, templates=None, **options):
        return [Task(f"{split}-{n}", "picker", f"Pick {n}.", template="pick") for n in range(count)]

    def toolset(self):
        return Toolset([])

    def verify(self, task, episode):
        first = episode.turns[0].action.generation.ids[0]
        return Verdict(success=first % 4 == 0)


class Halves(Picker):
    """Every second task wants another quarter of the vocabulary: no single token is right everywhere."""

    def verify(self, task, episode):
        first = episode.turns[0].action.generation.ids[0]
        return Verdict(success=first % 4 == int(task.id[-1]) % 2)


class Equal(Picker):
    """Nobody ever succeeds."""

    def verify(self, task, episode):
        return Verdict(success=False)


class Broken(Picker):
    """No episode can be played while the environment says so."""

    def reset(self, task):
        if os.environ.get("PICKER_BROKEN"):
            raise InfraError("the picker's database is gone")


class Flaky(Picker):
    """Most episodes of one task can't be judged: its group is topped up, and never learnt from."""

    def verify(self, task, episode):
        sample = int(episode.id.rpartition("#")[2])
        if task.id == "train-0" and sample % 8:
            raise InfraError("the judge is gone")
        return super().verify(task, episode)


class Asking(Picker):
    """Somebody has more to say."""

    def user(self, view):
        return None
