"""Rollouts on paper: cases worked out by hand, and what more overlap or more engines can and cannot do."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import quantiles

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.cli.main import main
from quintain.commands.commands import plan_run, recipes_folder
from quintain.commands.forecast import advise
from quintain.commands.simulation import Latency, Shop, simulate

NO_TOOLS = Latency(0.0, 0.0)
# Eight episodes of one turn of ten tokens at 0.1 s a decoding step: played in 1 s; the optimiser step takes 2 s.
ONE_TURN = Shop(
    engines=1,
    shared=False,
    concurrency=8,
    episodes=8,
    turns=1,
    tokens=10,
    prefill=0.0,
    decoding=lambda sequences: 0.1,
    latency=NO_TOOLS,
    training=2.0,
    ahead=0,
)


def test_without_overlap_the_trainer_waits_for_all_episodes_of_a_step():
    found = simulate(ONE_TURN)
    assert found.step_seconds == pytest.approx(3.0)
    assert found.rate == pytest.approx(8 / 3)
    assert found.trainer_idle == pytest.approx(1 / 3)
    assert found.engine_idle == pytest.approx(2 / 3)


def test_one_step_ahead_hides_the_shorter_of_playing_and_training():
    found = simulate(replace(ONE_TURN, ahead=1))
    assert found.step_seconds == pytest.approx(2.0)
    assert found.trainer_idle == pytest.approx(0.0)
    assert simulate(replace(ONE_TURN, ahead=1, training=0.25)).step_seconds == pytest.approx(1.0)


def test_on_shared_accelerators_the_engines_stand_still_while_the_trainer_works():
    assert simulate(replace(ONE_TURN, ahead=1, shared=True)).step_seconds == pytest.approx(3.0)
    # Two turns of 1 s, 4 s of tools after the first and of the verdict: 10 s. The next step waits for 2 s of training.
    tools = replace(ONE_TURN, turns=2, latency=Latency(4.0, 4.0), ahead=1)
    assert simulate(replace(tools, shared=True)).step_seconds == pytest.approx(12.0)
    assert simulate(tools).step_seconds == pytest.approx(10.0)


def test_half_the_places_take_twice_the_time():
    assert simulate(replace(ONE_TURN, concurrency=4)).step_seconds == pytest.approx(2 * 1.0 + 2.0)


def test_reading_comes_before_decoding():
    # Every turn is read for 0.5 s; all eight come at once: 4 s of reading, 1 s of decoding, 2 s of training.
    assert simulate(replace(ONE_TURN, prefill=0.5)).step_seconds == pytest.approx(7.0)


def test_a_decoding_step_gets_longer_with_its_sequences_and_engines_share_them():
    slow = replace(ONE_TURN, decoding=lambda sequences: 0.1 * sequences)
    assert simulate(slow).step_seconds == pytest.approx(8.0 + 2.0)
    assert simulate(replace(slow, engines=2)).step_seconds == pytest.approx(4.0 + 2.0)
    assert simulate(replace(slow, engines=8)).step_seconds == pytest.approx(1.0 + 2.0)


def test_latencies_have_the_median_and_the_99th_percentile_they_are_named_by():
    rng = random.Random(0)
    cuts = quantiles((Latency(1.0, 10.0).draw(rng) for _ in range(20_000)), n=100)
    assert cuts[49] == pytest.approx(1.0, rel=0.05)
    assert cuts[98] == pytest.approx(10.0, rel=0.1)
    assert Latency(1.0, 10.0).mean == pytest.approx(math.exp((math.log(10) / 2.3263) ** 2 / 2))


@settings(deadline=None, max_examples=40)
@given(
    engines=st.integers(1, 3),
    concurrency=st.integers(1, 12),
    turns=st.integers(1, 4),
    training=st.floats(0.01, 5.0),
    ahead=st.integers(0, 2),
    shared=st.booleans(),
    seed=st.integers(0, 99),
)
def test_no_step_is_shorter_than_its_training_or_its_work(engines, concurrency, turns, training, ahead, shared, seed):
    shop = replace(
        ONE_TURN,
        engines=engines,
        concurrency=concurrency,
        turns=turns,
        training=training,
        ahead=ahead,
        shared=shared,
        latency=Latency(0.2, 2.0),
    )
    found = simulate(shop, steps=6, seed=seed)
    assert found.step_seconds >= training - 1e-6
    assert 0 <= found.trainer_idle <= 1
    assert 0 <= found.engine_idle <= 1
    assert math.isclose(found.rate * found.step_seconds, shop.episodes)


def test_the_advice_is_the_least_overlap_and_concurrency_that_are_nearly_best():
    advice = advise(replace(ONE_TURN, concurrency=2), most=4, group_size=4)
    # Playing takes 4 s with two places and 2 s with four, training 2 s; eight places have no room.
    assert advice.rates["ahead"] == pytest.approx({0: 8 / 6, 1: 8 / 4, 2: 8 / 4})
    assert advice.ahead == 1
    assert advice.rates["concurrency"] == pytest.approx({1: 8 / 8, 2: 8 / 4, 4: 8 / 2})
    assert advice.concurrency == 4
    # A batch of four is played in one go of 1 s and learnt in 1 s: as many episodes a second as one of eight.
    assert advice.episodes == 4
    assert advice.now.trainer_idle == pytest.approx(4 / 6)
    assert advice.best.trainer_idle == pytest.approx(0.0)


def test_a_plan_simulates_its_grpo_stages_and_prices_the_hours():
    result = plan_run(recipes_folder() / "single-gpu-7b.toml")
    assert 0 < result["simulated"]["grpo"]["now"]["trainer_idle"] < 1
    assert any(line.startswith("grpo simulated (tools of 1 s, one turn in a hundred 10 s)") for line in result["lines"])
    assert result["price"] is None


def test_impossible_machines_are_refused(recipe_file, capsys):
    plain = recipe_file.read_text()
    for said, why in (
        ("tool_seconds = 5.0\ntool_p99 = 2.0", "tool_p99 = 2 is less than tool_seconds = 5, the median"),
        ("accelerators = 8\nrollout_accelerators = 8", "rollout_accelerators = 8 of accelerators = 8: none is left"),
    ):
        recipe_file.write_text(plain.replace("[budget]", f"[plan]\n{said}\n\n[budget]"))
        assert main(["run", str(recipe_file), "--plan"]) == 2
        assert why in capsys.readouterr().err
