"""An agent program: any loop around the OpenAI API. The gateway is where its base URL points."""

from __future__ import annotations

import json
from typing import Any

from openai import AsyncOpenAI


async def run(given: Any) -> str:
    """Asks the model, carries out its calls, until it answers.

    Args:
        given: `prompt`, `instructions`, `base_url` and `api_key` of one episode.
    """
    messages: list[Any] = [
        {"role": "system", "content": given.instructions},
        {"role": "user", "content": given.prompt},
    ]
    async with AsyncOpenAI(base_url=given.base_url, api_key=given.api_key) as api:
        tools: Any = await api.get("/tools", cast_to=object)
        while True:
            made = await api.chat.completions.create(model="any", messages=messages, tools=tools)
            said = made.choices[0].message
            messages.append(said.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            for call in said.tool_calls or ():
                arguments = json.loads(call.function.arguments)
                seen: Any = await api.post(f"/tools/{call.function.name}", body=arguments, cast_to=object)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": seen["content"]})
            if not said.tool_calls:
                return said.content or ""
