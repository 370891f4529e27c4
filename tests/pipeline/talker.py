"""Agent programs as a user might write them beside a recipe, around the world of `picker`."""

from __future__ import annotations

import openai


async def run(given):
    """One question."""
    async with openai.AsyncOpenAI(base_url=given.base_url, api_key=given.api_key) as api:
        said = [{"role": "user", "content": given.prompt}]
        made = await api.chat.completions.create(model="any", messages=said)
        return made.choices[0].message.content


def blocking(given):
    """Not a program: it would hold up everybody else's."""


async def with_a_framework(given):
    """The same question by an agent of the OpenAI Agents SDK, with a tool of its own."""
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool

    @function_tool
    def half(number: int) -> int:
        """Half of a number."""
        return number // 2

    async with openai.AsyncOpenAI(base_url=given.base_url, api_key=given.api_key) as api:
        model = OpenAIChatCompletionsModel("any", api)
        agent = Agent("picker", instructions=given.instructions, tools=[half], model=model)
        made = await Runner.run(agent, given.prompt, max_turns=4, run_config=RunConfig(tracing_disabled=True))
        return str(made.final_output)
