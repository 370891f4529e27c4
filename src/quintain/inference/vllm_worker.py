"""What runs inside of vLLM's worker processes: the exact way for new weights into a running engine."""

from __future__ import annotations

from typing import Any


class Reload:
    """Methods that vLLM adds to its workers (`worker_extension_cls`), called by `collective_rpc`."""

    reload_weights: Any
    model_runner: Any

    def reload_exactly(self, folder: str) -> None:
        """vLLM's own reload, and what it leaves undone (0.32): on CPUs, a tied head goes on with the old weights.

        There every linear layer computes with a copy of its weights that is laid out for the kernel. Reloading makes
        the copy anew for each layer that the checkpoint has tensors of; the head of tied embeddings has none.

        Args:
            folder: a checkpoint as transformers writes it.
        """
        from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

        self.reload_weights(weights_path=folder)
        for module in self.model_runner.get_model().modules():
            if isinstance(module, ParallelLMHead):
                module.quant_method.process_weights_after_loading(module)
