"""Two ways for the trainer's weights into vLLM: all of them as a checkpoint, or adapters alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Bounds of the adapters' rank that vLLM knows."""
_NAME, _NUMBER = "policy", 1


class Carrier(Protocol):
    """Carries the weights of the trainer's model over.

    Attributes:
        base: folder of the model vLLM starts with.
        options: arguments that vLLM needs for it.
    """

    base: Path
    options: dict[str, Any]

    def write(self) -> None:
        """Writes the trainer's weights as they are now."""
        ...

    def request(self) -> Any:
        """The adapters a generation asks for; None where it asks for none."""
        ...

    async def load(self, llm: Any) -> None:
        """Makes vLLM read what was written; nothing may be under way."""
        ...


def carrier(model: Any, folder: Path) -> Carrier:
    """The way for a model: adapters alone where it has some, as peft makes them."""
    return Adapters(model, folder) if hasattr(model, "peft_config") else Checkpoint(model, folder)


class Checkpoint:
    """All weights, written as a checkpoint and reloaded in place.

    Args:
        model: the trainer's.
        folder: to write into.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        self._model = model
        self.base = folder / "weights"
        self.options: dict[str, Any] = {}
        self.write()

    def write(self) -> None:
        """Writes the checkpoint; of tied tensors one."""
        self._model.save_pretrained(self.base)

    def request(self) -> Any:
        """No adapters."""
        return None

    async def load(self, llm: Any) -> None:
        """Reloads it."""
        await llm.collective_rpc("reload_exactly", args=(str(self.base),))


class Adapters:
    """The frozen weights once, then the adapters alone, replaced in place.

    Args:
        model: the trainer's, with adapters.
        folder: to write into.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        self._model = model
        self._folder = folder / "adapters"
        self.base = folder / "weights"
        rank = model.peft_config["default"].r
        least = next(bound for bound in RANKS if bound >= rank)
        self.options = {"enable_lora": True, "max_loras": 1, "max_lora_rank": least}
        frozen = model.get_base_model()
        frozen.save_pretrained(self.base, state_dict=without_adapters(frozen.state_dict()))
        self.write()

    def write(self) -> None:
        """Writes the adapters."""
        self._model.save_pretrained(self._folder, save_embedding_layers=False)

    def request(self) -> Any:
        """The one name and number under which the adapters are replaced."""
        return self._request(again=False)

    async def load(self, llm: Any) -> None:
        """Replaces them."""
        await llm.add_lora(self._request(again=True))

    def _request(self, *, again: bool) -> Any:
        from vllm.lora.request import LoRARequest

        return LoRARequest(_NAME, _NUMBER, str(self._folder), load_inplace=again)


def without_adapters(weights: dict[str, Any]) -> dict[str, Any]:
    """A state dict of the model below its adapters, by the names that it has without them."""
    plain = {name: tensor for name, tensor in weights.items() if ".lora_" not in name}
    return {name.replace(".base_layer.", "."): tensor for name, tensor in plain.items()}
