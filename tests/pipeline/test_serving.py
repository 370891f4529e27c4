"""A served agent, through the official client of the protocol against a server process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from quintain import Budget, Task, World
from quintain.cli.main import main
from quintain.interface.messages import message
from quintain.recipe.tables import WorldSection
from quintain.recipe.worlds import RecipeWorld
from quintain.serving.conversation import Told, harness_of

TALLY = [sys.executable, str(Path(__file__).parent / "served_tally.py")]


@contextmanager
def server(*command: str, **environment: str) -> Iterator[str]:
    """A server process; what it yields is its address."""
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | paths | environment)
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        yield next(found[0] for line in lines if (found := re.search(r"http://[^ ]+/v1", line)))
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, "Ctrl-C is how it ends"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture(scope="module")
def tally() -> Iterator[str]:
    """The address of a served agent that keeps a sum, beginning at 100."""
    with server(*TALLY) as url:
        yield url


def ask(url: str, *said: str, system: str = "", **options: Any) -> Any:
    """One request: user and assistant in turn."""
    messages: list[Any] = [{"role": "system", "content": system}] if system else []
    messages += [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)]
    with openai.OpenAI(base_url=url, api_key=options.pop("key", "none"), max_retries=0, timeout=60) as client:
        made = client.chat.completions.create(model=options.pop("model", "tally"), messages=messages, **options)
        return list(made) if options.get("stream") else made


def test_the_agents_tools_run_in_its_world_and_only_its_answer_is_the_content(tally):
    made = ask(tally, "7")
    (choice,) = made.choices
    assert (choice.message.content, choice.finish_reason) == ("The sum is 107.", "stop")
    assert choice.message.reasoning_content.splitlines() == [
        "thinks    I add.",
        "calls     add(n=7)",
        "observes  107",
    ]
    assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens
    assert made.usage.completion_tokens > 0


def test_a_conversation_goes_on_in_the_world_it_left(tally):
    assert ask(tally, "7").choices[0].message.content == "The sum is 107."
    made = ask(tally, "7", "The sum is 107.", "5")
    assert made.choices[0].message.content == "The sum is 112."
    assert made.usage.completion_tokens == ask(tally, "5").usage.completion_tokens, "earlier messages are not counted"
    again = ask(tally, "7", "The sum is 107.", "1")
    assert again.choices[0].message.content == "The sum is 108.", "from the same place again: an edited message"


def test_a_conversation_the_server_does_not_know_goes_on_from_its_texts(tally):
    made = ask(tally, "1", "Noted.", "2", "Noted too.", "5")
    assert made.choices[0].message.content == "The sum is 105.", "in a fresh world"


def test_a_stream_shows_the_work_before_the_answer(tally):
    chunks = ask(tally, "7", stream=True, stream_options={"include_usage": True})
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    reasoning = "".join(getattr(one, "reasoning_content", None) or "" for one in deltas)
    assert reasoning == "thinks    I add.\ncalls     add(n=7)\nobserves  107\n"
    assert "".join(one.content or "" for one in deltas) == "The sum is 107."
    assert deltas[-2].content == "The sum is 107."
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens > 0


def test_the_clients_system_message_comes_after_the_worlds_own(tally):
    plain, told = ask(tally, "7"), ask(tally, "7", system="Be kind to everyone you meet today.")
    assert told.usage.prompt_tokens > plain.usage.prompt_tokens
    assert told.choices[0].message.content == "The sum is 107."


def test_the_model_is_listed(tally):
    with openai.OpenAI(base_url=tally, api_key="none") as client:
        assert [one.id for one in client.models.list()] == ["tally"]


@pytest.mark.parametrize(
    ("said", "options", "status", "text"),
    [
        (("1",), {"model": "gpt-9"}, 404, "this server has 'tally'"),
        (("1",), {"tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "the agent brings its own"),
        (("1", "2"), {}, 400, "a user last; found user, assistant"),
        (("1",), {"temperature": -1}, 400, "temperature"),
        (("1",), {"n": 2}, 400, "n: "),
        (("x" * 5_000_000,), {}, 413, "larger than"),
        (("seven",), {}, 500, "agent_error"),
        (("0",), {"max_tokens": 0}, 400, "max_tokens"),
    ],
)
def test_what_can_not_be_served_is_said_as_the_protocol_says_errors(tally, said, options, status, text):
    with pytest.raises(openai.APIStatusError) as refused:
        ask(tally, *said, **options)
    assert refused.value.status_code == status
    assert text in str(refused.value)


def test_a_web_page_can_not_ask_through_a_browser(tally):
    port = int(re.search(r":(\d+)/", tally)[1])
    plain = b'{"model": "tally", "messages": [{"role": "user", "content": "1"}]}'

    def status(headers: str) -> str:
        with socket.create_connection(("127.0.0.1", port)) as line:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(plain)}\r\nConnection: close\r\n"
            line.sendall(f"{head}{headers}\r\n".encode() + plain)
            return line.makefile("rb").readline().decode().split()[1]

    assert status("Host: 127.0.0.1\r\nContent-Type: application/json\r\n") == "200"
    assert status("Host: 127.0.0.1\r\nContent-Type: text/plain\r\n") == "415", "what a form may send unasked"
    assert status("Host: rebound.example\r\nContent-Type: application/json\r\n") == "400", (
        "a name bound to this machine"
    )


def test_with_a_key_every_request_needs_it():
    with server(*TALLY, "secret-é") as url, pytest.raises(openai.AuthenticationError):
        ask(url, "1")


def test_a_client_that_leaves_in_the_middle_does_no_harm(tally):
    with openai.OpenAI(base_url=tally, api_key="none", max_retries=0) as client:
        messages = [{"role": "user", "content": "7"}]
        made = client.chat.completions.create(model="tally", messages=messages, stream=True)
        next(iter(made))
        made.close()
    assert ask(tally, "8").choices[0].message.content == "The sum is 108."


async def test_a_world_that_plays_a_user_leaves_that_to_the_person():
    class Insisting(World):
        name = "insisting"

        def user(self, view):
            return message("user", "And now?")

    place = RecipeWorld(WorldSection(world="my:Insisting"), Insisting, Budget(turns=4))
    episode = await harness_of(place).run(Task("t", "insisting", "3 + 1?"), Told("4"))
    assert [turn.action.answer for turn in episode.turns] == ["4"]
    assert str(episode.outcome) == "answered"


def test_an_agent_that_never_answers_says_which_limit_it_reached(tally):
    (choice,) = ask(tally, "0").choices
    assert (choice.message.content, choice.finish_reason) == ("No answer within the limit of turns.", "length")


def test_a_trained_stage_is_served_from_its_run(finished):
    command = [sys.executable, "-m", "quintain", "serve", str(finished), "--port", "0"]
    with server(*command, QUINTAIN_API_KEY="secret") as url:
        with pytest.raises(openai.AuthenticationError):
            ask(url, "3 + 1?", model="sft", key="other")
        (choice,) = ask(url, "3 + 1?", model="sft", key="secret").choices
        assert choice.finish_reason in ("stop", "length")
        assert choice.message.content


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--host", "0.0.0.0"), "export QUINTAIN_API_KEY=..."),
        (("--temperature", "nan"), "must be at least 0"),
        (("--port", "99999"), "port 99999: must be 0 to 65535"),
        (("--port", "0", "--stage", "demos"), "demos is no finished training stage"),
    ],
)
def test_what_can_not_be_listened_on_is_one_line(finished, capsys, monkeypatch, arguments, text):
    monkeypatch.delenv("QUINTAIN_API_KEY", raising=False)
    assert main(["serve", str(finished), *arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


def test_a_busy_port_is_one_line(finished, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", str(finished), "--port", str(taken.getsockname()[1])]) == 2
    error = capsys.readouterr().err
    assert "in use by another program; give another --port" in error
    assert error.count("\n") == 1
