"""The loop: exact resume, normalisation, budgets and bad numbers."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import torch
from training_models import example, family_of_examples, tiny

from quintain.interface.errors import InputError
from quintain.training import checkpoint
from quintain.training.config import SFTConfig, TrainConfig
from quintain.training.loop import DivergenceError, Pace, Trainer, train
from quintain.training.objective import cross_entropy
from quintain.training.optim import FIRST_STEP, rate_share
from quintain.training.sft import shuffled, train_examples

EACH_STEP = {"learning_rate": 1e-3, "microbatch_tokens": 120, "checkpoint_seconds": 0.0}
TIMING = ("seconds", "step_seconds", "tokens_per_second")


def metrics(out: Path) -> list[dict]:
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMING} for row in rows]


def weights(model: torch.nn.Module) -> dict:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_an_interrupted_and_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path, lora_rank, monkeypatch):
    config = SFTConfig(**EACH_STEP, epochs=3, batch_trajectories=4, lora_rank=lora_rank)
    examples = family_of_examples()
    whole = train_examples(config, examples, tiny(), tmp_path / "whole")

    def dies_at_step_four(batch: int, *rest: object) -> object:
        batches, steps = shuffled(batch, *rest)

        def batch_of(step: int) -> list:
            if step == 3:
                raise Interrupted
            return batches(step)

        return batch_of, steps

    monkeypatch.setattr("quintain.training.sft.shuffled", dies_at_step_four)
    with pytest.raises(Interrupted):
        train_examples(config, examples, tiny(), tmp_path / "broken")
    monkeypatch.undo()
    resumed = train_examples(config, examples, tiny(), tmp_path / "broken")

    assert whole.steps == resumed.steps == whole.planned_steps == 6
    assert metrics(tmp_path / "broken") == metrics(tmp_path / "whole")
    expected, found = weights(whole.model), weights(resumed.model)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.fixture
def heeds_ctrl_c():
    """As at a terminal: what was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def sends_ctrl_c(times: int, at: int):
    """In place of `shuffled`: so many of them while a step's batch is made."""

    def instead(batch: int, *rest: object) -> object:
        batches, steps = shuffled(batch, *rest)

        def batch_of(step: int) -> list:
            for _ in range(times if step == at else 0):
                signal.raise_signal(signal.SIGINT)
            return batches(step)

        return batch_of, steps

    return instead


def test_a_run_that_time_ends_says_how_many_steps_it_had_before_it(tmp_path):
    config = SFTConfig(epochs=3, batch_trajectories=4, seconds=1e-6)
    found = train_examples(config, family_of_examples(), tiny(), tmp_path)
    assert (found.steps, found.planned_steps) == (1, 6)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_waits_for_the_end_of_the_step_which_is_saved(tmp_path, monkeypatch, capsys):
    config = SFTConfig(epochs=3, batch_trajectories=4, checkpoint_seconds=600)
    whole = train_examples(config, family_of_examples(), tiny(), tmp_path / "whole")
    monkeypatch.setattr("quintain.training.sft.shuffled", sends_ctrl_c(1, at=3))
    with pytest.raises(KeyboardInterrupt):
        train_examples(config, family_of_examples(), tiny(), tmp_path / "broken")
    assert "this step is finished and saved first" in capsys.readouterr().err
    assert [one.name for one in (tmp_path / "broken" / "checkpoints").iterdir()] == ["step-000004"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    resumed = train_examples(config, family_of_examples(), tiny(), tmp_path / "broken")
    assert metrics(tmp_path / "broken") == metrics(tmp_path / "whole")
    found = weights(resumed.model)
    assert all(torch.equal(found[name], one) for name, one in weights(whole.model).items())


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_a_second_ctrl_c_stops_at_once(tmp_path, monkeypatch):
    config = SFTConfig(epochs=3, batch_trajectories=4, checkpoint_seconds=600)
    monkeypatch.setattr("quintain.training.sft.shuffled", sends_ctrl_c(2, at=3))
    with pytest.raises(KeyboardInterrupt):
        train_examples(config, family_of_examples(), tiny(), tmp_path)
    assert list((tmp_path / "checkpoints").iterdir()) == []
    assert len(metrics(tmp_path)) == 3


def test_metrics_past_the_checkpoint_resumed_from_are_written_again(tmp_path):
    config = TrainConfig(**EACH_STEP)
    examples = family_of_examples()
    train(tiny(), lambda step: examples, 2, cross_entropy, config, tmp_path)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "loss": 99.0}\n{"step": 4, "lo')
    train(tiny(), lambda step: examples, 3, cross_entropy, config, tmp_path)
    assert [row["step"] for row in metrics(tmp_path)] == [1, 2, 3]
    assert metrics(tmp_path)[2]["loss"] < 20


def test_the_split_into_microbatches_changes_neither_loss_nor_gradient():
    """The loss is normalised by the optimiser batch, so a short microbatch weighs no more than a long one."""
    examples = family_of_examples()
    found = []
    for budget in (60, 10_000):
        trainer = Trainer(tiny(), cross_entropy, TrainConfig(microbatch_tokens=budget))
        found.append(trainer._accumulate(examples))
        found.append({name: parameter.grad.clone() for name, parameter in trainer.model.named_parameters()})
    small, small_gradients, large, large_gradients = found
    assert small["microbatches"] > large["microbatches"] == 1
    assert small["loss"] == pytest.approx(large["loss"], rel=1e-5)
    for name, gradient in large_gradients.items():
        assert (small_gradients[name] - gradient).norm() <= 1e-4 * gradient.norm(), name


def test_loss_is_the_mean_negative_log_probability_of_the_weighted_tokens():
    model = tiny()
    logprobs = model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits[0].log_softmax(-1)
    expected = -(logprobs[0, 6] + 0.5 * logprobs[2, 8]) / 1.5
    found = Trainer(model, cross_entropy, TrainConfig())._accumulate([example([5, 6, 7, 8], [0, 1, 0, 0.5])])
    assert found["loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_training_lowers_the_loss_and_counts_shared_tokens_once(tmp_path):
    examples = [example([5, 6, 7, 8, 9, 10]), example([5, 6, 7, 8, 9, 11])]
    train(tiny(), lambda step: examples, 20, cross_entropy, TrainConfig(learning_rate=3e-3), tmp_path)
    rows = metrics(tmp_path)
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]
    assert (rows[0]["tokens"], rows[0]["example_tokens"], rows[0]["loss_weight"]) == (7, 12, 10)


def test_nothing_is_printed_where_nobody_watches(tmp_path, capfd):
    train(tiny(), lambda step: family_of_examples(), 1, cross_entropy, TrainConfig(), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_loss_that_is_no_number_stops_before_the_weights_change(tmp_path):
    model = tiny()
    with torch.no_grad():
        model.get_input_embeddings().weight[7] = float("nan")
    before = weights(model)
    with pytest.raises(DivergenceError, match=r"^step 1: loss is nan.*there is no checkpoint yet.*lower learning_rate"):
        train(model, lambda step: [example([5, 7, 9])], 3, cross_entropy, TrainConfig(), tmp_path)
    assert all(torch.equal(value, before[name]) for name, value in weights(model).items() if "embed" not in name)


def test_a_batch_without_any_loss_is_refused():
    trainer = Trainer(tiny(), cross_entropy, TrainConfig())
    with pytest.raises(InputError, match="none of the 1 examples"):
        trainer.step([example([5, 6, 7], [0, 0, 0])], 1.0)


def test_training_for_a_stated_time_ends_within_it_and_the_rate_ends_near_zero(monkeypatch):
    """Steps of 2 s in 21 s: the tenth ends at 20 s and an eleventh would end too late."""
    clock = [100.0]
    monkeypatch.setattr("quintain.training.loop.time.monotonic", lambda: clock[0])
    pace = Pace(10**6, 21.0, checkpoint.Position())
    rates = []
    while not pace.over(len(rates)):
        rates.append(rate_share(pace.rate_progress(len(rates)), 0.2))
        clock[0] += 2.0
    assert len(rates) == 10
    assert rates[-1] == pytest.approx((1 - 19 / 21) / 0.8)


def test_the_first_step_runs_even_where_it_will_take_longer_than_the_stated_time(tmp_path):
    config = TrainConfig(learning_rate=1e-3)
    found = train(tiny(), lambda step: family_of_examples(), 9, cross_entropy, config, tmp_path, seconds=1e-6)
    assert found.step == 1


def test_time_used_before_an_interruption_counts():
    pace = Pace(100, 50.0, checkpoint.Position(step=10, seconds=49.0))
    assert 0.98 <= pace.progress(10) < 1
    assert Pace(100, 50.0, checkpoint.Position(step=10, seconds=51.0)).over(10)


def test_learning_rate_rises_in_a_line_then_falls_in_a_line_to_zero():
    found = [rate_share(progress, 0.2) for progress in (0.0, 0.1, 0.2, 0.6, 1.0)]
    assert found == pytest.approx([FIRST_STEP, 0.5, 1.0, 0.5, 0.0])


def test_every_epoch_shows_every_example_once_in_an_order_of_its_own():
    examples = family_of_examples()
    batches, steps = shuffled(examples, 3, 2, seed=1)
    epochs = [[one for step in range(start, start + 3) for one in batches(step)] for start in (0, 3)]
    assert steps == 6
    assert sorted(one.episode for one in epochs[0]) == sorted(one.episode for one in examples)
    assert sorted(one.episode for one in epochs[1]) == sorted(one.episode for one in examples)
    assert epochs[0] != epochs[1]
