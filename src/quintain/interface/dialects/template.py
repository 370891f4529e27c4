"""A dialect as a Jinja chat template, for servers that render messages themselves (transformers, vLLM, llama.cpp).

Inside quintain nothing is rendered by it: a dialect writes tokens. The template writes the same text, so the tokens
agree for every conversation whose texts spell no special token; a server that renders by template can't tell those
apart from its own.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from quintain.interface.errors import InputError

_PIECES = {
    "hermes": ("chatml", "hermes"),
    "hermes-compact": ("chatml", "marks", "hermes-compact", "compact"),
    "lines": ("chatml", "marks", "lines", "compact"),
    "deepseek": ("deepseek",),
}


@cache
def chat_template(dialect: str) -> str:
    """The template of a dialect, as `tokenizer.chat_template` takes it.

    It reads `messages` with `content`, `reasoning_content` (a thought before an answer), `tool_calls` (arguments as
    objects; the text beside them is the thought) and the role `tool`, and `tools` in the form of the OpenAI API.

    Raises:
        InputError: there is no such dialect.
    """
    if dialect not in _PIECES:
        raise InputError(f"no chat template for dialect {dialect!r}; there are: {', '.join(_PIECES)}")
    folder = resources.files(__package__) / "templates"
    return "".join((folder / f"{name}.jinja").read_text(encoding="utf-8").rstrip("\n") for name in _PIECES[dialect])
