"""Grammars of an agent's turn: what a dialect can parse, with calls that fit the toolset.

A grammar is written in llguidance's Lark. The lead of a turn (thought and opening marker) is one lexeme, so that the
longest match can't swallow the marker; arguments are the tools' own JSON Schemas, which the library compiles. A turn
drawn under a grammar parses and its calls fit the schemas, unless it is cut at its token limit. What an agent could
write freely and can't write here: arguments in another order than the schema's, and a text that spells a marker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from quintain.inference.schemas import JSON_STYLE, closed, takes_text
from quintain.interface.dialects.lines import reads_as_itself
from quintain.interface.errors import InputError
from quintain.interface.tools import Tool, Toolset

_PRINTS = r"[^\s\x00-\x1f]"
_JSON_TEXT = r"(true|false|null|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)\s*"
"""What a `name: value` line reads as JSON although it opens no quote or bracket."""

COMPACT = ("<call>", "<answer>")
HERMES = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def without(*markers: str) -> str:
    """A regular expression, without lookaround, of all texts that hold none of the markers.

    Args:
        markers: each with one `<`, at its start.
    """
    starts = sorted({marker[:end] for marker in markers for end in range(1, len(marker))}, key=len, reverse=True)
    following = {start: {one[len(start)] for one in markers if one.startswith(start)} for start in starts}
    broken = [f"{_escaped(start)}[^<{_escaped(''.join(sorted(following[start])))}]" for start in starts]
    begun = "|".join(map(_escaped, starts))
    return f"([^<]|({begun})*({'|'.join(broken)}))*({begun})*"


def _escaped(text: str) -> str:
    return text.replace("/", r"\/")  # a slash would end a terminal


@lru_cache(maxsize=64)
def _text(markers: tuple[str, ...]) -> str:
    return without(*markers)


def turn_grammar(dialect: str, toolset: Toolset) -> str:
    """The grammar of one turn.

    Args:
        dialect: its id.
        toolset: the tools that may be called.

    Raises:
        InputError: the dialect has no grammar, or a tool takes values that no grammar can keep well-formed.
    """
    if dialect not in _GRAMMARS:
        raise InputError(f"dialect {dialect!r} has no grammar; those that have: {', '.join(_GRAMMARS)}")
    tools = list(toolset)
    rules = list(_GRAMMARS[dialect](tools))
    if tools:
        rules.append("tool: " + " | ".join(f"tool_{number}" for number in range(len(tools))))
    return "\n".join(rules) + "\n"


def _lines(tools: Sequence[Tool]) -> Iterator[str]:
    yield from _compact_turn(bool(tools))
    first = r"[^\s\x00-\x1f\[{\"]"
    yield rf"PLAIN: /{first}[^\n\x00-\x1f]*/ & ~/{_JSON_TEXT}/ & /{_text(COMPACT)}/"
    for number, tool in enumerate(tools):
        schema = closed(tool.name, tool.parameters, _text(COMPACT))
        rules = [_literal(tool.name)]
        for name, value in schema["properties"].items():
            free = takes_text(tool.parameters["properties"][name])
            line = f"{_literal(f'{chr(10)}{name}: ')} ({_value_of_line(value, schema, free)})"
            rules.append(line if name in schema.get("required", ()) else f"({line})?")
        yield f"tool_{number}: {' '.join(rules)}"


def _value_of_line(value: dict[str, Any], schema: dict[str, Any], free: bool) -> str:
    """JSON; for a text also the text itself."""
    whole = value | {key: schema[key] for key in ("$defs",) if key in schema}
    found = [_json(whole, tight=False)]
    found += ["PLAIN"] if free else []
    found += [_literal(one) for one in value.get("enum", ()) if isinstance(one, str) and reads_as_itself(one)]
    return " | ".join(found)


def _hermes_compact(tools: Sequence[Tool]) -> Iterator[str]:
    yield from _compact_turn(bool(tools))
    for number, tool in enumerate(tools):
        arguments = closed(tool.name, tool.parameters, _text(COMPACT))
        yield f"tool_{number}: {_literal(f'{tool.name} ')} {_json(arguments, tight=True)}"


def _compact_turn(tools: bool) -> Iterator[str]:
    text = _text(COMPACT)
    yield "start: " + (r"HEAD tool (/\n<call>/ tool)* | " if tools else "") + "SAID | ANSWER"
    yield rf"HEAD: /({text}\n)?<call>/"
    yield rf"SAID: /{text}/ & /(?s:.*){_PRINTS}(?s:.*)/"
    yield rf"ANSWER: /{text}\n<answer>{text}/ & /(?s:.*)<answer>(?s:.*){_PRINTS}(?s:.*)/"


def _hermes(tools: Sequence[Tool]) -> Iterator[str]:
    text = _text(HERMES)
    thought = rf"<think>\n{text}\n<\/think>\n\n"
    yield "start: " + (r"HEAD tool (/\n<tool_call>\n/ tool)* | " if tools else "") + "THOUGHT? SAID"
    yield rf"HEAD: /({thought})?<tool_call>\n/"
    yield f"THOUGHT: /{thought}/"
    yield rf"SAID: /{text}/ & /(?s:.*){_PRINTS}(?s:.*)/"
    for number, tool in enumerate(tools):
        arguments = closed(tool.name, tool.parameters, text)
        shared = {"$defs": arguments.pop("$defs")} if "$defs" in arguments else {}
        properties = {"name": {"const": tool.name}, "arguments": arguments}
        call = {"type": "object", "properties": properties, "required": list(properties)}
        whole = call | {"additionalProperties": False} | shared
        yield rf"tool_{number}: {_json(whole, tight=False)} /\n<\/tool_call>/"


_GRAMMARS: dict[str, Callable[[Sequence[Tool]], Iterator[str]]] = {
    "hermes": _hermes,
    "hermes-compact": _hermes_compact,
    "lines": _lines,
}


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json(schema: dict[str, Any], *, tight: bool) -> str:
    return "%json " + json.dumps(schema | {"x-guidance": JSON_STYLE[tight]}, ensure_ascii=False)
