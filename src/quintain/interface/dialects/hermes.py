"""Hermes: ChatML with JSON calls in `<tool_call>` tags, the form Qwen2.5 and Qwen3 models were trained on.

`Hermes` follows those models' chat templates token by token. `HermesCompact` says the same in half the tokens,
for small models that are trained here anyway: one line for each tool, `<call>name {...}` without a closing tag
(the end token closes it), observations in a role of their own.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from quintain.interface.dialects import strict_json
from quintain.interface.dialects.text import Calls, Malformed, Part, TextDialect, Token
from quintain.interface.errors import FormatErrorKind
from quintain.interface.messages import Action, Message
from quintain.interface.tools import Tool, Toolset

START, END = Token("<|im_start|>"), Token("<|im_end|>")
CALL, CALL_END = Token("<tool_call>"), Token("</tool_call>")
THINK, THINK_END = Token("<think>"), Token("</think>")
RESULT, RESULT_END = Token("<tool_response>"), Token("</tool_response>")

CALL_MARK, ANSWER_MARK = Token("<call>"), Token("<answer>")
_HEAD = re.compile(r"\s*([^\s{]+)\s*")

_UNCLOSED_FORM: dict[strict_json.Fault, FormatErrorKind] = {"ended": "unclosed", "extra": "prose"}
"""What faults mean where no tag closes a call."""


_DOCS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>"""
_FORM = f"""
</tools>

For each function call, return a json object with function name and arguments within {CALL}{CALL_END} XML tags:
{CALL}
{{"name": <function-name>, "arguments": <args-json-object>}}
{CALL_END}"""
"""Before and after the list of tools: the text these models were trained with, word for word."""


class ChatML(TextDialect):
    """Roles between `<|im_start|>` and `<|im_end|>`."""

    required = (START, END)
    ends = (END, "<|endoftext|>")
    _after_end = ("\n",)

    def _prompt(self, system: str, messages: Sequence[Message], toolset: Toolset) -> list[Part]:
        parts: list[Part] = []
        if system or len(toolset):
            parts += [START, "system\n", system, *self._docs(toolset, bool(system)), END, "\n"]
        for message in messages:
            parts += self._say(message)
        return [*parts, *self._open(after_message=True)]

    def _say(self, message: Message) -> list[Part]:
        return [START, f"{message.role}\n", message.text, END, "\n"]

    def _open(self, after_message: bool) -> list[Part]:
        return [START, "assistant\n"]

    @abstractmethod
    def _docs(self, toolset: Toolset, after_text: bool) -> list[Part]:
        """Documentation of the tools and of the form of a call, as the end of the system message."""


class Hermes(ChatML):
    """Full JSON Schemas, `<think>`, `<tool_call>` and `<tool_response>` as in Qwen's chat templates."""

    id = "hermes"
    version = "2"
    markers = (CALL, CALL_END, THINK, THINK_END, RESULT, RESULT_END)
    forgets = True

    def _docs(self, toolset: Toolset, after_text: bool) -> list[Part]:
        if not len(toolset):
            return []
        lines = "".join("\n" + json.dumps(_function(tool), ensure_ascii=False) for tool in toolset)
        return ["\n\n" if after_text else "", _DOCS, lines, *self._own(_FORM)]

    def _observe(self, contents: Sequence[str]) -> list[Part]:
        parts: list[Part] = [START, "user"]
        for content in contents:
            parts += ["\n", RESULT, "\n", content, "\n", RESULT_END]
        return [*parts, END, "\n"]

    def _write(self, action: Action) -> list[Part]:
        parts: list[Part] = []
        if action.thought:
            parts += [THINK, f"\n{action.thought}\n", THINK_END, "\n\n"]
        if action.answer is not None:
            return [*parts, action.answer]
        for number, call in enumerate(action.calls):
            body = strict_json.dumps({"name": call.tool, "arguments": call.arguments})
            parts += ["\n" if number else "", CALL, f"\n{hide(body, CALL, CALL_END)}\n", CALL_END]
        return parts

    def _read(self, text: str) -> tuple[str, Calls, str | None]:
        thought, rest = _split_thought(text)
        if CALL not in rest and CALL_END not in rest:
            if not rest.strip():
                raise Malformed("empty", f"neither a call nor an answer follows the thought; {self._form()}")
            return thought, [], rest
        lead, found, tail = rest.partition(CALL)
        if not found or CALL_END in lead:
            raise Malformed("unclosed", f"{CALL_END} without {CALL} before it; {self._form()}")
        if lead.strip():
            thought = f"{thought}\n\n{lead.strip()}" if thought else lead.strip()
        return thought, self._read_calls(tail), None

    def _read_calls(self, text: str) -> Calls:
        """Reads what follows the first opening tag."""
        calls: Calls = []
        for number, piece in enumerate(text.split(CALL), start=1):
            body, closed, after = piece.partition(CALL_END)
            if not closed:
                raise Malformed("unclosed", f"call {number} has no {CALL_END}; {self._form()}")
            if after.strip():
                raise Malformed(
                    "prose", f"text after call {number}; a turn ends after its calls: {after.strip()[:40]!r}"
                )
            calls.append(self._read_call(body, number))
        return calls

    def _read_call(self, body: str, number: int) -> tuple[str, dict[str, Any]]:
        try:
            value = strict_json.loads(body)
        except strict_json.JsonError as error:
            raise Malformed("json", f"call {number} is not valid JSON: {error}; {self._form()}") from None
        well_formed = isinstance(value, dict) and set(value) == {"name", "arguments"}
        if not well_formed or not isinstance(value["name"], str) or not isinstance(value["arguments"], dict):
            raise Malformed("shape", f'call {number} is no object with "name" and "arguments"; {self._form()}')
        return value["name"], value["arguments"]

    def _form(self) -> str:
        return f'write {CALL}{{"name": "tool", "arguments": {{...}}}}{CALL_END} or the answer'


class HermesCompact(ChatML):
    """One line for each tool, and a call in a dozen tokens.

    A turn is `thought`, a new line, then one or more `<call>tool {"argument":value}` on lines of their own or
    `<answer>` and the answer. Without a thought the answer stands alone, and needs no marker.
    """

    id = "hermes-compact"
    version = "1"
    markers = (CALL_MARK, ANSWER_MARK)

    def _docs(self, toolset: Toolset, after_text: bool) -> list[Part]:
        if not len(toolset):
            return []
        lines = "".join(f"{tool.signature()} - {_first_sentence(tool)}\n" for tool in toolset)
        form = 'tool {"argument":"value"}. Otherwise write the answer.'
        return ["\n" if after_text else "", "Tools:\n", lines, "To use a tool, write ", CALL_MARK, form]

    def _observe(self, contents: Sequence[str]) -> list[Part]:
        parts: list[Part] = []
        for content in contents:
            parts += [START, "tool\n", content, END, "\n"]
        return parts

    def _write(self, action: Action) -> list[Part]:
        lead: list[Part] = [f"{action.thought}\n"] if action.thought else []
        if action.answer is not None:
            return [*lead, *([ANSWER_MARK] if lead else []), action.answer]
        for number, call in enumerate(action.calls):
            arguments = strict_json.dumps(call.arguments, tight=True)
            lead += ["\n" if number else "", CALL_MARK, f"{call.tool} {hide(arguments, *self.markers)}"]
        return lead

    def _read(self, text: str) -> tuple[str, Calls, str | None]:
        lead, called, tail = text.partition(CALL_MARK)
        thought, answered, answer = lead.partition(ANSWER_MARK)
        if answered and called:
            raise Malformed("prose", f"an answer and a call in one turn; {self._form()}")
        if not called and not answered:
            return "", [], text
        thought = thought.removesuffix("\n") if thought.strip() else ""
        if answered:
            if not answer.strip():
                raise Malformed("empty", f"nothing follows {ANSWER_MARK}; {self._form()}")
            return thought, [], answer
        return thought, [self._read_call(piece, number) for number, piece in enumerate(tail.split(CALL_MARK), 1)], None

    def _read_call(self, body: str, number: int) -> tuple[str, dict[str, Any]]:
        head = _HEAD.match(body)
        if head is None or not body[head.end() :].startswith("{"):
            raise Malformed("shape", f"call {number} is no tool name with an object of arguments; {self._form()}")
        try:
            return head.group(1), strict_json.loads(body[head.end() :])
        except strict_json.JsonError as error:
            kind = _UNCLOSED_FORM.get(error.fault, "json")
            raise Malformed(
                kind, f"the arguments of call {number} are not valid JSON: {error}; {self._form()}"
            ) from None

    def _form(self) -> str:
        return 'write <call>tool {"argument":"value"} or the answer'


def _function(tool: Tool) -> dict[str, Any]:
    """A tool in the form of the OpenAI API, as chat templates take it."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _first_sentence(tool: Tool) -> str:
    return re.split(r"(?<=[.。])(?:\s|$)|(?<=。)", tool.description, maxsplit=1)[0]


def _split_thought(text: str) -> tuple[str, str]:
    """Thought and the rest; raises `Malformed`."""
    before, opened, after = text.partition(THINK)
    if not opened or before.strip():
        return "", text
    thought, closed, rest = after.partition(THINK_END)
    if not closed:
        raise Malformed("unclosed", f"{THINK} has no {THINK_END}")
    return thought.removeprefix("\n").removesuffix("\n"), rest.removeprefix("\n").removeprefix("\n")


def hide(body: str, *markers: str) -> str:
    """JSON in which no string spells a marker: its `<` becomes an escape that reads back the same."""
    for marker in markers:
        body = body.replace(marker, "\\u003c" + marker[1:])
    return body
