"""A tool's result that holds the task itself is a leak; one about the task's subject, or an echo, is not."""

from __future__ import annotations

import pytest

from quintain.curation.leaks import search_leaks
from quintain.interface.episode import Episode, Outcome, Usage, Verdict
from quintain.interface.messages import Action, Call, Observation, Turn
from quintain.interface.tasks import Task

PROMPT = "Which of the rivers that end in the Caspian Sea is the longest, and how many countries does it cross?"
CANARY = "quintain-canary-" + 8 * "07af"
TASK = Task("caspian-rivers-0017", "web", PROMPT, answer={"text": "the Volga", "number": 1})


def leaks(result: str, query: str = "longest river Caspian"):
    call = Call("c", "search", {"query": query})
    turns = (Turn(Action(calls=(call,)), (Observation("c", "search", result),)), Turn(Action(answer="the Volga")))
    episode = Episode(
        "e1", TASK.id, "c", "web", "agent", (), turns, Outcome("answered"), Verdict(success=True), Usage()
    )
    return search_leaks([episode], [TASK])


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (f"Benchmark questions. 17) {PROMPT} Answer: the Volga.", "verbatim run"),
        ("answers.csv: caspian-rivers-0016;no caspian-rivers-0017;the Volga", "task id"),
        (f"data: {CANARY} ...", "canary"),
    ],
)
def test_a_page_of_the_benchmark_is_flagged(result, reason):
    (found,) = leaks(result)
    assert (found.episode, found.task, found.turn, found.tool, found.reason) == ("e1", TASK.id, 0, "search", reason)


def test_a_page_about_the_subject_is_none():
    assert leaks("The Volga is the longest river in Europe. It ends in the Caspian Sea and crosses one country.") == []


def test_a_result_that_repeats_the_query_is_none():
    assert leaks(f"No document found for: {PROMPT}", query=PROMPT) == []
