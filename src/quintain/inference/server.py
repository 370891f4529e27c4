"""A vLLM server, on this machine or another, as a token engine: token ids in and out over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from quintain.endpoint.client import Endpoint
from quintain.endpoint.config import EndpointConfig
from quintain.inference.logprobs import generation, wanted
from quintain.inference.meter import Meter
from quintain.inference.own_server import OwnServer
from quintain.inference.probe import HALF_TOLERANCE, mismatch
from quintain.inference.room import room
from quintain.inference.sampler import draw_seed
from quintain.inference.server_exam import context_of, need_health, need_same_tokens
from quintain.interface.errors import InfraError, InputError
from quintain.interface.generation import Generation, Load, Sampling

_TOKEN = "token_id:"
_REMEDY = "shorten the prompt, or start the server with a larger --max-model-len"


class ServerEngine:
    """Generates tokens with a model that a vLLM server holds; its weights can't be changed from here.

    Before the first generation the server is examined: it is well, its tokens are those of the tokenizer, and it
    computes what the model here computes. The engine belongs to the event loop it is first used in.

    Args:
        config: where the server is, and the model's name there.
        model: the model that the server is said to hold.
        tokenizer: its tokenizer.
        own: the server's process, where this one began it: it is begun again when it has ended.

    Attributes:
        mismatch: largest difference of log-probabilities between server and model in the probe, in nats.

    Raises:
        InputError: the package `openai` is missing.
    """

    version = 0

    def __init__(self, config: EndpointConfig, model: Any, tokenizer: Any, own: OwnServer | None = None) -> None:
        self._config = config
        self._endpoint = Endpoint(config)
        self._model = model
        self._tokenizer = tokenizer
        self._own = own
        self._vocabulary = int(model.config.get_text_config().vocab_size)
        self._limits: dict[str, int] = {}
        self._meter = Meter()
        self._examined = False
        self._gate = asyncio.Lock()
        self.mismatch = 0.0

    async def generate(self, ids: Sequence[int], *, session: str, group: str, sampling: Sampling) -> Generation:
        """Continues `ids`.

        Args:
            ids: the whole sequence so far.
            session: names the draws.
            group: not needed: vLLM finds shared prefixes by comparing tokens.
            sampling: how to draw.

        Raises:
            InputError: a grammar, a server that holds something else or gives no token ids, or a refused request.
            ContextFull: the ids leave no room for a token.
            InfraError: the server does not answer.
        """
        if sampling.grammar:
            raise InputError('generate: a grammar needs the engine "local"')
        async with self._gate:
            if not self._examined:
                await self._examine()
        restarts = self._own.restarts if self._own else 0
        with self._meter.request(len(ids)):
            try:
                return await self._generate(ids, session=session, group=group, sampling=sampling)
            except InfraError:
                if not await self._begun_again(restarts):
                    raise
            return await self._generate(ids, session=session, group=group, sampling=sampling)

    async def release(self, session: str) -> None:
        """Nothing to forget: the server drops what has not been used for longest."""

    def load(self) -> Load:
        """How long it was busy with what was asked from here; what others ask of it and what it holds is not known."""
        return self._meter.load()

    async def sleep(self) -> None:
        """A server's memory is its own."""

    async def update(self, weights: Any, *, version: int | None = None) -> int:
        """Weights behind a server can't be changed from here.

        Raises:
            InputError: always.
        """
        raise InputError(f'{self._config.url}: the weights of a server stay; training needs the engine "vllm"')

    def close(self) -> None:
        """Ends a server of ours. Connections are closed with the event loop they were made in."""
        if self._own is not None:
            self._own.close()

    async def _begun_again(self, restarts: int) -> bool:
        """Whether a server of ours had ended since that many restarts, and stands again now."""
        if self._own is None:
            return False
        async with self._gate:
            if self._own.ended:
                self._own.restart()
            await self._own.ready()
        return self._own.restarts > restarts

    async def _examine(self) -> None:
        """Raises InputError where the server's model is not ours, InfraError where it is not well."""
        if self._own is not None:
            await self._own.ready()
        await need_health(self._endpoint)
        self._limits = {"the server's context": await context_of(self._endpoint)}
        await need_same_tokens(self._endpoint, self._tokenizer)
        self.mismatch = await mismatch(self._generate, self._model, min(self._limits.values()))
        if not self.mismatch <= HALF_TOLERANCE:
            raise InputError(
                f"{self._config.url}: server and model differ by {self.mismatch:.2g} nats at a token of the probe, "
                f"{HALF_TOLERANCE:g} are allowed: does the server hold a checkpoint of another model?"
            )
        self._examined = True

    async def _generate(self, ids: Sequence[int], *, session: str, group: str, sampling: Sampling) -> Generation:
        body = {
            "top_k": sampling.top_k,
            "stop_token_ids": list(sampling.stop),
            "ignore_eos": True,
            "return_token_ids": True,
            "return_tokens_as_token_ids": True,
        }
        made = await self._endpoint.send(
            lambda client: client.completions.create(
                model=self._config.model,
                prompt=list(ids),
                max_tokens=room(len(ids), sampling, self._limits, _REMEDY),
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=draw_seed(sampling.seed, session, len(ids)),
                logprobs=wanted(sampling, self._vocabulary),
                extra_body=body,
            )
        )
        return self._read(made.choices[0], sampling)

    def _read(self, choice: Any, sampling: Sampling) -> Generation:
        ids, shown = getattr(choice, "token_ids", None), choice.logprobs
        if ids is None or shown is None:
            raise InputError(
                f"{self._config.url}: the server returns no token ids with log-probabilities: it is no vLLM of 0.10.2 "
                "or later; what speaks only chat is measured by an `endpoint` of an eval stage"
            )
        if choice.finish_reason not in ("stop", "length"):
            raise InfraError(f"{self._config.url}: a generation ended with {choice.finish_reason!r}")
        tables = [
            {int(name.removeprefix(_TOKEN)): value for name, value in (others or {}).items()} | {token: own}
            for token, own, others in zip(ids, shown.token_logprobs, shown.top_logprobs, strict=True)
        ]
        return generation(ids, tables, sampling, choice.finish_reason)
