"""vLLM as a token engine, in processes of its own: the weights of the trainer's model are carried over to it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from quintain.inference.logprobs import generation, wanted
from quintain.inference.meter import Meter
from quintain.inference.probe import mismatch, tolerance
from quintain.inference.room import room
from quintain.inference.sampler import draw_seed
from quintain.inference.vllm_start import arguments, need_vllm, start, vllms_end
from quintain.inference.vllm_weights import carrier
from quintain.inference.weights import Weights, take
from quintain.interface.errors import InfraError, InputError
from quintain.interface.generation import FinishReason, Generation, Load, Sampling
from quintain.openmp import end_team


class VLLMEngine:
    """Generates tokens with vLLM, many sessions at once.

    vLLM finds shared prefixes itself, so sessions and groups need nothing of their own. Draws depend on
    `(sampling.seed, session, length of the prompt)`. The engine belongs to the event loop it is first used in.

    After every update a probe is generated and held against the trainer's model: a reload that leaves anything stale
    ends the run rather than spoiling it.

    Args:
        model: the trainer's model, a transformers causal LM on one device; what it holds is what the engine has.
        kv_tokens: most tokens held in the KV cache.
        sessions: most sequences computed at once.
        options: further arguments of vLLM's `AsyncEngineArgs`.

    Attributes:
        mismatch: largest difference of log-probabilities between engine and trainer in the last probe, in nats.

    Raises:
        InputError: vLLM is missing, or an option is unknown or not to be set.
        InfraError: vLLM does not start.
    """

    def __init__(
        self,
        model: Any,
        *,
        kv_tokens: int = 32_768,
        sessions: int = 64,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        need_vllm()
        self._model = model
        self._scratch = tempfile.TemporaryDirectory(prefix="quintain-vllm.")
        self._carrier = carrier(model, Path(self._scratch.name))
        told = arguments(model, self._carrier, kv_tokens=kv_tokens, sessions=sessions, options=options or {})
        self._llm = start(told)
        self._meter = Meter(sessions, kv_tokens)
        self._limits = {"the engine's context": int(self._llm.model_config.max_model_len)}
        self._remedy = f"shorten the prompt, or give the engine more kv_tokens (now {kv_tokens})"
        self._numbers = count()
        self._version = 0
        self._sleeps = bool((options or {}).get("enable_sleep_mode"))
        self._asleep = False
        self._waking = asyncio.Lock()
        self._broken = ""
        self.mismatch = 0.0

    @property
    def version(self) -> int:
        """Version of the weights now in use."""
        return self._version

    async def generate(self, ids: Sequence[int], *, session: str, group: str, sampling: Sampling) -> Generation:
        """Continues `ids`; cancelling the caller frees its place.

        Args:
            ids: the whole sequence so far.
            session: names the draws.
            group: not needed: vLLM finds shared prefixes by comparing tokens.
            sampling: how to draw; generation also ends, as `length`, where the context does.

        Raises:
            InputError: no ids, or a grammar, which this engine does not take.
            ContextFull: they leave no room for a token.
            InfraError: the engine has ended, or holds weights that are not the trainer's.
        """
        if self._broken:
            raise InfraError(self._broken)
        if sampling.grammar:
            raise InputError('generate: a grammar needs the engine "local"')
        most = room(len(ids), sampling, self._limits, self._remedy)
        await self._wake()
        with self._meter.request(len(ids)):
            made = await self._ask(ids, session, sampling, most)
        tables = [{token: one.logprob for token, one in table.items()} for table in made.logprobs or ()]
        return generation(made.token_ids, tables, sampling, _finish(made.finish_reason), _version_of(made))

    async def release(self, session: str) -> None:
        """Nothing to forget: vLLM drops what has not been used for longest."""

    def load(self) -> Load:
        """How much it has to do, by the requests that are under way."""
        return self._meter.load()

    async def sleep(self) -> None:
        """Frees the GPU's memory for the trainer once no generation is under way; the next call wakes the engine.

        Without vLLM's option `enable_sleep_mode` it stays awake.
        """
        if self._sleeps:
            await self._llm.sleep(level=1, mode="wait")
            self._asleep = True

    async def update(self, weights: Weights = None, *, version: int | None = None) -> int:
        """Takes new weights once no generation is under way; returns the new version.

        Requests that come meanwhile wait for the new weights. KV of the old ones is dropped and recomputed.

        Args:
            weights: what to change the trainer's model by; it is carried over as it is then.
            version: number of the new weights; by default one more than that of the last.

        Raises:
            InputError: the weights are of another model.
            InfraError: the engine has ended, or computes something else than the trainer from here on.
        """
        number = self._version + 1 if version is None else version
        with vllms_end():
            await self._wake()
            await self._llm.pause_generation(mode="wait", clear_cache=True)
            try:
                await asyncio.to_thread(self._change, weights)
                await self._load(number)
            finally:
                await self._llm.resume_generation()
        await self._check()
        return number

    def close(self) -> None:
        """Ends vLLM's processes; whatever is under way fails."""
        self._broken = "the engine is closed"
        llm, self._llm = self._llm, None  # vLLM complains if it is still held when the interpreter ends
        if llm is not None:
            llm.shutdown()
        self._scratch.cleanup()

    def _change(self, weights: Weights) -> None:
        take(self._model, weights)
        end_team()  # this thread waits now: its helper threads must not slow those of the trainer

    async def _load(self, version: int) -> None:
        """Carries the trainer's weights over; where that fails, nothing is generated any more."""
        try:
            await asyncio.to_thread(self._carrier.write)
            await self._carrier.load(self._llm)
            await self._llm.update_weight_version(str(version))
        except BaseException:
            self._broken = "the engine's weights are those of no version: an update of them failed"
            raise
        self._version = version
        self._broken = ""

    async def _wake(self) -> None:
        async with self._waking:
            if self._asleep:
                await self._llm.wake_up()
                self._asleep = False

    async def _ask(self, ids: Sequence[int], session: str, sampling: Sampling, most: int) -> Any:
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        vocabulary = int(self._model.config.get_text_config().vocab_size)
        asked = SamplingParams(
            max_tokens=most,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            stop_token_ids=list(sampling.stop),
            ignore_eos=True,
            seed=draw_seed(sampling.seed, session, len(ids)),
            logprobs=wanted(sampling, vocabulary),
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        prompt = TokensPrompt(prompt_token_ids=list(ids))
        name = f"{session} {next(self._numbers)}"
        with vllms_end():
            async for one in self._llm.generate(prompt, asked, name, lora_request=self._carrier.request()):
                made = one.outputs[0]
        return made

    async def _check(self) -> None:
        """Holds the engine against the trainer's model.

        Raises:
            InfraError: they differ by more than rounding explains.
        """
        self.mismatch = await mismatch(self.generate, self._model, min(self._limits.values()))
        allowed = tolerance(self._model)
        if not self.mismatch <= allowed:
            self._broken = (
                f"weights {self._version}: engine and trainer differ by {self.mismatch:.2g} nats at a token of the "
                f"probe, {allowed:g} are allowed: the engine does not hold the trainer's weights"
            )
            raise InfraError(self._broken)


def _finish(reason: str | None) -> FinishReason:
    if reason not in ("stop", "length"):
        raise InfraError(f"vLLM ended a generation with {reason!r}")
    return "stop" if reason == "stop" else "length"


def _version_of(made: Any) -> int:
    """Version that vLLM stamped the tokens with; its first weights have no number."""
    stamps = [span.version for span in made.weight_versions or ()]
    if len(stamps) > 1:
        raise InfraError(f"tokens of one generation come from the weights {' and '.join(stamps)}")
    return 0 if not stamps or stamps[0] == "default" else int(stamps[0])
