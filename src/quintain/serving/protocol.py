"""The chat completions protocol of the OpenAI API, as far as an agent with tools of its own can speak it.

What the agent thinks, calls and observes comes as `reasoning_content`, as servers of reasoning models send it; its
answer is the `content`.
"""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from quintain.interface.episode import Episode, Usage
from quintain.interface.errors import InputError
from quintain.interface.generation import Sampling
from quintain.interface.messages import message
from quintain.serving.conversation import Said


class Refused(Exception):
    """A request that can't be served.

    Args:
        status: of the reply.
        text: for a person.
        code: for a program.
    """

    def __init__(self, status: int, text: str, code: str) -> None:
        super().__init__(text)
        self.status = status
        self.body = {"error": {"message": text, "type": "invalid_request_error", "param": None, "code": code}}


class Written(BaseModel):
    """One message of a request."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(BaseModel):
    """`stream_options` of a request."""

    include_usage: bool = False


class Request(BaseModel):
    """The body of a request; keys that are not named here are passed over, as servers of the protocol do."""

    model: str
    messages: Annotated[list[Written], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    tools: list[Any] | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = None


def read_request(body: bytes, model: str) -> Request:
    """Reads and checks a body.

    Raises:
        Refused: it is no such request, asks for another model, or brings tools.
    """
    try:
        request = Request.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "body"
        raise Refused(400, f"{place}: {first['msg']}", "invalid_request") from None
    if request.model != model:
        raise Refused(404, f"no model {request.model!r}; this server has {model!r}", "model_not_found")
    if request.tools:
        raise Refused(400, "tools: the agent brings its own and runs them here; leave `tools` out", "invalid_request")
    return request


def said_in(request: Request) -> tuple[list[Said], str]:
    """User and assistant messages in turn, and what the system says.

    Raises:
        Refused: they don't alternate from a user's first to a user's last, or one is no text.
    """
    said, system = [], []
    for number, one in enumerate(request.messages):
        try:
            text = message("user", one.content if one.content is not None else "").text
        except InputError as error:
            raise Refused(400, f"messages.{number}: {error}", "invalid_request") from None
        if one.role in ("system", "developer"):
            system.append(text)
        else:
            said.append((str(one.role), text))
    roles = [role for role, _ in said]
    if roles != ["user" if place % 2 == 0 else "assistant" for place in range(len(said))] or len(said) % 2 == 0:
        found = ", ".join(roles) or "none"
        raise Refused(
            400, f"messages: user and assistant must take turns, a user last; found {found}", "invalid_request"
        )
    return said, "\n\n".join(system)


def sampling_of(request: Request, usual: Sampling) -> Sampling:
    """How tokens are drawn: as the request says, and where it is silent as the model was measured."""
    bound = request.max_completion_tokens or request.max_tokens
    return Sampling(
        max_tokens=usual.max_tokens if bound is None else bound,
        temperature=usual.temperature if request.temperature is None else request.temperature,
        top_p=usual.top_p if request.top_p is None else request.top_p,
        top_k=usual.top_k,
    )


def answer_of(episode: Episode) -> tuple[str, str]:
    """The text and the finish reason of an episode.

    Raises:
        Refused: world or agent broke.
    """
    outcome = episode.outcome
    if outcome.kind in ("answered", "declined"):
        return episode.answer or "", "stop"
    if outcome.kind == "limit":
        return f"No answer within the limit of {outcome.limit}.", "length"
    raise Refused(500, f"{outcome.kind}: {outcome.detail}", outcome.kind)


class Reply:
    """The pieces of one reply.

    Args:
        model: name of the agent.
    """

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def whole(self, content: str, finish: str, reasoning: str, used: Usage) -> dict[str, Any]:
        """A reply in one piece."""
        said = {"role": "assistant", "content": content, "reasoning_content": reasoning or None}
        choice = {"index": 0, "message": said, "finish_reason": finish, "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _usage(used)}

    def piece(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """One chunk of a stream."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}

    def usage(self, used: Usage) -> dict[str, Any]:
        """The last chunk of a stream whose request asks for it."""
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(used)}


def _usage(used: Usage) -> dict[str, int]:
    prompt, made = used.context_tokens, used.tokens
    return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}
