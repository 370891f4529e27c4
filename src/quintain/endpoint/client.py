"""The client of any OpenAI-compatible chat server: one request, its retries, its price."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quintain.endpoint.config import EndpointConfig
from quintain.interface.errors import ContextFull, InfraError, InputError

_REMEDIES = {
    401: "set {key} to a valid key",
    403: "the key in {key} may not use this model",
    404: "check the address and the model's name",
}
_PER_MILLION = 1e-6


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A tool call as the server wrote it; `arguments` is JSON text, not checked yet."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What one request brought.

    Attributes:
        text: the message's content, or its refusal; "" if there is none.
        calls: tool calls, in order.
        finish: why it ended, as the server says: `stop`, `tool_calls`, `length`, `content_filter`.
        prompt_tokens: as the server counts them; 0 where it doesn't.
        completion_tokens: as the server counts them; 0 where it doesn't.
        price: of both, by the prices of the configuration. Discounts for cached prompts are not known here.
        refused: the model declined, or a filter stopped it.
        reasoning: what the server sent apart from the text, as `reasoning_content`; "" if nothing.
    """

    text: str
    calls: tuple[WrittenCall, ...]
    finish: str
    prompt_tokens: int
    completion_tokens: int
    price: float
    refused: bool = False
    reasoning: str = ""


class Endpoint:
    """Asks a chat server. One per event loop, as its connections are.

    Rate limits, server errors, time-outs and lost connections are tried again by the official client, which waits
    as the server asks or longer and longer.

    Args:
        config: where the server is.
        many: hundreds of requests are in flight. Connections are then aiohttp's, which halves what a request costs, and
            have to be closed.

    Raises:
        InputError: the package `openai`, or its extra `aiohttp`, is missing.
    """

    def __init__(self, config: EndpointConfig, *, many: bool = False) -> None:
        try:
            import openai

            if many:
                import aiohttp  # noqa: F401
        except ModuleNotFoundError as error:
            raise InputError(f"endpoints need the package `{error.name}`: pip install 'quintain[api]'") from None
        self.config = config
        self._errors = openai
        self._client = openai.AsyncOpenAI(
            # local servers ask for no key, the client does
            api_key=os.environ.get(config.key) or "none",
            base_url=config.url,
            timeout=config.seconds,
            max_retries=config.tries - 1,
            http_client=openai.DefaultAioHttpClient() if many else None,
        )

    async def complete(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        max_tokens: int,
        temperature: float,
        tools: Sequence[dict[str, Any]] = (),
        **options: Any,
    ) -> Completion:
        """One completion of a conversation.

        Args:
            messages: in the OpenAI form.
            max_tokens: bound of the generated tokens.
            temperature: of the sampling.
            tools: in the OpenAI form; none leaves the key out.
            options: further keys of the request, `top_p`, `seed`, `response_format`.

        Raises:
            InputError: the server refuses the key, the model or the request itself.
            ContextFull: the conversation is longer than the model's context.
            InfraError: no answer, or no chat completion, after all tries.
        """
        # The hosted API has replaced `max_tokens`, which is what most other servers know.
        bound = "max_completion_tokens" if "api.openai.com" in self.config.url else "max_tokens"
        request: dict[str, Any] = {**options, "temperature": temperature, bound: max_tokens, "messages": list(messages)}
        if tools:
            request["tools"] = list(tools)
        return self._read(
            await self.send(lambda client: client.chat.completions.create(model=self.config.model, **request))
        )

    async def send(self, request: Callable[[Any], Awaitable[Any]]) -> Any:
        """Whatever the official client can ask.

        Raises:
            InputError: the server refuses the key, the model or the request itself.
            ContextFull: the request is longer than the model's context.
            InfraError: no answer after all tries.
        """
        try:
            return await request(self._client)
        except self._errors.APIStatusError as error:
            raise self._refusal(error) from error
        except self._errors.APIError as error:  # no connection, a time-out, a body that is no completion
            raise InfraError(f"{self.config.url}: {_one_line(error)} after {self.config.tries} tries") from error

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    def _refusal(self, error: Any) -> Exception:
        status, text = int(error.status_code), _one_line(error)
        if status >= 500 or status in (408, 409, 429):
            return InfraError(f"{self.config.url}: {text} after {self.config.tries} tries")
        if error.code == "context_length_exceeded" or "context length" in text.lower():
            return ContextFull(f"{self.config.model}: {text}")
        remedy = _REMEDIES.get(status, "the server refuses the request").format(key=self.config.key)
        return InputError(f"{self.config.url}, model {self.config.model!r}: {text}; {remedy}")

    def _read(self, made: Any) -> Completion:
        if not getattr(made, "choices", None):
            raise InfraError(f"{self.config.url}: the reply has no choices; is it a chat completions server?")
        choice, usage = made.choices[0], made.usage
        written = choice.message
        calls = tuple(
            WrittenCall(one.id or "", one.function.name or "", one.function.arguments or "")
            for one in written.tool_calls or ()
            if one.type == "function"
        )
        prompt, completion = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        price = (prompt * self.config.price_in + completion * self.config.price_out) * _PER_MILLION
        refusal, finish = getattr(written, "refusal", None) or "", choice.finish_reason or "stop"
        refused = bool(refusal) or finish == "content_filter"
        reasoning = getattr(written, "reasoning_content", None) or ""
        return Completion(written.content or refusal, calls, finish, prompt, completion, price, refused, reasoning)


def _one_line(error: Any) -> str:
    return " ".join(str(error.message).split())[:300]
