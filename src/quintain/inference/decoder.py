"""A transformers model as a batched decoder: the model's own weights and code, another attention and matmul.

The decoder is a copy of the model's modules that shares every parameter, so a change of the trainer's weights is
seen at once and costs no memory, and so that what is changed here (attention, linear layers, eval mode) never
touches the model being trained. Every architecture whose attention goes through transformers' attention
interface works, the llama family by a shorter forward pass; one that does not is refused after a comparison on a few
tokens.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from quintain.inference import llama
from quintain.inference.attention import NAME, Plan, Work, pool_attention
from quintain.inference.kv import KVPool
from quintain.inference.products import ThinLinear
from quintain.interface.errors import InputError

_PROBE = 12


class Decoder:
    """Computes logits of many rows at once over a KV pool.

    Args:
        model: a transformers causal LM, with or without LoRA adapters (peft).

    Raises:
        InputError: the model's attention can't run over a pool.
    """

    def __init__(self, model: Any) -> None:
        inner = model.get_base_model() if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else model
        self.device = next(inner.parameters()).device
        shared = {id(tensor): tensor for tensor in chain(inner.parameters(), inner.buffers())}
        self._model = copy.deepcopy(inner, shared).eval()
        AttentionInterface.register(NAME, pool_attention)
        self._model.set_attn_implementation(NAME)
        self.compute = self._as_llama if llama.is_llama(self._model) else self.by_own_code
        for module in self._model.modules():
            if type(module) is nn.Linear:
                module.__class__ = ThinLinear
        self._compare()

    @torch.inference_mode()
    def forward(self, pool: KVPool, works: Sequence[Work]) -> Tensor:
        """Computes all works; returns the logits that follow each one's last token `[len(works), V]`."""
        plan, order = Plan.of(pool, works, self.device)
        ids = [token for work in plan.works for token in work.sequence[work.start : work.stop]]
        positions = [place for work in plan.works for place in range(work.start, work.stop)]
        ends, total = [], 0
        for work in plan.works:
            total += work.count
            ends.append(total - 1)
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.tensor(ends)
        return self.compute(
            torch.tensor(ids, device=self.device),
            torch.tensor(positions, device=self.device),
            back.to(self.device),
            plan,
        )

    def _as_llama(self, ids: Tensor, positions: Tensor, ends: Tensor, plan: Plan) -> Tensor:
        return llama.forward(self._model, ids, positions, ends, plan)

    def by_own_code(self, ids: Tensor, positions: Tensor, ends: Tensor, plan: Plan) -> Tensor:
        """Logits `[R, V]` after the tokens `ends` `[R]` of a flat batch, by the model's own code."""
        logits: Tensor = self._model(
            input_ids=ids[None], position_ids=positions[None], use_cache=False, logits_to_keep=ends, plan=plan
        ).logits
        return logits[0]

    def _compare(self) -> None:
        """Refuses a model whose logits over the pool differ from those of its usual attention."""
        vocabulary = self._model.get_input_embeddings().weight.shape[0]
        ids = [(7 * index + 3) % vocabulary for index in range(_PROBE)]
        name = type(self._model).__name__
        pool = KVPool(1, _PROBE)
        works = [Work(0, 0, _PROBE - 1, ids), Work(0, _PROBE - 1, 1, ids)]
        try:
            found = torch.cat([self.forward(pool, [work]) for work in works])
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise InputError(f"{name} can't run in the local engine: {str(error).splitlines()[0]}") from error
        self._model.set_attn_implementation("eager")
        with torch.inference_mode():
            expected = self._model(input_ids=torch.tensor([ids], device=self.device), use_cache=False).logits[0, -2:]
        self._model.set_attn_implementation(NAME)
        difference = (found - expected).abs().max().item()
        bound = (1e-3 if expected.dtype == torch.float32 else 0.1) * max(1.0, expected.abs().max().item())
        if not difference <= bound:
            raise InputError(
                f"{name} can't run in the local engine: its logits differ by {difference:.2g} > {bound:.2g} from "
                "those of its own attention, which does not go through transformers' attention interface"
            )
