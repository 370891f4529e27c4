"""Small environments written against the classes of the package `verifiers`, one of each kind."""

from __future__ import annotations

import verifiers as vf
from datasets import Dataset
from verifiers.envs.env_group import EnvGroup
from verifiers.envs.multiturn_env import MultiTurnEnv
from verifiers.envs.singleturn_env import SingleTurnEnv
from verifiers.envs.stateful_tool_env import StatefulToolEnv
from verifiers.envs.tool_env import ToolEnv

SYSTEM = "Answer with the number only."


def rows(first, count, **more):
    return Dataset.from_list(
        [{"question": f"{n} + {n}?", "answer": str(2 * n), **more} for n in range(first, first + count)]
    )


def exact(completion, answer, parser):
    return float(parser.parse_answer(completion) == answer)


def called(completion):
    return sum(len(one.tool_calls or ()) for one in completion if one.role == "assistant") / 4


def best_of(completions):
    return [1.0 for _ in completions]


def add(a: int, b: int) -> int:
    """Adds.

    Args:
        a: one number.
        b: another.
    """
    if a < 0:
        raise ValueError("no negative numbers")
    return a + b


def note(text: str, notes: list) -> str:
    """Notes a text.

    Args:
        text: what to note.
        notes: where.
    """
    notes.append(text)
    return f"{len(notes)} notes"


class Notebook(StatefulToolEnv):
    """Notes that belong to one rollout."""

    def __init__(self, **options):
        super().__init__(**options)
        self.add_tool(note, args_to_skip=["notes"])

    async def setup_state(self, state):
        state["notes"] = []

    def update_tool_args(self, tool_name, tool_args, messages, state, **_):
        return {**tool_args, "notes": state["notes"]}


class Guess(MultiTurnEnv):
    """Says higher or lower until the number is right."""

    async def env_response(self, messages, state, **_):
        guess, right = int(messages[-1].content), int(state["answer"])
        if guess == right:
            state["final_env_response"] = [vf.UserMessage(content="Right.")]
            return state["final_env_response"]
        return [vf.UserMessage(content="Higher." if guess < right else "Lower.")]


class Broken(MultiTurnEnv):
    """Whose set-up fails."""

    async def setup_state(self, state):
        raise vf.SandboxError("no sandbox")

    async def env_response(self, messages, state, **_):
        return []


def noted(state):
    return float(state["notes"] == ["red", "blue"])


def load_environment(kind="single", held_out=True, **options):
    rubric = vf.Rubric(funcs=[exact])
    common = {"dataset": rows(0, 10), "system_prompt": SYSTEM, "rubric": rubric, **options}
    if held_out:
        common["eval_dataset"] = rows(100, 5)
    match kind:
        case "single":
            return SingleTurnEnv(**common)
        case "boxed":
            parser = vf.Parser(extract_fn=vf.extract_boxed_answer)
            return SingleTurnEnv(**common | {"parser": parser, "rubric": vf.Rubric(funcs=[exact], parser=parser)})
        case "tool":
            rubric.add_reward_func(called, weight=0.4)
            return ToolEnv(tools=[add], max_turns=4, **common)
        case "stateful":
            return Notebook(**common | {"rubric": vf.Rubric(funcs=[noted])})
        case "multi":
            return Guess(**common, max_turns=5)
        case "broken":
            return Broken(**common)
        case "best":
            return SingleTurnEnv(**common | {"rubric": vf.Rubric(funcs=[best_of])})
        case "own tools":
            return SingleTurnEnv(**common | {"eval_dataset": rows(0, 2, info={"tool_defs": [{"name": "x"}]})})
        case "many":
            return EnvGroup(envs=[SingleTurnEnv(**common)], env_names=["one"])
    raise ValueError(f"no kind {kind}")
