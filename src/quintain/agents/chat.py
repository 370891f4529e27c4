"""The chat agent: a model behind an OpenAI-compatible server, with tools as the protocol has them."""

from __future__ import annotations

import json
from typing import Any

from quintain.endpoint.client import Completion, Endpoint, WrittenCall
from quintain.endpoint.config import EndpointConfig, PromptConfig
from quintain.interface.errors import FormatError, InputError
from quintain.interface.generation import Sampling
from quintain.interface.messages import Action, Call, Message, Spent, Turn
from quintain.interface.tools import Toolset
from quintain.interface.view import View

NOTHING = PromptConfig()
"""The world's own words."""


class ChatAgent:
    """A policy behind a server. Stateless: the conversation is written anew from the view at every turn.

    Args:
        config: where the server is.
        sampling: temperature, `top_p` and the bound of one turn; `top_k` is no part of the protocol.
        prompt: what it is told beside the task.
        name: name for records.

    Raises:
        InputError: the package `openai` is missing, or the sampling has a `top_k`.
    """

    version = 0

    def __init__(
        self, config: EndpointConfig, sampling: Sampling, prompt: PromptConfig = NOTHING, name: str = "chat"
    ) -> None:
        if sampling.top_k:
            raise InputError(f"top_k = {sampling.top_k}: the chat completions protocol has no top_k; leave it 0")
        self.endpoint = Endpoint(config)
        self.sampling = sampling
        self.prompt = prompt
        self.name = name

    async def act(self, view: View) -> Action:
        """One turn: the conversation so far, one completion, and what it means.

        Raises:
            InputError: the prompt describes a tool that the world does not have.
        """
        made = await self.endpoint.complete(
            conversation(view, self.prompt),
            tools=described(view.toolset, self.prompt.tools),
            max_tokens=min(self.sampling.max_tokens, view.remaining.tokens),
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            seed=(view.seed + len(view.turns)) % 2**31,
        )
        return read(made, view)

    async def release(self, episode: str) -> None:
        """Nothing to forget."""

    async def close(self) -> None:
        """Closes the connections to the server."""
        await self.endpoint.close()


def described(toolset: Toolset, descriptions: dict[str, str]) -> list[dict[str, Any]]:
    """The tools in the OpenAI form, with some descriptions replaced.

    Raises:
        InputError: a description names no tool.
    """
    unknown = sorted(set(descriptions) - set(toolset.names))
    if unknown:
        raise InputError(f"prompt.tools: the world has no tool {unknown[0]!r}; tools: {', '.join(toolset.names)}")
    return [
        {
            "type": "function",
            "function": {
                "name": one.name,
                "description": descriptions.get(one.name, one.description),
                "parameters": one.parameters,
            },
        }
        for one in toolset
    ]


def conversation(view: View, prompt: PromptConfig) -> list[dict[str, Any]]:
    """The episode so far as the messages of a request."""
    system = [one for one in view.messages if one.role == "system"]
    asked = [one for one in view.messages if one.role != "system"]
    messages = [_said(one) for one in system]
    if prompt.instructions is not None:
        messages = [{"role": "system", "content": prompt.instructions}] if prompt.instructions else []
    for example in prompt.examples:
        messages.append({"role": "user", "content": example.user})
        messages.append({"role": "assistant", "content": example.assistant})
    messages += [_said(one) for one in asked]
    forgotten = max(view.user_messages, default=0)  # turns before the user last spoke
    for number, turn in enumerate(view.turns, start=1):
        messages += _turn(turn, thinks=number > forgotten)
        if number in view.user_messages:
            messages.append(_said(view.user_messages[number]))
    return messages


def _said(one: Message) -> dict[str, Any]:
    return {"role": one.role, "content": one.text}


def _turn(turn: Turn, *, thinks: bool) -> list[dict[str, Any]]:
    """What agent and world said in one turn; a text that could not be understood stays what it was.

    Args:
        turn: the turn.
        thinks: a thought that the server sent apart from the text is given back to it. Servers of reasoning models want
            that while they work on one question, and do without it once the user has spoken again.
    """
    action = turn.action
    if action.error is not None:
        (seen,) = turn.observations
        return [{"role": "assistant", "content": action.text}, {"role": "user", "content": seen.content}]
    if not action.calls:
        return [{"role": "assistant", "content": action.answer or action.summary or ""}]
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in action.calls
    ]
    seen_by_id = [{"role": "tool", "tool_call_id": one.call_id, "content": one.content} for one in turn.observations]
    said: dict[str, Any] = {"role": "assistant", "content": action.thought, "tool_calls": calls}
    if action.said is not None:
        said |= {"content": action.said} | ({"reasoning_content": action.thought} if thinks else {})
    return [said, *seen_by_id]


def read(made: Completion, view: View) -> Action:
    """What a completion means: calls, an answer, or a text that can't be understood."""
    spent = _spent(made, view)
    wrong = _fault(made)
    if wrong is not None:
        written = [f"{one.name}({one.arguments})" for one in made.calls]
        return Action(error=wrong, text="\n".join(filter(None, [made.text, *written])), spent=spent)
    if made.calls:
        ids = _ids(made.calls, len(view.turns))
        calls = tuple(Call(i, one.name, _arguments(one)) for i, one in zip(ids, made.calls, strict=True))
        said = made.text.strip()
        if made.reasoning:
            return Action(thought=made.reasoning, calls=calls, said=said, spent=spent)
        return Action(thought=said, calls=calls, spent=spent)
    return Action(thought=made.reasoning, answer=made.text.strip(), spent=spent)


def _fault(made: Completion) -> FormatError | None:
    if made.finish == "length":
        return FormatError("cut", "the turn was cut at its token limit; write a shorter one")
    for one in made.calls:
        if not isinstance(_parsed(one.arguments), dict):
            return FormatError("json", f"the arguments of {one.name} are no JSON object: {one.arguments[:80]}")
    if not made.calls and not made.text.strip():
        return FormatError("empty", "nothing was written; call a tool or give the answer")
    return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")  # some servers write nothing where there are no arguments
    except ValueError:
        return None


def _arguments(one: WrittenCall) -> dict[str, Any]:
    arguments: dict[str, Any] = _parsed(one.arguments)
    return arguments


def _ids(calls: tuple[WrittenCall, ...], turn: int) -> list[str]:
    """The server's ids; where it gives none, or one twice, running numbers."""
    ids = [one.id for one in calls]
    return ids if all(ids) and len(set(ids)) == len(ids) else [f"call_{turn}_{index}" for index in range(len(calls))]


def _spent(made: Completion, view: View) -> Spent:
    """What the turn used; the prompt holds all turns before, of which only what is new counts as context."""
    before = [turn.action.spent for turn in view.turns if turn.action.spent is not None]
    known = sum(one.tokens + one.context_tokens for one in before)
    return Spent(made.completion_tokens, max(0, made.prompt_tokens - known), made.price)
