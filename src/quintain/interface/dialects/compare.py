"""Does a dialect open an episode as the model's own chat template would? A check, never a way to render."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quintain.interface.dialects.base import Dialect
from quintain.interface.errors import InputError
from quintain.interface.messages import Message
from quintain.interface.tools import Toolset


@dataclass(frozen=True, slots=True)
class TemplateDifference:
    """The first place where dialect and template part.

    Attributes:
        index: number of tokens they share.
        dialect: text of the dialect's next tokens ("" if it has none left).
        template: text of the template's next tokens.
        shared: text of the last tokens they share.
    """

    index: int
    dialect: str
    template: str
    shared: str

    def __str__(self) -> str:
        return (
            f"the dialect leaves the model's chat template at token {self.index}, after {self.shared!r}: "
            f"dialect {self.dialect!r}, template {self.template!r}"
        )


def compare_with_template(
    dialect: Dialect, tokenizer: Any, messages: Sequence[Message], toolset: Toolset
) -> TemplateDifference | None:
    """Compares `dialect.prompt` with the tokenizer's Jinja chat template, token by token.

    A difference is no error: compact dialects differ on purpose. It says how far a pretrained model is from
    what it saw in its own training.

    Args:
        dialect: the dialect.
        tokenizer: the transformers tokenizer whose `chat_template` is the reference.
        messages: system and user messages.
        toolset: the tools.

    Returns:
        The first difference, or None if all tokens agree.

    Raises:
        InputError: the tokenizer has no chat template.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise InputError("the tokenizer has no chat template to compare with")
    ours = dialect.prompt(messages, toolset)
    functions = [{"type": "function", "function": _function(spec)} for spec in (tool.spec() for tool in toolset)]
    text = tokenizer.apply_chat_template(
        [{"role": message.role, "content": message.text} for message in messages],
        tools=functions or None,
        add_generation_prompt=True,
        tokenize=False,
    )
    theirs = tokenizer.encode(text, add_special_tokens=False)
    if ours == theirs:
        return None
    pairs = zip(ours, theirs, strict=False)
    shorter = min(len(ours), len(theirs))
    index = next((place for place, (one, other) in enumerate(pairs) if one != other), shorter)
    decode = tokenizer.decode
    return TemplateDifference(
        index,
        decode(ours[index : index + 8]),
        decode(theirs[index : index + 8]),
        decode(ours[max(0, index - 8) : index]),
    )


def _function(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: spec[key] for key in ("name", "description", "parameters")}
