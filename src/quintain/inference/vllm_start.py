"""Starts vLLM: its arguments, from what the engine is told and from the model."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import torch

from quintain.inference.vllm_weights import Carrier
from quintain.interface.errors import InfraError, InputError

REMEDY = "pip install 'quintain[vllm]'; on a machine without GPU as docs/concepts/vllm.md says"

_SPARE = 256
"""Tokens of two of vLLM's largest blocks: it keeps one empty, and the last of a sequence is seldom full."""
_SETTINGS = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # trainer and engine take turns on the same cores
}


def need_vllm() -> None:
    """Makes sure that vLLM is there, quiet, and tells nobody.

    Raises:
        InputError: it is not installed.
    """
    if find_spec("vllm") is None:
        raise InputError(f'the engine "vllm" needs the package `vllm`: {REMEDY}')
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)


def arguments(model: Any, carrier: Carrier, *, kv_tokens: int, sessions: int, options: Mapping[str, Any]) -> Any:
    """Arguments of vLLM; what `options` say goes before our own defaults.

    Raises:
        InputError: an option is unknown, or is not the user's to set.
    """
    from vllm.engine.arg_utils import AsyncEngineArgs

    fixed = {
        "model": str(carrier.base),
        "skip_tokenizer_init": True,
        "worker_extension_cls": "quintain.inference.vllm_worker.Reload",
        "logprobs_mode": "raw_logprobs",
        **carrier.options,
    }
    known = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    for name in options:
        if name in fixed:
            raise InputError(f"engine.options: {name!r} is not to be set here")
        if name not in known:
            raise InputError(f"engine.options: vLLM has no argument {name!r}")
    defaults = {**sizes(model, kv_tokens=kv_tokens, sessions=sessions), "disable_log_stats": True}
    return AsyncEngineArgs(**{**defaults, **options, **fixed})


def sizes(model: Any, *, kv_tokens: int, sessions: int) -> dict[str, Any]:
    """What an engine and a server are both told of a model and of the memory they may use."""
    config = model.config.get_text_config()
    return {
        "dtype": str(model.dtype).removeprefix("torch."),
        "max_num_seqs": sessions,
        "max_model_len": min(kv_tokens, int(getattr(config, "max_position_embeddings", 0) or kv_tokens)),
        "kv_cache_memory_bytes": (kv_tokens + _SPARE) * _token_bytes(model),
        "enable_prefix_caching": True,
        "enforce_eager": not torch.cuda.is_available(),  # compiling takes minutes on a CPU
        "max_logprobs": -1,
    }


def start(arguments: Any) -> Any:
    """Begins vLLM's processes.

    Raises:
        InfraError: it does not start.
    """
    from vllm.v1.engine.async_llm import AsyncLLM

    try:
        return AsyncLLM.from_engine_args(arguments)
    except Exception as error:  # of any of its parts, or of pydantic's about an option
        raise InfraError(f"vLLM does not start: {' '.join(str(error).split())[:300]}") from error


@contextmanager
def vllms_end() -> Iterator[None]:
    """Turns the end of vLLM's processes, or a failure in them, into an error of ours.

    Raises:
        InfraError: they have ended, or failed at what runs inside.
    """
    from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

    try:
        yield
    except (EngineDeadError, EngineGenerateError) as error:
        raise InfraError(f"vLLM has ended or failed; what it said stands above: {type(error).__name__}") from error


def _token_bytes(model: Any) -> int:
    """Bytes of a token's keys and values in all layers."""
    config = model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * int(config.num_hidden_layers * heads * size) * int(model.dtype.itemsize)
