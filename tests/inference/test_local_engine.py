from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from quintain.inference.attention import Work
from quintain.inference.decoder import Decoder
from quintain.inference.kv import KVPool
from quintain.inference.local import LocalEngine
from quintain.inference.products import lay_by_columns
from quintain.interface.errors import InfraError, InputError
from quintain.interface.generation import Engine, Generation, Sampling

SHAPE: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "eos_token_id": None,
    "bos_token_id": None,
}
MODELS: dict[str, Callable[..., Any]] = {
    "llama": lambda **changes: LlamaForCausalLM(LlamaConfig(**SHAPE | changes)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SHAPE)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SHAPE)),
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**SHAPE, sliding_window=16)),
    "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**SHAPE, sliding_window=16)),
}
PROMPT = list(range(1, 41))


def tiny(name: str = "llama", **changes: Any) -> Any:
    torch.manual_seed(0)
    model = MODELS[name](**changes).eval()
    model.set_attn_implementation("eager")
    return model


@asynccontextmanager
async def engine_of(model: Any, **options: Any) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(model, **options)
    try:
        yield engine
    finally:
        engine.close()


def full_logprobs(model: Any, ids: list[int]) -> torch.Tensor:
    """Log-probs `[T, V]` of one uncached forward pass."""
    with torch.no_grad():
        return torch.log_softmax(model(torch.tensor([ids]), use_cache=False).logits[0], dim=-1)


def check(model: Any, ids: list[int], generation: Generation) -> None:
    table = full_logprobs(model, ids + list(generation.ids))
    expected = [table[len(ids) + place - 1, token].item() for place, token in enumerate(generation.ids)]
    assert generation.logprobs == pytest.approx(expected, abs=1e-4)


async def episode(engine: LocalEngine, model: Any, index: int, turns: int = 3, new: int = 9) -> list[tuple[int, ...]]:
    """A scripted episode of a group of three that checks every token's log-probability."""
    ids, found = [*PROMPT, *[index % 3 + 1] * 5], []
    for turn in range(turns):
        generation = await engine.generate(
            ids, session=f"s{index}", group=str(index % 3), sampling=Sampling(max_tokens=new, seed=1)
        )
        check(model, ids, generation)
        found.append(generation.ids)
        ids = [*ids, *generation.ids, 5, 6, 7, 20 + index % 4 + turn]
    await engine.release(f"s{index}")
    return found


async def within(seconds: float, condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


async def together(engine: LocalEngine, *calls: Awaitable[Generation]) -> list[Generation]:
    """Runs calls that reach the engine as one batch: its thread is held until all of them are queued."""
    gate = threading.Event()

    def hold() -> None:
        gate.wait(10)

    engine._send(hold)
    tasks = [asyncio.ensure_future(call) for call in calls]
    await within(10, lambda: engine._inbox.qsize() >= len(calls))
    gate.set()
    return await asyncio.gather(*tasks)


async def test_it_is_an_engine() -> None:
    async with engine_of(tiny()) as engine:
        assert isinstance(engine, Engine)


@pytest.mark.parametrize("name", MODELS)
async def test_logprobs_are_those_of_a_full_pass_over_turns_with_shared_prefixes_and_small_chunks(name: str) -> None:
    model = tiny(name)
    async with engine_of(model, chunk=16) as engine:
        await asyncio.gather(*(episode(engine, model, index) for index in range(9)))


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_the_short_forward_pass_gives_the_log_probs_of_the_models_own_code(name: str, columns: bool) -> None:
    model = tiny(name)
    if columns:
        lay_by_columns(model)
    short, own = Decoder(model), Decoder(model)
    own.compute = own.by_own_code
    ids = [index % 60 + 1 for index in range(60)]
    steps = [[(0, 0, 50), (1, 0, 20)], [(0, 50, 1), (1, 20, 1), (2, 0, 33)], [(2, 33, 1), (0, 51, 1), (1, 21, 9)]]
    pools = KVPool(3, 3 * 256), KVPool(3, 3 * 256)
    assert short.compute != own.compute
    for step in steps:
        works = [Work(slot, start, count, ids) for slot, start, count in step]
        found, expected = (
            torch.log_softmax(decoder.forward(pool, works), dim=-1)
            for decoder, pool in zip((short, own), pools, strict=True)
        )
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


async def test_logprobs_stay_right_when_rows_are_evicted_and_recomputed() -> None:
    model = tiny()
    async with engine_of(model, sessions=2, kv_tokens=2 * 128, chunk=16) as engine:
        async with asyncio.timeout(60):
            await asyncio.gather(*(episode(engine, model, index) for index in range(9)))
        assert engine.stats.generated == 9 * 3 * 9


async def test_sequences_that_outgrow_their_slots_queue_up_and_all_finish() -> None:
    model = tiny(max_position_embeddings=512)
    # 4 slots of 256 tokens at first; each sequence grows to 301, for which the budget has 3 slots.
    async with engine_of(model, sessions=4, kv_tokens=4 * 256, chunk=32) as engine, asyncio.timeout(60):
        prompts = [[index + 1, *PROMPT] for index in range(4)]
        found = await asyncio.gather(
            *(
                engine.generate(ids, session=str(index), group="", sampling=Sampling(max_tokens=260))
                for index, ids in enumerate(prompts)
            )
        )
    for ids, generation in zip(prompts, found, strict=True):
        assert len(generation.ids) == 260
        check(model, ids, generation)


@pytest.mark.parametrize("name", MODELS)
async def test_temperature_zero_equals_generate(name: str) -> None:
    model = tiny(name)
    expected = model.generate(torch.tensor([PROMPT]), max_new_tokens=20, do_sample=False)[0, len(PROMPT) :].tolist()
    async with engine_of(model) as engine:
        found = await engine.generate(PROMPT, session="s", group="g", sampling=Sampling(max_tokens=20, temperature=0))
    assert list(found.ids) == expected


async def test_the_same_seeds_give_the_same_tokens_whatever_runs_beside_them() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        together = await asyncio.gather(*(episode(engine, model, index) for index in range(6)))
    async with engine_of(model, sessions=1, chunk=7) as engine:
        apart = [await episode(engine, model, index) for index in range(6)]
    assert together == apart
    assert len({str(found) for found in together}) == 6


async def test_members_of_a_group_and_later_turns_compute_only_what_is_new() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        group = (
            engine.generate(PROMPT, session=f"s{index}", group="g", sampling=Sampling(max_tokens=1, seed=index))
            for index in range(8)
        )
        first = await together(engine, *group)
        assert engine.stats.computed == len(PROMPT)
        await engine.generate(
            [*PROMPT, *first[0].ids, 1, 2, 3], session="s0", group="g", sampling=Sampling(max_tokens=1)
        )
        assert engine.stats.computed == len(PROMPT) + 4
        other = [*PROMPT[:30], 50, 51, 52]
        await engine.generate(other, session="t", group="h", sampling=Sampling(max_tokens=1))
        assert engine.stats.computed == len(PROMPT) + 4 + 3


async def test_sessions_with_the_same_tokens_are_computed_once_until_they_part() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        sampling = Sampling(max_tokens=10, temperature=0)
        found = await together(
            engine, *(engine.generate(PROMPT, session=f"s{index}", group="g", sampling=sampling) for index in range(8))
        )
        assert len({generation.ids for generation in found}) == 1
        assert engine.stats.computed == len(PROMPT) + 9


async def test_a_stop_token_ends_the_generation_and_belongs_to_it() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        free = await engine.generate(PROMPT, session="s", group="g", sampling=Sampling(max_tokens=30))
        stop = free.ids[4]
        cut = await engine.generate(PROMPT, session="s", group="g", sampling=Sampling(max_tokens=30, stop=(stop,)))
    length = free.ids.index(stop) + 1
    assert (cut.ids, cut.finish) == (free.ids[:length], "stop")
    assert len(cut.logprobs) == len(cut.sampled_logprobs) == length
    assert (len(free.ids), free.finish) == (30, "length")


async def test_generation_ends_where_the_context_does() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        ids = [index % 60 + 1 for index in range(250)]
        found = await engine.generate(ids, session="s", group="g", sampling=Sampling(max_tokens=100))
    assert (len(found.ids), found.finish) == (6, "length")


@pytest.mark.parametrize(
    ("length", "options", "message"),
    [
        (256, {}, r"256 tokens \+ 1 to generate > 256, the model's context"),
        (128, {"kv_tokens": 128}, r"128 tokens \+ 1 to generate > 128, the KV budget"),
        (0, {}, "no ids"),
    ],
)
async def test_a_prompt_without_room_is_refused_with_the_arithmetic(
    length: int, options: dict[str, int], message: str
) -> None:
    async with engine_of(tiny(), **options) as engine:
        with pytest.raises(InputError, match=message):
            await engine.generate([1] * length, session="s", group="g", sampling=Sampling())


async def test_an_update_waits_for_generations_and_those_after_it_wait_for_the_update() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        before = asyncio.create_task(engine.generate(PROMPT, session="a", group="g", sampling=Sampling(max_tokens=100)))
        await within(20, lambda: engine.stats.generated > 3)
        torch.manual_seed(1)
        weights = {name: torch.randn_like(value) * 0.3 for name, value in model.state_dict().items()}
        update = asyncio.create_task(engine.update(weights))
        await asyncio.sleep(0)
        after = asyncio.create_task(engine.generate(PROMPT, session="b", group="g", sampling=Sampling(max_tokens=5)))
        finished: list[str] = []
        for name, task in (("before", before), ("update", update), ("after", after)):
            task.add_done_callback(lambda _, name=name: finished.append(name))
        assert await update == 1
        old, new = await before, await after
        assert finished == ["before", "update", "after"]
        assert (old.version, new.version, engine.version) == (0, 1, 1)
        check(model, PROMPT, new)


async def test_a_change_in_place_is_seen_and_old_kv_is_recomputed() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        first = await engine.generate(PROMPT, session="s", group="g", sampling=Sampling(max_tokens=4))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.1)
        assert await engine.update() == 1
        ids = [*PROMPT, *first.ids, 9]
        check(model, ids, await engine.generate(ids, session="s", group="g", sampling=Sampling(max_tokens=4)))


async def test_a_change_handed_over_runs_between_generations_and_what_it_raises_reaches_the_caller() -> None:
    model = tiny()

    def double() -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2.0)

    def fail() -> None:
        raise ValueError("no such weights")

    async with engine_of(model) as engine:
        under_way = asyncio.create_task(
            engine.generate(PROMPT, session="s", group="g", sampling=Sampling(max_tokens=40, temperature=0))
        )
        await within(20, lambda: engine.stats.generated > 3)
        before = model.lm_head.weight[0, 0].item()
        assert await engine.update(double) == 1
        assert under_way.done()
        assert model.lm_head.weight[0, 0].item() == 2 * before
        with pytest.raises(ValueError, match="no such weights"):
            await engine.update(fail)
        assert engine.version == 1
        check(model, PROMPT, await engine.generate(PROMPT, session="t", group="g", sampling=Sampling(max_tokens=4)))


async def test_lora_adapters_are_part_of_the_policy() -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(tiny(), LoraConfig(target_modules=["q_proj", "down_proj"], init_lora_weights=False))
    model.eval()
    async with engine_of(model) as engine:
        check(model, PROMPT, await engine.generate(PROMPT, session="s", group="g", sampling=Sampling(max_tokens=6)))


async def test_the_model_being_trained_is_left_as_it_was() -> None:
    model = tiny().train()
    shared = [parameter.data_ptr() for parameter in model.parameters()]
    async with engine_of(model) as engine:
        await engine.generate(PROMPT, session="s", group="g", sampling=Sampling(max_tokens=3))
        assert all(module.training for module in model.modules())
        assert model.config._attn_implementation == "eager"
        assert type(model.lm_head) is torch.nn.Linear
        assert [parameter.data_ptr() for parameter in model.parameters()] == shared


async def test_a_cancelled_caller_frees_its_place() -> None:
    model = tiny()
    async with engine_of(model, sessions=1) as engine:
        endless = asyncio.create_task(
            engine.generate(PROMPT, session="a", group="g", sampling=Sampling(max_tokens=200))
        )
        await within(20, lambda: engine.stats.generated > 3)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        found = await engine.generate([9, 8, 7], session="b", group="h", sampling=Sampling(max_tokens=3))
        check(model, [9, 8, 7], found)
        assert engine.stats.generated < 150


async def test_sessions_never_released_do_not_block_new_ones() -> None:
    model = tiny()
    async with engine_of(model, sessions=2) as engine, asyncio.timeout(60):
        for index in range(6):
            ids = [index + 1, 2, 3]
            found = await engine.generate(ids, session=str(index), group="", sampling=Sampling(max_tokens=2))
            check(model, ids, found)


async def test_a_failing_step_reaches_its_callers_and_the_engine_goes_on() -> None:
    model = tiny()
    async with engine_of(model) as engine:
        with pytest.raises(InfraError, match="step failed"):
            await engine.generate([1000], session="s", group="g", sampling=Sampling(max_tokens=2))
        check(model, PROMPT, await engine.generate(PROMPT, session="t", group="g", sampling=Sampling(max_tokens=2)))


async def test_closing_fails_what_is_under_way_and_what_comes_later() -> None:
    engine = LocalEngine(tiny())
    under_way = asyncio.create_task(engine.generate(PROMPT, session="a", group="g", sampling=Sampling(max_tokens=200)))
    await within(20, lambda: engine.stats.generated > 0)
    engine.close()
    with pytest.raises(InfraError, match="closed"):
        await under_way
    later: list[Awaitable[Any]] = [
        engine.generate(PROMPT, session="b", group="g", sampling=Sampling()),
        engine.release("b"),
        engine.update(),
    ]
    for call in later:
        with pytest.raises(InfraError, match="closed"):
            await call


def test_a_model_without_attention_over_a_cache_is_refused_in_one_line() -> None:
    model = MambaForCausalLM(MambaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, state_size=4))
    with pytest.raises(InputError, match="MambaForCausalLM can't run in the local engine") as caught:
        LocalEngine(model)
    assert "\n" not in str(caught.value)
