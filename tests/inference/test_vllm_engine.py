"""The vLLM engine, for real: what it reports is what the trainer computes, before and after updates.

Slow ones need vLLM (docs/concepts/vllm.md); one engine serves them all, in the order they stand here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from importlib.util import find_spec
from multiprocessing import active_children
from typing import Any

import pytest
import torch

import tiny
from quintain.inference.logprobs import as_sampled
from quintain.inference.probe import logprobs
from quintain.inference.vllm import VLLMEngine
from quintain.inference.vllm_weights import without_adapters
from quintain.interface.errors import ContextFull, InfraError, InputError
from quintain.interface.generation import Engine, Generation, Sampling

PROMPT = [5 + place % 300 for place in range(150)]  # longer than a block of vLLM's prefix cache, 128 on CPUs
CONTEXT = 512
WIDTH = 128  # four heads of 32, the smallest that vLLM computes on CPUs

real = [
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
]


def shaken(model: Any, seed: int) -> dict[str, torch.Tensor]:
    """Other weights for a model, its tied embeddings among them."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: tensor + 0.05 * torch.randn(tensor.shape, generator=generator)
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"
    }


def check(model: Any, ids: list[int], made: Generation) -> None:
    """Every log-probability is the one that transformers computes, to 1e-3 nats."""
    assert made.logprobs == pytest.approx(logprobs(model, ids, made.ids), abs=1e-3)


def max_difference(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


class Bench:
    """An engine with its model, in an event loop of its own."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.runner = asyncio.Runner()
        self.engine = VLLMEngine(model, kv_tokens=4 * CONTEXT, sessions=4, options={"max_model_len": CONTEXT})

    def run(self, work: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await work

        return self.runner.run(wait())

    def generate(self, ids: list[int] = PROMPT, session: str = "s", **sampling: Any) -> Generation:
        asked = Sampling(**{"max_tokens": 8, "seed": 1} | sampling)
        return self.run(self.engine.generate(ids, session=session, group="g", sampling=asked))

    def close(self) -> None:
        self.engine.close()
        self.runner.close()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench(tiny.tiny_model(hidden=WIDTH))
    yield made
    made.close()


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_error_says_what_to_install(model):
    with pytest.raises(InputError, match=r"needs the package `vllm`: pip install 'quintain\[vllm\]'"):
        VLLMEngine(model)


def test_the_frozen_weights_have_the_names_they_have_without_adapters(model):
    from peft import LoraConfig, get_peft_model

    names = set(model.state_dict())
    adapted = get_peft_model(model, LoraConfig(target_modules="all-linear"))
    assert set(without_adapters(adapted.get_base_model().state_dict())) == names


class TestReal:
    pytestmark = real

    def test_it_is_an_engine_and_its_logprobs_are_the_models(self, bench):
        assert isinstance(bench.engine, Engine)
        made = bench.generate()
        check(bench.model, PROMPT, made)
        assert (len(made.ids), made.finish, made.version) == (8, "length", 0)
        assert made.sampled_logprobs == made.logprobs
        assert 0 < bench.engine.load().busy < bench.engine.load().up

    def test_a_next_turn_goes_on_from_the_cache_with_the_same_logprobs(self, bench):
        first = bench.generate(session="turns")
        ids = [*PROMPT, *first.ids, 7, 8, 9]
        check(bench.model, ids, bench.generate(ids, session="turns"))

    def test_draws_depend_on_seed_and_session_alone(self, bench):
        one, again = bench.generate(max_tokens=12), bench.generate(max_tokens=12)
        assert one.ids == again.ids
        assert bench.generate(max_tokens=12, session="t").ids != one.ids
        assert bench.generate(max_tokens=12, seed=2).ids != one.ids

    @pytest.mark.parametrize(
        "cut", [{"temperature": 0.6}, {"top_p": 0.4}, {"top_k": 3, "top_p": 0.8, "temperature": 1.5}]
    )
    def test_logprobs_as_sampled_are_those_of_the_cut_distribution(self, bench, cut):
        made = bench.generate(**cut)
        check(bench.model, PROMPT, made)
        with torch.no_grad():
            logits = bench.model(torch.tensor([[*PROMPT, *made.ids]])).logits[0, len(PROMPT) - 1 : -1]
        tables = [dict(enumerate(row.tolist())) for row in torch.log_softmax(logits, dim=-1)]
        expected = [as_sampled(*pair, Sampling(**cut)) for pair in zip(made.ids, tables, strict=True)]
        assert made.sampled_logprobs == pytest.approx(expected, abs=1e-3)

    def test_greedy_takes_the_best_and_a_stop_token_ends_and_is_kept(self, bench):
        made = bench.generate(temperature=0.0)
        assert made.sampled_logprobs == (0.0,) * 8
        stopped = bench.generate(temperature=0.0, stop=(made.ids[0],))
        assert (stopped.ids, stopped.finish) == (made.ids[:1], "stop")

    def test_what_it_cannot_do_is_said(self, bench):
        with pytest.raises(ContextFull, match=r"512 tokens \+ 1 to generate > 512, the engine's context"):
            bench.generate([1] * CONTEXT)
        with pytest.raises(InputError, match='a grammar needs the engine "local"'):
            bench.generate(grammar="start: /a/")

    def test_after_an_update_the_logprobs_are_those_of_the_new_weights(self, bench):
        old = bench.generate()
        assert bench.run(bench.engine.update(shaken(bench.model, 1))) == 1
        new = bench.generate()
        check(bench.model, PROMPT, new)
        assert bench.engine.mismatch < 1e-3
        assert (old.version, new.version, bench.engine.version) == (0, 1, 1)
        assert max_difference(old.logprobs, new.logprobs) > 1e-2

    def test_an_update_waits_for_generations_and_those_after_it_wait_for_the_update(self, bench):
        engine = bench.engine

        def ask(session: str, most: int) -> Awaitable[Generation]:
            return engine.generate(PROMPT, session=session, group="g", sampling=Sampling(max_tokens=most))

        async def play() -> list[Any]:
            before = asyncio.create_task(ask("before", 200))
            await ask("beside", 2)  # the one before it is under way now
            assert not before.done()
            assert engine.load().kv == len(PROMPT) / (4 * CONTEXT)
            update = asyncio.create_task(engine.update(shaken(bench.model, 2), version=7))
            await asyncio.sleep(0)
            after = asyncio.create_task(ask("after", 4))
            return [await before, await update, await after]

        before, number, after = bench.run(play())
        assert (before.version, number, after.version) == (1, 7, 7)
        assert len(before.ids) == 200
        check(bench.model, PROMPT, after)

    def test_a_checkpoint_of_another_model_is_refused_and_the_engine_goes_on(self, bench):
        with pytest.raises(InputError, match="a checkpoint of another model"):
            bench.run(bench.engine.update(tiny.tiny_model(hidden=WIDTH, layers=3).state_dict()))
        made = bench.generate()
        assert made.version == bench.engine.version == 7
        check(bench.model, PROMPT, made)

    def test_asleep_and_awake_again_it_computes_the_same(self, bench, monkeypatch):
        """On CPUs vLLM knows no such option and frees nothing, but goes the same way."""
        monkeypatch.setattr(bench.engine, "_sleeps", True)
        before = bench.generate()
        bench.run(bench.engine.sleep())
        assert bench.generate() == before

    def test_vllms_own_reload_leaves_the_tied_head_behind_and_the_probe_stops_the_run(self, bench, monkeypatch):
        """The control of the two tests above: without what `Reload` adds, the same update is caught."""
        carrier = bench.engine._carrier
        folder = {"weights_path": str(carrier.base)}
        monkeypatch.setattr(carrier, "load", lambda llm: llm.collective_rpc("reload_weights", kwargs=folder))
        with pytest.raises(InfraError, match="the engine does not hold the trainer's weights"):
            bench.run(bench.engine.update(shaken(bench.model, 3)))
        assert bench.engine.mismatch > 1e-3
        with pytest.raises(InfraError, match="the engine does not hold the trainer's weights"):
            bench.generate()
        monkeypatch.undo()
        bench.run(bench.engine.update())
        check(bench.model, PROMPT, bench.generate())

    def test_an_engine_begun_with_the_new_weights_says_the_same_until_its_process_dies(self, bench):
        made, others = bench.generate(), set(active_children())
        fresh = Bench(bench.model)
        try:
            again = fresh.generate()
            (process,) = set(active_children()) - others
            process.kill()
            process.join()
            with pytest.raises(InfraError, match="vLLM has ended or failed"):
                fresh.generate()
        finally:
            fresh.close()
        assert again.ids == made.ids
        assert again.logprobs == pytest.approx(made.logprobs, abs=1e-5)

    def test_adapters_are_carried_over_alone(self, tmp_path):
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
        bench = Bench(get_peft_model(tiny.tiny_model(hidden=WIDTH), config).eval())

        def change() -> None:
            with torch.no_grad():
                for name, parameter in bench.model.named_parameters():
                    parameter.mul_(3.0 if "lora_B" in name else 1.0)

        try:
            old = bench.generate()
            check(bench.model, PROMPT, old)
            assert bench.run(bench.engine.update(change)) == 1
            new = bench.generate()
            check(bench.model, PROMPT, new)
        finally:
            bench.close()
        assert (old.version, new.version) == (0, 1)
        assert max_difference(old.logprobs, new.logprobs) > 1e-2

    def test_on_a_pretrained_model_vllms_own_reload_is_wrong_and_ours_is_not(self):
        from quintain.inference.models import load_model

        model, tokenizer = load_model()
        ids = tokenizer("The capital of France is Paris, and the capital of Italy is").input_ids * 12
        bench = Bench(model)
        try:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(1.02)
            carrier = bench.engine._carrier
            carrier.write()
            bench.run(bench.engine._llm.collective_rpc("reload_weights", kwargs={"weights_path": str(carrier.base)}))
            bench.run(bench.engine._llm.reset_prefix_cache())
            stale = bench.generate(ids)
            assert max_difference(stale.logprobs, logprobs(model, ids, stale.ids)) > 1e-3
            assert bench.run(bench.engine.update()) == 1
            made = bench.generate(ids)
            assert max_difference(made.logprobs, logprobs(model, ids, made.ids)) < 1e-3
        finally:
            bench.close()


def test_an_option_that_is_no_argument_of_vllm_is_named(model):
    if find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    with pytest.raises(InputError, match=r"engine.options: vLLM has no argument 'tensor_paralel_size'"):
        VLLMEngine(model, options={"tensor_paralel_size": 2})
    with pytest.raises(InputError, match=r"engine.options: 'model' is not to be set here"):
        VLLMEngine(model, options={"model": "another"})
