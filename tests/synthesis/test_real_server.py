"""The endpoint teacher against a real model server: transformers' own, with SmolLM2."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing

import pytest

from quintain.endpoint.cache import ReplyCache
from quintain.endpoint.config import EndpointConfig
from quintain.inference.models import cache_folder, load_model
from quintain.synthesis.config import TeacherConfig
from quintain.synthesis.endpoint import EndpointTeacher
from quintain.synthesis.planning import plan_request
from quintain.synthesis.questions import Question
from quintain.synthesis.statements import Statement
from quintain.synthesis.teacher import Prompts
from quintain.worlds.desk import Desk

START_SECONDS = 240


@pytest.fixture
def server():
    """`transformers serve` with the default model; yields its base address and the model's name."""
    load_model()  # in the cache from here on
    folder = str(cache_folder() / "models" / "smollm2-135m")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", folder, "--port", str(port)]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(process, f"http://localhost:{port}/health")
        yield f"http://localhost:{port}/v1", folder
    finally:
        process.terminate()
        process.wait(20)


def _wait(process, address):
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    pytest.fail(f"the server did not start (exit code {process.poll()})")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_server_is_asked_once_and_its_tokens_are_counted(server, tmp_path):
    url, model = server
    endpoint = EndpointConfig(model=model, url=url, seconds=240, tries=1, price_in=1e6, price_out=1e6)
    config = TeacherConfig(endpoint=endpoint, structured="text", max_tokens=48, temperature=0.7)
    said = Statement("Chad", "The capital of Chad is N'Djamena.", "en", attribute="capital", value="N'Djamena")
    question = Question("q", "en:Chad", "factual", "en", "What is the capital of Chad?", ("N'Djamena",), (said,))

    async def work():
        with closing(ReplyCache(tmp_path / "replies.sqlite")) as cache:
            teacher = EndpointTeacher(config, cache, Prompts())
            try:
                request = plan_request(question, Desk().toolset())
                return await teacher.ask(request), await teacher.ask(request)
            finally:
                await teacher.close()

    reply, again = asyncio.run(work())
    # a model this small seldom writes the JSON asked for; what it did write is counted either way
    assert (reply.value is None) == bool(reply.problem)
    assert reply.problem in ("", "no JSON of the right shape", "cut at its token limit")
    assert reply.prompt_tokens > 100
    assert 0 < reply.completion_tokens <= 3 * 48
    assert reply.price == reply.prompt_tokens + reply.completion_tokens
    assert (again.cached, again.price, again.problem) == (True, 0.0, reply.problem)
