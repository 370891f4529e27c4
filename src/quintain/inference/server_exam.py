"""Is a vLLM server well, and does it mean the same by its token ids?"""

from __future__ import annotations

from typing import Any

from quintain.endpoint.client import Endpoint
from quintain.interface.errors import InputError


async def need_health(endpoint: Endpoint) -> None:
    """Asks the server how it is.

    Raises:
        InfraError: nothing answers, or its engine has ended.
        InputError: it is no vLLM server.
    """
    await endpoint.send(lambda client: client.get(f"{root(endpoint)}/health", cast_to=str))


async def context_of(endpoint: Endpoint) -> int:
    """Longest sequence that the server takes.

    Raises:
        InputError: it has no model of that name, or does not say.
    """
    config = endpoint.config
    listed = await endpoint.send(lambda client: client.models.list())
    found = {one.id: getattr(one, "max_model_len", None) for one in listed.data}
    if config.model not in found:
        raise InputError(f"{config.url}: no model {config.model!r} there; models: {', '.join(found)}")
    context = found[config.model]
    if context is None:
        raise InputError(f"{config.url}: the server does not say its max_model_len, so it is no vLLM")
    return int(context)


async def need_same_tokens(endpoint: Endpoint, tokenizer: Any) -> None:
    """Holds every token of the tokenizer against the server's.

    Raises:
        InputError: names the first token that differs.
    """
    same, differs = 0, len(tokenizer) + 1
    if await _written(endpoint, 0, len(tokenizer)) == _text(tokenizer, 0, len(tokenizer)):
        return
    while differs - same > 1:  # ids below `same` are alike, those below `differs` are not
        middle = (same + differs) // 2
        alike = await _written(endpoint, 0, middle) == _text(tokenizer, 0, middle)
        same, differs = (middle, differs) if alike else (same, middle)
    theirs, ours = await _written(endpoint, same, differs), _text(tokenizer, same, differs)
    raise InputError(
        f"{endpoint.config.url}: the server's tokenizer is another one: token {same} is {theirs!r} there and {ours!r} "
        "here; serve the model with its own tokenizer"
    )


def root(endpoint: Endpoint) -> str:
    """Address of the server without the version of the protocol."""
    return endpoint.config.url.rstrip("/").removesuffix("/v1")


def _text(tokenizer: Any, start: int, stop: int) -> str:
    return str(tokenizer.decode(list(range(start, stop)), skip_special_tokens=False))


async def _written(endpoint: Endpoint, start: int, stop: int) -> str | None:
    """What the server writes for a range of ids; None where it has no such ids."""
    body = {"model": endpoint.config.model, "tokens": list(range(start, stop))}
    try:
        reply = await endpoint.send(lambda client: client.post(f"{root(endpoint)}/detokenize", cast_to=dict, body=body))
    except InputError:  # an id beyond its vocabulary
        return None
    return str(reply["prompt"])
