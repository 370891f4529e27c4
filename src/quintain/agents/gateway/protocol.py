"""The chat completions protocol of the OpenAI API, from the server's side: what every server here reads and writes."""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from quintain.interface.errors import InputError
from quintain.interface.messages import message


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


class StreamOptions(BaseModel):
    """`stream_options` of a request."""

    include_usage: bool = False


class FunctionCall(BaseModel):
    """The function of a call, with its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(BaseModel):
    """A call in an assistant's message."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class Written(BaseModel):
    """One message of a request."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str = ""


class FunctionTool(BaseModel):
    """A function that an assistant may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {"type": "object", "properties": {}}


class OfferedTool(BaseModel):
    """A tool of a request."""

    type: Literal["function"]
    function: FunctionTool


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
    tools: list[OfferedTool] | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = None

    @property
    def bound(self) -> int | None:
        """Most tokens of the reply, if the request says."""
        return self.max_completion_tokens or self.max_tokens


R = TypeVar("R", bound=BaseModel)


def read_request(kind: type[R], body: bytes) -> R:
    """Reads and checks a body.

    Raises:
        Refused: it is no such request.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "body"
        raise Refused(400, f"{place}: {first['msg']}", "invalid_request") from None


def text_of(one: Written, number: int) -> str:
    """The text of message `number`.

    Raises:
        Refused: it holds something else.
    """
    try:
        return message("user", one.content if one.content is not None else "").text
    except InputError as error:
        raise Refused(400, f"messages.{number}: {error}", "invalid_request") from None


class Reply:
    """The pieces of one reply.

    Args:
        model: name of the agent.
    """

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def whole(self, said: dict[str, Any], finish: str, prompt_tokens: int, made_tokens: int) -> dict[str, Any]:
        """A reply in one piece around the keys of an assistant's message."""
        choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": finish, "logprobs": None}
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _usage(prompt_tokens, made_tokens),
        }

    def piece(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """One chunk of a stream."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}

    def usage(self, prompt_tokens: int, made_tokens: int) -> dict[str, Any]:
        """The last chunk of a stream whose request asks for it."""
        return {
            **self._head,
            "object": "chat.completion.chunk",
            "choices": [],
            "usage": _usage(prompt_tokens, made_tokens),
        }


def _usage(prompt: int, made: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}
