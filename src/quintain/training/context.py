"""A longer context for a model that was trained with a shorter one: rotary position embeddings changed in place."""

from __future__ import annotations

from typing import Any

from quintain.interface.errors import InputError
from quintain.training.config import CPTConfig, RopeConfig
from quintain.training.forward import causal_lm


def fit_context(model: Any, config: CPTConfig) -> None:
    """Makes sure that a model has positions for the context, extended as the settings say.

    The change is in the model's own configuration, so it is saved and loaded with the weights.

    Raises:
        InputError: the context is longer than what the settings extend the model's to, or this model's positions are
            no plain rotary embeddings.
    """
    settings = causal_lm(model).config.get_text_config()
    known = settings.max_position_embeddings
    rope: Any = getattr(settings, "rope_parameters", None)
    plain = isinstance(rope, dict) and "rope_theta" in rope
    original = rope.get("original_max_position_embeddings", known) if plain else known
    positions = config.positions(known, original)
    if config.rope is None:
        return
    if not plain:
        raise InputError("rope: this model has no single rotary embedding to change; leave rope out")
    settings.rope_parameters = _changed(rope, config.rope, original)
    settings.max_position_embeddings = positions
    for name, module in list(model.named_modules()):
        if hasattr(module, "inv_freq") and hasattr(module, "rope_type"):
            parent, _, own = name.rpartition(".")
            device = module.inv_freq.device
            setattr(model.get_submodule(parent), own, type(module)(config=settings).to(device))


def _changed(rope: dict[str, Any], change: RopeConfig, original: int) -> dict[str, Any]:
    if change.theta is not None:
        return {**rope, "rope_theta": change.theta}
    return {
        "rope_type": "yarn",
        "rope_theta": rope["rope_theta"],
        "factor": change.yarn,
        "original_max_position_embeddings": original,
    }
