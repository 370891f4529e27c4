"""Lines: ChatML with one argument a line, for small models trained here.

A small model copies names from question and page into its calls. JSON puts a quote before every value, so the
model has to spell ` Guam` (one token, with its space) as `"Gu` `am` (other tokens). Here a value stands behind
`name: ` as it stands in running text, and is copied token by token.

    thought
    <call>open
    title: Guam
"""

from __future__ import annotations

import re
from typing import Any

from quintain.interface.dialects import strict_json
from quintain.interface.dialects.hermes import ANSWER_MARK, CALL_MARK, HermesCompact, hide
from quintain.interface.dialects.text import Calls, Malformed, Part
from quintain.interface.messages import Action
from quintain.interface.tools import Toolset

_NAME = re.compile(r"[^\s:<]+")
_JSON_START = ("{", "[", '"')


class Lines(HermesCompact):
    """The compact form with a call's arguments as `name: value` lines.

    A value that is valid JSON means that JSON; any other text means itself. Text that would be read as JSON, or
    that holds a line break, is written as a JSON string.
    """

    id = "lines"
    version = "1"

    def _docs(self, toolset: Toolset, after_text: bool) -> list[Part]:
        parts = super()._docs(toolset, after_text)
        form = "tool and its arguments as name: value lines. Otherwise write the answer."
        return [*parts[:-1], form] if parts else []

    def _write(self, action: Action) -> list[Part]:
        lead: list[Part] = [f"{action.thought}\n"] if action.thought else []
        if action.answer is not None:
            return [*lead, *([ANSWER_MARK, " "] if lead else []), action.answer]
        for number, call in enumerate(action.calls):
            lines = [f"\n{name}: {_write_value(value)}" for name, value in call.arguments.items()]
            lead += ["\n" if number else "", CALL_MARK, call.tool, *lines]
        return lead

    def _read(self, text: str) -> tuple[str, Calls, str | None]:
        thought, calls, answer = super()._read(text)
        if answer is not None and ANSWER_MARK in text:
            answer = answer.removeprefix(" ")
        return thought, calls, answer

    def _read_call(self, body: str, number: int) -> tuple[str, dict[str, Any]]:
        tool, *lines = body.strip("\n").split("\n")
        if not _NAME.fullmatch(tool.strip()):
            raise Malformed("shape", f"call {number} begins with no tool name; {self._form()}")
        arguments: dict[str, Any] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not _NAME.fullmatch(name) or not value.strip():
                raise Malformed("shape", f"call {number}: {line[:40]!r} is no `name: value` line; {self._form()}")
            if name in arguments:
                raise Malformed("shape", f"call {number} gives {name!r} twice; {self._form()}")
            arguments[name] = self._read_value(value.strip(), name, number)
        return tool.strip(), arguments

    def _read_value(self, text: str, name: str, number: int) -> Any:
        try:
            return strict_json.loads(text)
        except strict_json.JsonError as error:
            if not text.startswith(_JSON_START):
                return text
            raise Malformed("json", f"{name!r} of call {number} is not valid JSON: {error}") from None

    def _form(self) -> str:
        return "write <call>tool and its arguments as `name: value` lines, or the answer"


def _write_value(value: Any) -> str:
    if isinstance(value, str) and reads_as_itself(value):
        strict_json.check(value)
        return value
    return hide(strict_json.dumps(value), CALL_MARK, ANSWER_MARK)


def reads_as_itself(text: str) -> bool:
    """Whether a text needs no quotes behind `name: `."""
    if not text or text != text.strip() or "\n" in text or text.startswith(_JSON_START):
        return False
    if CALL_MARK in text or ANSWER_MARK in text:
        return False
    try:
        strict_json.loads(text)
    except strict_json.JsonError:
        return True
    return False
