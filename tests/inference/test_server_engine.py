"""A server as an engine: examined before it is used, asked again when it has ended.

The stand-in speaks as much of vLLM's protocol as is needed and computes with a tiny model; slow ones ask vLLM itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from loopback import Quiet, listening
from quintain.endpoint.config import EndpointConfig
from quintain.inference.own_server import RESTARTS, OwnServer, serve_model
from quintain.inference.probe import logprobs
from quintain.inference.server import ServerEngine
from quintain.interface.errors import ContextFull, InfraError, InputError
from quintain.interface.generation import Engine, Sampling

PROMPT = list(range(5, 45))


class StandIn:
    """vLLM's routes over a tiny model; greedy, whatever is asked."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer, self.token_ids, self.requests = model, tokenizer, True, []

    def get(self, path: str) -> Any:
        return {"/health": {}, "/v1/models": {"data": [{"id": "m", "max_model_len": 256}]}}[path]

    def post(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/detokenize":
            return {"prompt": self.tokenizer.decode(body["tokens"])}
        self.requests.append(body)
        ids = list(body["prompt"])
        with torch.no_grad():
            for _ in range(body["max_tokens"]):
                ids.append(int(self.model(torch.tensor([ids])).logits[0, -1].argmax()))
        made = ids[len(body["prompt"]) :]
        shown = {
            "token_logprobs": logprobs(self.model, body["prompt"], made),
            "top_logprobs": [{} for _ in made],
        }
        more = {"token_ids": made} if self.token_ids else {}
        return {"choices": [{"index": 0, "text": "", "finish_reason": "length", "logprobs": shown, **more}]}


@contextmanager
def served(stand_in: StandIn) -> Iterator[str]:
    class Handler(Quiet):
        def do_GET(self) -> None:
            self.reply(stand_in.get(self.path))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(stand_in.post(self.path, body))

        def reply(self, value: Any) -> None:
            text = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}/v1"


def engine_at(url: str, model: Any, tokenizer: Any) -> ServerEngine:
    return ServerEngine(EndpointConfig(model="m", url=url, seconds=20.0, tries=1), model, tokenizer)


async def ask(engine: ServerEngine, ids: list[int] = PROMPT, **sampling: Any) -> Any:
    asked = Sampling(**{"max_tokens": 3, "seed": 1} | sampling)
    return await engine.generate(ids, session="s", group="g", sampling=asked)


async def test_token_ids_go_in_and_come_out_with_their_logprobs(model, tokenizer):
    stand_in = StandIn(model, tokenizer)
    with served(stand_in) as url:
        engine = engine_at(url, model, tokenizer)
        assert isinstance(engine, Engine)
        made = await ask(engine, stop=(2,), temperature=0.0)
    assert made.logprobs == pytest.approx(logprobs(model, PROMPT, made.ids), abs=1e-4)
    assert (made.sampled_logprobs, made.finish, made.version) == ((0.0, 0.0, 0.0), "length", 0)
    assert engine.mismatch < 1e-4
    assert 0 < engine.load().busy < engine.load().up
    sent = stand_in.requests[-1]
    assert (sent["prompt"], sent["stop_token_ids"], sent["return_token_ids"]) == (PROMPT, [2], True)


async def test_a_server_with_other_weights_is_refused(model, tokenizer):
    other = tiny.tiny_model(seed=9)
    with torch.no_grad():
        for parameter in (*model.parameters(), *other.parameters()):
            parameter.mul_(3.0)  # further from uniform
    refused = pytest.raises(InputError, match="does the server hold a checkpoint of another model")
    with served(StandIn(other, tokenizer)) as url, refused:
        await ask(engine_at(url, model, tokenizer))


async def test_another_tokenizer_is_refused_by_the_first_token_that_differs(model, tokenizer):
    other = tiny.tiny_tokenizer(extra_tokens=("<|endoftext|>", "<|im_start|>", "<|turn_end|>"))
    refused = pytest.raises(InputError, match=r"token 2 is '<\|turn_end\|>' there and '<\|im_end\|>' here")
    with served(StandIn(model, other)) as url, refused:
        await ask(engine_at(url, model, tokenizer))


async def test_a_server_without_token_ids_is_refused(model, tokenizer):
    stand_in = StandIn(model, tokenizer)
    stand_in.token_ids = False
    with served(stand_in) as url, pytest.raises(InputError, match="the server returns no token ids"):
        await ask(engine_at(url, model, tokenizer))


async def test_another_name_and_a_full_context_are_said(model, tokenizer):
    with served(StandIn(model, tokenizer)) as url:
        config = EndpointConfig(model="n", url=url, tries=1)
        with pytest.raises(InputError, match="no model 'n' there; models: m"):
            await ask(ServerEngine(config, model, tokenizer))
        with pytest.raises(ContextFull, match=r"256 tokens \+ 1 to generate > 256, the server's context"):
            await ask(engine_at(url, model, tokenizer), [7] * 256)


async def test_where_nothing_answers_the_address_is_named(model, tokenizer):
    with served(StandIn(model, tokenizer)) as url:
        pass
    with pytest.raises(InfraError, match=f"{url}: Connection error. after 1 tries"):
        await ask(engine_at(url, model, tokenizer))


async def test_its_weights_cannot_be_changed(model, tokenizer):
    engine = engine_at("http://127.0.0.1:1/v1", model, tokenizer)
    with pytest.raises(InputError, match='training needs the engine "vllm"'):
        await engine.update(model.state_dict())


LISTENS = (
    "import http.server as h; h.ThreadingHTTPServer(('127.0.0.1', {port}), h.SimpleHTTPRequestHandler).serve_forever()"
)


async def test_a_server_of_ours_is_begun_again_and_ended(tmp_path: Path):
    folder = tmp_path / "server"
    folder.mkdir()
    server = OwnServer([sys.executable, "-c", LISTENS], folder)
    try:
        await server.ready()
        os.kill(server._process.pid, signal.SIGKILL)
        server._process.wait()
        assert server.ended
        server.restart()
        await server.ready()
        assert (server.ended, server.restarts) == (False, 1)
    finally:
        server.close()
    assert server.ended
    assert not folder.exists()


async def test_a_server_that_does_not_stand_says_why(tmp_path: Path):
    server = OwnServer([sys.executable, "-c", "raise SystemExit('no such model')"], tmp_path)
    for _ in range(RESTARTS):
        with pytest.raises(InfraError, match="the server ended with code 1: no such model"):
            await server.ready()
        server.restart()
    with pytest.raises(InfraError, match="the server ended with code 1: no such model"):
        await server.ready()
    with pytest.raises(InfraError, match="the server ended 4 times, last: no such model"):
        server.restart()


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_vllms_own_server_is_examined_asked_and_begun_again(tokenizer):
    model = tiny.tiny_model(hidden=128)  # four heads of 32, the smallest that vLLM computes on CPUs
    config, own = serve_model(model, tokenizer, kv_tokens=1024, sessions=2, options={"max_model_len": 256})
    engine = ServerEngine(config, model, tokenizer, own)

    async def play() -> list[Any]:
        first = await ask(engine)
        greedy = await ask(engine, temperature=0.0, stop=(first.ids[0],))
        cut = await ask(engine, top_k=5, temperature=0.7)
        os.killpg(own._process.pid, signal.SIGKILL)
        own._process.wait()
        return [first, greedy, cut, await ask(engine)]

    try:
        first, _, cut, again = asyncio.run(play())
    finally:
        engine.close()
    assert first.logprobs == pytest.approx(logprobs(model, PROMPT, first.ids), abs=1e-3)
    assert first.sampled_logprobs == first.logprobs
    assert all(drawn > under for drawn, under in zip(cut.sampled_logprobs, cut.logprobs, strict=True))
    assert again.ids == first.ids
    assert (own.restarts, engine.mismatch < 1e-3) == (1, True)
