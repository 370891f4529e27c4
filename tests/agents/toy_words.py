"""A format in which a token is a word, and an engine that plays a script: lengths can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

from quintain.interface.errors import FormatError
from quintain.interface.generation import Generation
from quintain.interface.messages import Action, Call


class Words:
    """`call NAME`, or an answer, each ended by `.`; whoever speaks before a turn ends with `>`.

    A thought is one word that begins with `(`.
    """

    id, version, digest = "words", "1", "words"

    def __init__(self, forgets: bool = False) -> None:
        self.forgets = forgets
        self.known: list[str] = ["."]
        self.stop = (0,)

    def ids(self, text: str) -> list[int]:
        self.known += [word for word in dict.fromkeys(text.split()) if word not in self.known]
        return [self.known.index(word) for word in text.split()]

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.known[one] for one in ids)

    def prompt(self, messages, toolset):
        return self.ids(" ".join(one.text for one in messages) + " >")

    def observe(self, observations):
        return self.follow([observations])

    def say(self, message):
        return self.follow([message])

    def follow(self, said):
        texts = [one.text if hasattr(one, "text") else " ".join(seen.content for seen in one) for one in said]
        return self.ids(" ".join(texts) + " >")

    def write(self, action):
        made = [f"call {one.tool}" for one in action.calls] or [action.answer or action.summary]
        return self.ids(" ".join(filter(None, [action.thought, *made, "."])))

    def recall(self, ids, action):
        made = [f"call {one.tool}" for one in action.calls] or [action.answer]
        return [*ids, *self.ids(" ".join([*made, "."]))]

    def parse(self, ids, *, cut, prefix):
        words = [self.known[one] for one in ids if one]
        if cut:
            return Action(error=FormatError("cut", "cut"), text=" ".join(words))
        thought = words.pop(0) if words[0].startswith("(") else ""
        if words[0] == "call":
            return Action(thought=thought, calls=(Call(f"{prefix}0", words[1], {}),))
        return Action(thought=thought, answer=" ".join(words))


class Scripted:
    """An engine that writes the next line of a script, whatever it is asked; the last line again and again."""

    mismatch, version = 0.0, 0

    def __init__(self, dialect: Words, *lines: str) -> None:
        self.dialect = dialect
        self.lines = list(lines)
        self.asked: list[str] = []
        self.most: list[int] = []
        self.sessions: list[str] = []
        self.released: list[str] = []

    async def generate(self, ids, *, session, group, sampling):
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        self.asked.append(self.dialect.text(ids))
        self.most.append(sampling.max_tokens)
        self.sessions.append(session)
        made = tuple(self.dialect.ids(line))[: sampling.max_tokens]
        certain = (-0.5,) * len(made)
        return Generation(made, certain, certain, "stop" if made[-1] == 0 else "length")

    async def release(self, session):
        self.released.append(session)
