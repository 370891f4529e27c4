"""DeepSeek: XML calls (DSML) with thinking, as DeepSeek-V3.2 publishes its message encoding.

Format: `encoding_dsv32.py` in the public repository of DeepSeek-V3.2, thinking mode. A turn is opened by
`<think>` in the prompt, so the agent writes its thought, `</think>`, then an answer or one block of calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from quintain.interface.dialects import strict_json
from quintain.interface.dialects.text import Calls, Malformed, Part, TextDialect, Token
from quintain.interface.messages import Action, Message
from quintain.interface.tools import Tool, Toolset

BOS, EOS = Token("<｜begin▁of▁sentence｜>"), Token("<｜end▁of▁sentence｜>")
USER, ASSISTANT = Token("<｜User｜>"), Token("<｜Assistant｜>")
THINK, THINK_END = Token("<think>"), Token("</think>")
DSML = Token("｜DSML｜")

BLOCK, BLOCK_END = f"<{DSML}function_calls>", f"</{DSML}function_calls>"
_PARAMETER_END = f"</{DSML}parameter>"
_INVOKE = re.compile(rf'\s*<{DSML}invoke name="([^"]*)">')
_INVOKE_END = re.compile(rf"\s*</{DSML}invoke>")
_PARAMETER = re.compile(rf'\s*<{DSML}parameter name="([^"]*)" string="(true|false)">')
_BLANK = re.compile(r"\s*")

_DOCS = f"""

## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "{BLOCK}" block like the following as part of your reply to the user:
{BLOCK}
<{DSML}invoke name="$FUNCTION_NAME">
<{DSML}parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</{DSML}parameter>
...
</{DSML}invoke>
<{DSML}invoke name="$FUNCTION_NAME2">
...
</{DSML}invoke>
{BLOCK_END}

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects \
should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for \
other types (numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking \
block. Here is an example:

{BLOCK}
...
{BLOCK_END}

<function_results>
...
</function_results>

{THINK}...thinking about results{THINK_END}

Here are the functions available in JSONSchema format:
<functions>
"""
"""The text these models were trained with, word for word."""


class DeepSeek(TextDialect):
    """DeepSeek-V3.2 in thinking mode."""

    id = "deepseek"
    version = "2"
    required = (BOS, USER, ASSISTANT, EOS)
    ends = (EOS,)
    markers = (THINK, THINK_END, DSML)
    forgets = True

    def recall(self, ids: Sequence[int], action: Action) -> list[int]:
        """A forgotten turn is opened by `</think>` in place of `<think>`."""
        opening = self._ids([THINK])
        opened = list(ids[-len(opening) :]) == opening
        return super().recall(ids[: -len(opening)] if opened else ids, action)

    def _prompt(self, system: str, messages: Sequence[Message], toolset: Toolset) -> list[Part]:
        parts: list[Part] = [BOS, system]
        if len(toolset):
            functions = "\n".join(json.dumps(_function(tool), ensure_ascii=False) for tool in toolset)
            parts += [*self._own(_DOCS), functions, "\n</functions>\n"]
        for message in messages:
            parts += self._say(message)
        return [*parts, *self._open(after_message=True)]

    def _observe(self, contents: Sequence[str]) -> list[Part]:
        results = "".join(f"\n<result>{content}</result>" for content in contents)
        return [f"\n\n<function_results>{results}\n</function_results>\n\n"]

    def _say(self, message: Message) -> list[Part]:
        return [USER, message.text] if message.role == "user" else [message.text]

    def _open(self, after_message: bool) -> list[Part]:
        return [ASSISTANT, THINK] if after_message else [THINK]

    def _write(self, action: Action) -> list[Part]:
        parts: list[Part] = [action.thought, THINK_END]
        if action.answer is not None:
            return [*parts, action.answer]
        parts += ["\n\n", *self._own(BLOCK), "\n"]
        for call in action.calls:
            strict_json.check(call.arguments)
            parts += ["<", DSML, f'invoke name="{call.tool}">\n']
            for name, value in call.arguments.items():
                parts += self._parameter(name, value)
            parts += ["</", DSML, "invoke>\n"]
        return [*parts, *self._own(BLOCK_END)]

    def _parameter(self, name: str, value: Any) -> list[Part]:
        # text that spells a tag would end its own element, so it goes as JSON, which can escape the tag
        raw = isinstance(value, str) and DSML not in value
        text = value if raw else strict_json.dumps(value).replace(DSML, "\\uff5c" + DSML[1:])
        head = f'parameter name="{name}" string="{"true" if raw else "false"}">'
        return ["<", DSML, head, text, *self._own(_PARAMETER_END), "\n"]

    def _read(self, text: str) -> tuple[str, Calls, str | None]:
        thought, closed, rest = text.partition(THINK_END)
        if not closed:
            raise Malformed("unclosed", f"the thought has no {THINK_END} after it")
        lead, opened, tail = rest.partition(BLOCK)
        if DSML in lead:
            raise Malformed("shape", f"a tag outside of a {BLOCK} block; {self._form()}")
        if not opened:
            if not rest.strip():
                raise Malformed("empty", f"neither a call nor an answer follows the thought; {self._form()}")
            return thought, [], rest
        body, closed, after = tail.partition(BLOCK_END)
        if not closed:
            raise Malformed("unclosed", f"the calls have no {BLOCK_END}; {self._form()}")
        if after.strip():
            raise Malformed("prose", f"text after the calls; a turn ends after them: {after.strip()[:40]!r}")
        if lead.strip():
            thought = f"{thought}\n\n{lead.strip()}" if thought else lead.strip()
        return thought, self._read_block(body), None

    def _read_block(self, body: str) -> Calls:
        calls: Calls = []
        place = 0
        while not _BLANK.fullmatch(body, place):
            head = _INVOKE.match(body, place)
            if head is None:
                raise self._stray(body[place:].lstrip(), place)
            arguments, place = self._read_arguments(body, head.end(), len(calls) + 1)
            calls.append((head.group(1), arguments))
        if not calls:
            raise Malformed("shape", f"the block holds no call; {self._form()}")
        return calls

    def _stray(self, found: str, place: int) -> Malformed:
        expected = f'<{DSML}invoke name="tool"> must stand at character {place}, found {found[:40]!r}'
        return Malformed("json" if found.startswith(("<" + DSML, "</" + DSML)) else "prose", expected)

    def _read_arguments(self, body: str, place: int, number: int) -> tuple[dict[str, Any], int]:
        """The parameters of one call from `place` on, and the place after the call."""
        arguments: dict[str, Any] = {}
        while head := _PARAMETER.match(body, place):
            name, is_text = head.group(1), head.group(2) == "true"
            stop = body.find(_PARAMETER_END, head.end())
            if stop < 0:
                raise Malformed("unclosed", f"call {number}: parameter {name!r} has no {_PARAMETER_END}")
            if name in arguments:
                raise Malformed("json", f"call {number}: parameter {name!r} occurs twice")
            value = body[head.end() : stop]
            arguments[name] = value if is_text else self._value(value, name, number)
            place = stop + len(_PARAMETER_END)
        end = _INVOKE_END.match(body, place)
        if end is None and f"</{DSML}invoke>" not in body[place:]:
            raise Malformed("unclosed", f"call {number} has no </{DSML}invoke>")
        if end is None:
            raise Malformed("json", f"call {number}: a parameter or </{DSML}invoke> must stand at character {place}")
        return arguments, end.end()

    def _value(self, text: str, name: str, number: int) -> Any:
        try:
            return strict_json.loads(text)
        except strict_json.JsonError as error:
            raise Malformed("json", f"call {number}: parameter {name!r} is not valid JSON: {error}") from None

    def _form(self) -> str:
        return f'write {BLOCK}<{DSML}invoke name="tool">...</{DSML}invoke>{BLOCK_END} or the answer'


def _function(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
