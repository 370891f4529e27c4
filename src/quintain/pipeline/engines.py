"""The engine a recipe chooses."""

from __future__ import annotations

from typing import Any

from quintain.interface.errors import InputError
from quintain.interface.generation import Engine
from quintain.pipeline.workshop import Policy
from quintain.recipe import Recipe


def make_engine(recipe: Recipe, policy: Policy, grammars: Any = None) -> Engine:
    """Begins the engine that generates with a policy.

    Args:
        recipe: says which.
        policy: whose weights it has.
        grammars: compiles grammars, where turns are to be kept well-formed.

    Raises:
        InputError: the engine's package is missing, or it can't do what is asked.
        InfraError: it does not start.
    """
    chosen, model = recipe.engine, policy.model
    kv_tokens, sessions = recipe.kv_tokens, recipe.concurrency
    if chosen.kind == "local":
        from quintain.inference.local import LocalEngine

        return LocalEngine(model, kv_tokens=kv_tokens, sessions=sessions, grammars=grammars)
    if grammars is not None:
        raise InputError(f'sampling.grammar needs the engine "local", not {chosen.kind!r}')
    if chosen.kind == "vllm":
        from quintain.inference.vllm import VLLMEngine

        return VLLMEngine(model, kv_tokens=kv_tokens, sessions=sessions, options=chosen.options)
    from quintain.inference.own_server import serve_model
    from quintain.inference.server import ServerEngine

    if chosen.endpoint is not None:
        return ServerEngine(chosen.endpoint, model, policy.tokenizer)
    tokenizer = policy.tokenizer
    endpoint, own = serve_model(model, tokenizer, kv_tokens=kv_tokens, sessions=sessions, options=chosen.options)
    return ServerEngine(endpoint, model, tokenizer, own)
