"""Episodes of a small library, made by hand: look a book up, open it, answer."""

from __future__ import annotations

import random

from quintain.interface.episode import Digests, Episode, Outcome, Usage, Verdict
from quintain.interface.errors import FormatError
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, Turn, message

TITLES = ("Emma", "Ulysses", "Dracula", "Walden", "Carmilla", "Candide", "Hamlet", "Faust", "Kim", "Nana")


def turn(tool: str, title: str, shown: str, thought: str = "", error: str = "", **more: int) -> Turn:
    call = Call("c0", tool, {"title": title, **more})
    return Turn(Action(thought, (call,)), (Observation("c0", tool, shown, error=error),))


def answer(text: str, thought: str = "") -> Turn:
    return Turn(Action(thought, answer=text))


def unreadable() -> Turn:
    error = FormatError("json", "not valid JSON")
    return Turn(Action(error=error, text="{"), (Observation(FORMAT_CALL_ID, "", "not valid JSON", error="format"),))


def episode(
    name: str, turns: tuple[Turn, ...], *, success: bool = True, question: str = "Who wrote Emma?", **more: object
) -> Episode:
    return Episode(
        id=name,
        task_id=name,
        cluster=str(more.pop("cluster", name)),
        world="library",
        agent="oracle",
        messages=(message("system", "Use the library."), message("user", question)),
        turns=turns,
        outcome=Outcome("answered"),
        verdict=Verdict(success),
        usage=Usage(),
        digests=Digests(toolset="sha256:11"),
        **more,
    )


def library(count: int, seed: int = 0) -> list[Episode]:
    """Episodes of three to five turns; half of them fail."""
    draw = random.Random(seed)
    made = []
    for number in range(count):
        title = draw.choice(TITLES)
        pages = draw.sample(range(1, 40), draw.randrange(1, 4))
        reading = [turn("open", title, f"Text {page}.", f"On to page {page}.", page=page) for page in pages]
        turns = (turn("search", title, title, "Let me see."), *reading, answer(str(draw.randrange(1000)), "Found it."))
        question = f"When was {title} written?"
        made.append(episode(f"e{number}", turns, success=number % 2 == 0, question=question))
    return made
