"""A run as the pipeline would report it: stages, curves and hand-made episodes, seeded."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from evaluation_episodes import answer, call, episode, malformed

from quintain.evaluation.report import ReportData, StageComparison, StageReport, Target
from quintain.evaluation.summary import compare, summarise
from quintain.evaluation.trajectories import SampledEpisode
from quintain.interface.episode import Episode, Outcome
from quintain.interface.example import Example
from quintain.interface.messages import Turn

INJECTION = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"

_PLACES = [("Chad", 1284000, "N'Djamena"), ("Togo", 56785, "Lomé"), ("Oman", 309500, "Muscat"), ("Fiji", 18272, "Suva")]
_TEMPLATES = ["area_of", "capital_of", "sum_of_areas", "airport_height", "not_in_collection", "两国面积之和"]


def decode(ids: Sequence[int]) -> list[str]:
    """Token texts: the first carries an injection, others words and line breaks."""
    words = [
        "<|im_start|>",
        "user",
        "\n",
        "What",
        " is",
        " it",
        "?",
        INJECTION,
        " 面积",
        '{"name"',
        ": ",
        '"search"',
        "}",
    ]
    return [words[index % len(words)] for index in ids]


def _turns(rng: random.Random, skill: float, template: str) -> tuple[bool, Outcome, list[Turn], str]:
    country, area, capital = rng.choice(_PLACES)
    chinese = template == "两国面积之和"
    prompt = (
        f"{country} 和 Togo 的面积之和是多少平方公里？"
        if chinese
        else f"What is the area of {country} in km²? ({template})"
    )
    if rng.random() > skill:
        if rng.random() < 0.6:
            broken = [
                malformed("json", '<tool_call>{"name": "search", "arguments": {"query": "' + country + '",}}')
            ] * 3
            return False, Outcome("limit", "format_errors"), broken, prompt
        return (
            False,
            Outcome("answered"),
            [call(query=country, content=f"{country}: a country."), answer("about 12")],
            prompt,
        )
    looked = call(
        thought=f"I need the area of {country}; the collection should have it.",
        query=f"area of {country}",
        content=f"[1] {country}: area {area} km², capital {capital}\n[2] {country}, history and people",
    )
    if template == "not_in_collection":
        return True, Outcome("declined"), [looked, answer("Cannot answer: not in the collection.")], prompt
    opened = call("open", document=country.lower(), content=f"{country}. Area: {area} km².")
    failing = [call("calculate", expression="1 +", error="exception", content="SyntaxError: invalid syntax")]
    return True, Outcome("answered"), [looked, opened, *(failing * (rng.random() < 0.2)), answer(f"{area} km²")], prompt


def evaluate(skill: float, seed: int, tasks: int = 60, samples: int = 4) -> list[Episode]:
    """Episodes of one evaluation, tasks in pairs that share a cluster."""
    rng = random.Random(seed)
    episodes = []
    for number in range(tasks):
        template = _TEMPLATES[number % len(_TEMPLATES)]
        tags = [f"lang:{'zh' if template == '两国面积之和' else 'en'}", f"hops:{1 + number % 3}"]
        tags += ["held_out_template"] * (template == "airport_height")
        level = min(1.0, max(0.0, skill + random.Random(number // 2).uniform(-0.3, 0.25))) if skill > 0.1 else skill
        for trial in range(samples):
            success, outcome, turns, prompt = _turns(rng, level, template)
            infra = rng.random() < 0.02
            episodes.append(
                episode(
                    f"desk-{number:03d}",
                    None if infra else success,
                    trial=trial,
                    cluster=f"entity-{number // 2}",
                    template=template,
                    tags=tags,
                    turns=turns,
                    outcome=Outcome("infra_error", detail="index not reachable") if infra else outcome,
                    prompt=prompt,
                    reasons=["the number matches"] if success else ["expected 1284000 km², found another number"],
                    tokens=True,
                )
            )
    return episodes


def monitors(steps: int) -> list[dict[str, float]]:
    """Rows of reinforcement learning: monitors every step, validation every fifth, and no update in the third."""
    return [
        {"step": step, "success": step / steps, "reward_spread": 0.3, "seconds": 9.0 * step}
        | ({"loss": -0.1} if step != 3 else {})
        | ({"validation_success": step / steps} if step % 5 == 0 else {})
        for step in range(1, steps + 1)
    ]


def metrics(steps: int, tokens: int = 4_000) -> list[dict[str, float]]:
    """Rows of a falling, noisy loss."""
    rng = random.Random(5)
    return [
        {
            "step": step,
            "loss": 0.12 + 1.6 * math.exp(-6 * step / steps) + rng.gauss(0, 0.05),
            "tokens": tokens * step,
            "seconds": 1.7 * step,
            "lr": 1e-4 * min(1, step / 8) * (1 - step / (steps + 1)),
            "grad_norm": 1.2 + rng.random(),
            "tokens_per_second": 230 + rng.gauss(0, 9),
        }
        for step in range(1, steps + 1)
    ]


def trained_as(one: Episode) -> Example:
    """The whole episode as one example."""
    ids = one.segments[0].ids
    weights = [0.0] * len(ids)
    for span in one.spans:
        if span is not None:
            weights[span.start : span.stop] = [1.0] * (span.stop - span.start)
    return Example(ids, tuple(weights), source="sft", episode=one.id)


def demo_run() -> ReportData:
    """Base model, fine-tuning and its evaluation."""
    before, after = evaluate(0.03, 1), evaluate(0.85, 2)
    hostile = episode(
        "hostile",
        False,
        turns=[call(INJECTION, INJECTION, query=INJECTION), answer(INJECTION)],
        prompt=INJECTION,
        reasons=[INJECTION],
        template=INJECTION,
        tokens=True,
    )
    samples = [SampledEpisode("base", one) for one in before] + [
        SampledEpisode("sft", one) for one in [*after, hostile]
    ]
    trained = evaluate(1.0, 3, tasks=12, samples=1)
    samples += [SampledEpisode("sft", one, "training", [trained_as(one)]) for one in trained]
    return ReportData(
        title="Quickstart: desk, SmolLM2-135M-Instruct",
        stages=[
            StageReport(
                "base", "base", summarise(before, 240), seconds=131.0, inputs=[("pool", "eval"), ("model", "base")]
            ),
            StageReport("demos", "rollout", inputs=[("pool", "train"), ("model", "oracle")]),
            StageReport(
                *("sft", "sft", summarise(after, 240), metrics(96), 312.4, ["best of 96 steps is the last"]),
                inputs=[("model", "base"), ("stage", "demos")],
            ),
        ],
        comparisons=[StageComparison("base", "sft", compare(before, after))],
        episodes=samples,
        decode_tokens=decode,
        targets=[
            Target("pass@1 before training", "< 0.05", "0.02", True),
            Target("pass@1 after training", ">= 0.80", "0.83", True, "held-out English tasks"),
            Target(
                "time after installation", "<= 10 min", "11 min 2 s", False, "the second evaluation takes most of it"
            ),
            Target("overhead per turn", "<= 0.5 ms", "not measured here", None),
        ],
        recipe='[model]\nname = "SmolLM2-135M-Instruct"\n\n[sft]\nlearning_rate = 1e-4\nsteps = 96\n',
        machine={"CPU": "2 cores", "Memory": "8 GiB", "GPU": "none", "System": "Linux 6.1"},
        versions={
            "quintain": "0.1.0",
            "torch": "2.13",
            "toolset": "sha256:" + "ab" * 32,
            "world data": "sha256:" + "cd" * 32,
        },
        notes=["From a bare pretrained model to a measured agent, on one machine, in one command."],
    )


def held_out_run() -> ReportData:
    """The demo run, ending with an evaluation on other tasks."""
    run = demo_run()
    other = StageReport("tuned_held_out", "eval", summarise(evaluate(0.4, 4, tasks=24), 96))
    return replace(run, stages=[*run.stages, other])


def ten_stages() -> ReportData:
    """Ten evaluated stages, each with its own curve."""
    stages = [
        StageReport(
            f"stage-{n}-with-a-long-name",
            "grpo" if n else "base",
            summarise(evaluate(n / 10, n, 12, 2), 24),
            metrics(20 * n),
            60.0 * n,
        )
        for n in range(10)
    ]
    return ReportData(title="Ten stages", stages=stages)
