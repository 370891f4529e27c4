"""A model as one GGUF file for llama.cpp, by its own package `gguf`: tensor names, vocabulary and format are theirs.

Weights keep their precision; `llama-quantize` makes the file smaller. Families whose tensors need more than new names
are refused: llama.cpp's `convert_hf_to_gguf.py` takes the folder of `--format model`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gguf
import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig

from quintain.export.licence import Licence
from quintain.interface.errors import InputError

FAMILIES = ("llama", "qwen2", "qwen3")
"""Model types of transformers whose names are also those of llama.cpp."""

_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = _QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")
_SPLITS = {
    ("bytes",): "gpt-2",
    ("digits", "bytes"): "smollm",
    (_QWEN2,): "qwen2",
    (_LLAMA3,): "llama-bpe",
}
"""How text is split before byte pairs are merged, and llama.cpp's name for it."""

_TYPES = {
    torch.float32: gguf.GGMLQuantizationType.F32,
    torch.float16: gguf.GGMLQuantizationType.F16,
    torch.bfloat16: gguf.GGMLQuantizationType.BF16,
}
_REMEDY = "llama.cpp's convert_hf_to_gguf.py may take the folder of --format model"


def write_gguf(model: Path, out: Path, *, template: str, stop: Sequence[int], licence: Licence) -> None:
    """Converts a folder of transformers.

    Args:
        model: the folder, with safetensors and a tokenizer.json.
        out: the file; it appears when it is whole.
        template: the chat template.
        stop: ids that end a turn, the usual one first.
        licence: of the weights.

    Raises:
        InputError: the family, its positions or its tokenizer are not known here.
    """
    config = AutoConfig.from_pretrained(str(model), local_files_only=True)
    if config.model_type not in FAMILIES or getattr(config, "use_sliding_window", False):
        raise InputError(f"{model}: GGUF is written for {', '.join(FAMILIES)}, this is {config.model_type}; {_REMEDY}")
    partial = out.with_name(out.name + ".partial")
    writer = gguf.GGUFWriter(partial, config.model_type, use_temp_file=True)
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(out.stem)
    writer.add_license(licence.identifier)
    _add_dimensions(writer, config, model)
    _add_vocabulary(writer, model, config.vocab_size, template, stop)
    for name, data, kind in _tensors(model, config):
        writer.add_tensor(name, gguf.quants.quantize(data.float().numpy(), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(partial, out)


def _add_dimensions(writer: Any, config: Any, model: Path) -> None:
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    _add_positions(writer, dict(config.rope_parameters), model)


def _add_positions(writer: Any, rope: dict[str, Any], model: Path) -> None:
    writer.add_rope_freq_base(rope.pop("rope_theta"))
    kind = rope.pop("rope_type", "default")
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope.pop("factor"))
        writer.add_rope_scaling_orig_ctx_len(rope.pop("original_max_position_embeddings"))
    elif kind != "default":
        raise InputError(f"{model}: positions scaled by {kind!r} are not written here; {_REMEDY}")
    if rope:
        raise InputError(f"{model}: rope parameter {next(iter(rope))!r} is not written here; {_REMEDY}")


def _add_vocabulary(writer: Any, model: Path, size: int, template: str, stop: Sequence[int]) -> None:
    tokenizer = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
    writer.add_tokenizer_model("gpt2")  # llama.cpp's name for byte-level BPE
    writer.add_tokenizer_pre(_split_of(tokenizer, model))
    texts = [f"[PAD{index}]" for index in range(size)]
    types = [gguf.TokenType.UNUSED] * size
    for text, index in tokenizer["model"]["vocab"].items():
        texts[index], types[index] = text, gguf.TokenType.NORMAL
    for one in tokenizer["added_tokens"]:
        kind = gguf.TokenType.CONTROL if one["special"] else gguf.TokenType.USER_DEFINED
        texts[one["id"]], types[one["id"]] = one["content"], kind
    writer.add_token_list(texts)
    writer.add_token_types(types)
    special = gguf.SpecialVocab(model, load_merges=True, n_vocab=size)
    special.chat_template = template
    special.special_token_ids["eos"] = stop[0]
    special.add_special_token["bos"] = False  # the template writes every token of a prompt
    special.add_to_gguf(writer, quiet=True)
    if len(stop) > 1:
        writer.add_eot_token_id(stop[1])


def _split_of(tokenizer: dict[str, Any], model: Path) -> str:
    pieces = tokenizer["pre_tokenizer"] or {"type": "none"}
    found = tuple(piece for one in pieces.get("pretokenizers", [pieces]) if (piece := _split_name(one)))
    name = _SPLITS.get(found)
    normalizer = (tokenizer["normalizer"] or {}).get("type")
    if tokenizer["model"]["type"] != "BPE" or name is None or normalizer not in (None, "NFC"):
        raise InputError(f"{model}: its tokenizer splits text in a way that is not known here; {_REMEDY}")
    return name


def _split_name(piece: dict[str, Any]) -> str:
    """What one pre-tokenizer splits by; "" for one that only spells bytes."""
    if piece["type"] == "ByteLevel" and not piece["add_prefix_space"]:
        return "bytes" if piece["use_regex"] else ""
    if piece["type"] == "Digits" and piece["individual_digits"]:
        return "digits"
    if piece["type"] == "Split" and piece["behavior"] == "Isolated" and not piece["invert"]:
        return str(piece["pattern"].get("Regex", "unknown"))
    return "unknown"


def _tensors(model: Path, config: Any) -> Iterator[tuple[str, Tensor, Any]]:
    """Names, values and types as llama.cpp has them: matrices as they are stored, vectors in float32."""
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, config.model_type.upper()), config.num_hidden_layers)
    for path in sorted(model.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118 (it is no mapping)
                name = names.get_name(key, try_suffixes=(".weight", ".bias"))
                if name is None:
                    raise InputError(f"{model}: llama.cpp has no tensor for {key!r} of {config.model_type}; {_REMEDY}")
                data = _ordered(key, file.get_tensor(key), config)
                kind = _TYPES[data.dtype] if data.ndim > 1 else gguf.GGMLQuantizationType.F32
                yield name, data, kind


def _ordered(key: str, data: Tensor, config: Any) -> Tensor:
    """Queries and keys of the llama family: transformers pairs a head's halves, llama.cpp its neighbours (RoPE)."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(key.split(".")[-2])
    if config.model_type != "llama" or heads is None:
        return data
    return data.reshape(heads, 2, -1, *data.shape[1:]).swapaxes(1, 2).reshape(data.shape).contiguous()
