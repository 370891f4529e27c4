"""A tokenizer and a language model small enough to make on the fly, shared by all tests."""

from __future__ import annotations

from functools import cache
from typing import Any

CHATML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

CHATML_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_CORPUS = (
    '{"name": "search", "arguments": {"query": "capital of France"}} <tool_call> </tool_call> <call>',
    "The population of Paris is 2102650. It is the capital of France.",
    "What is the sum of the areas of Chad and Mali in square kilometres?",
    "<tool_response> <think> </think> system user assistant tool search open calculate",
    "巴黎是法国的首都。无法回答：资料中没有。",
)


@cache
def tiny_tokenizer(extra_tokens: tuple[str, ...] = CHATML_TOKENS, vocab_size: int = 400) -> Any:
    """A byte-level BPE tokenizer trained on a few sentences, as a transformers fast tokenizer.

    It covers every byte, so any text round trips. `extra_tokens` become its special tokens, ids 0, 1, 2...
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(extra_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_CORPUS, trainer)
    chatml = set(CHATML_TOKENS) <= set(extra_tokens)
    names = {"eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "bos_token": "<|im_start|>"} if chatml else {}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False, **names)
    tokenizer.chat_template = CHATML_TEMPLATE if chatml else None
    return tokenizer


@cache
def tiny_codec(extra_tokens: tuple[str, ...] = CHATML_TOKENS) -> Any:
    """The `Codec` of `tiny_tokenizer(extra_tokens)`."""
    from quintain.interface.dialects.codec import TokenizerCodec

    return TokenizerCodec(tiny_tokenizer(extra_tokens))


def tiny_model(
    vocab_size: int | None = None,
    *,
    seed: int = 0,
    hidden: int = 32,
    layers: int = 2,
    context: int = 2048,
    tied: bool = True,
) -> Any:
    """A Llama with random weights (about 50,000 parameters), float32, in eval mode; the same for the same seed."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocab_size or len(tiny_tokenizer()),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        tie_word_embeddings=tied,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def save_tiny(folder: Any, **options: Any) -> Any:
    """Writes a tiny model and its tokenizer into `folder`, as `from_pretrained` reads them; returns the folder."""
    tiny_model(**options).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
