"""What an evaluation says of an agent."""

import json
from dataclasses import replace

import pytest
from evaluation_episodes import answer, call, episode, malformed

from quintain.evaluation.summary import compare, summarise
from quintain.interface.episode import Episode, Outcome, Verdict
from quintain.interface.errors import InputError


def test_pass1_is_the_mean_over_tasks_not_over_trials() -> None:
    episodes = [episode("a", True), episode("a", True), episode("a", True), episode("b", False)]
    summary = summarise(episodes, planned=4)
    assert summary.pass1 is not None
    assert summary.pass1.value == 0.5


def test_each_world_has_its_own_pass_1_pass_k_and_interval() -> None:
    def played(world: str, task: str, *wins: bool) -> list[Episode]:
        return [replace(episode(task, won, trial=i), world=world) for i, won in enumerate(wins)]

    shop = played("shop", "a", True, True) + played("shop", "b", True, False)
    code = played("code", "c", False, False) + played("code", "d", False, False)
    summary = summarise([*shop, *code], planned=8)
    assert summary.pass1 is not None
    assert summary.pass1.value == (1 + 1 / 2 + 0 + 0) / 4
    assert list(summary.by_world) == ["code", "shop"]
    none, some = summary.by_world["code"].pass1, summary.by_world["shop"].pass1
    assert none is not None
    assert some is not None
    assert some.value == (1 + 1 / 2) / 2
    assert summary.by_world["shop"].pass_k[2].value == 1.0
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 2))  # no success in 2 clusters, Clopper and Pearson


def test_planned_scored_infra_and_missing_are_counted_and_bounds_show_both_ways() -> None:
    episodes = [episode("a", True), episode("a", None), episode("b", False), episode("b", True)]
    counts = summarise(episodes, planned=6).counts
    assert (counts.planned, counts.scored, counts.infra, counts.missing, counts.tasks) == (6, 3, 1, 2, 2)
    bounds = summarise(episodes, planned=6).overall.bounds
    assert bounds is not None
    assert (bounds.low, bounds.high) == (2 / 6, 5 / 6)


def test_an_infra_error_changes_no_rate() -> None:
    scored = [episode("a", True), episode("b", False)]
    with_infra = summarise([*scored, episode("c", None, turns=[malformed(), call()])], planned=3)
    without = summarise(scored, planned=2)
    assert with_infra.pass1 == without.pass1
    assert with_infra.cost == without.cost
    assert with_infra.behaviour == without.behaviour
    assert with_infra.outcomes["infra_error"].episodes == 1


def test_a_verdict_that_could_not_be_reached_counts_as_infra() -> None:
    broken = replace(episode("a"), verdict=Verdict(False, infra=True))
    summary = summarise([broken, episode("b")], planned=2)
    assert summary.counts.infra == 1
    assert summary.outcomes["infra_error"].episodes == 1


def test_pass_at_k_and_pass_hat_k_by_hand() -> None:
    episodes = [episode("a", i < 1, trial=i) for i in range(4)] + [episode("b", True, trial=i) for i in range(4)]
    overall = summarise(episodes, planned=8).overall
    assert list(overall.pass_k) == [1, 2, 4]
    assert [overall.pass_k[k].value for k in (1, 2, 4)] == pytest.approx([0.625, 0.75, 1.0])
    assert [overall.pass_hat_k[k].value for k in (1, 2, 4)] == pytest.approx([0.625, 0.5, 0.5])


def test_a_task_that_lost_a_trial_leaves_only_the_largest_k() -> None:
    episodes = [episode(task, True, trial=i) for task in "abc" for i in range(4)]
    episodes[0] = episode("a", None)
    overall = summarise(episodes, planned=12).overall
    assert {k: estimate.tasks for k, estimate in overall.pass_k.items()} == {1: 3, 2: 3, 4: 2}


def test_success_by_language_template_held_out_and_hops() -> None:
    episodes = [
        episode("a", True, template="lookup", tags=("lang:en", "hops:1")),
        episode("b", False, template="two_hop", tags=("lang:en", "hops:2", "held_out_template")),
        episode("c", True, template="two_hop", tags=("lang:zh", "hops:10", "held_out_template")),
    ]
    summary = summarise(episodes, planned=3)

    def rates(slices: object) -> dict[str, float]:
        return {name: one.pass1.value for name, one in slices.items()}  # type: ignore[attr-defined]

    assert rates(summary.by_language) == {"en": 0.5, "zh": 1.0}
    assert rates(summary.by_template) == {"lookup": 1.0, "two_hop": 0.5}
    assert rates(summary.by_held_out) == {"held_out": 0.5, "seen": 1.0}
    assert list(rates(summary.by_hops)) == ["1", "2", "10"]


def test_success_by_number_of_turns_in_growing_order() -> None:
    lengths = [1, 2, 2, 9, 12, 70]
    episodes = [episode(f"t{i}", i % 2 == 0, turns=[call(query=str(i))] * n) for i, n in enumerate(lengths)]
    by_turns = summarise(episodes, planned=6).by_turns
    assert {name: one.counts.scored for name, one in by_turns.items()} == {"1": 1, "2": 2, "9-12": 2, "65+": 1}


def test_outcomes_name_the_kind_of_limit_and_their_successes() -> None:
    episodes = [
        episode("a", True),
        episode("b", False, outcome=Outcome("limit", "format_errors")),
        episode("c", False, outcome=Outcome("limit", "turns")),
        episode("d", True, outcome=Outcome("declined")),
        episode("e", False, outcome=Outcome("declined")),
    ]
    summary = summarise(episodes, planned=5)
    found = {name: (count.episodes, count.successes) for name, count in summary.outcomes.items()}
    assert found == {"answered": (1, 1), "limit(format_errors)": (1, 0), "limit(turns)": (1, 0), "declined": (2, 1)}
    assert (summary.behaviour.declined_right, summary.behaviour.declined_wrong) == (1, 1)


def test_what_failures_cost_is_part_of_the_price_of_a_success() -> None:
    episodes = [episode("a", True), episode("b", False, turns=[call(query="x")] * 4)]
    cost = summarise(episodes, planned=2).cost
    assert cost.calls_per_success == 5  # 1 + 4
    assert cost.tokens_per_success == 18  # 3 a turn, 6 turns
    assert cost.mean_turns == 3


def test_cost_per_success_is_undefined_without_a_success() -> None:
    assert summarise([episode("a", False)], planned=1).cost.calls_per_success is None


def test_rates_of_malformed_invalid_failing_and_repeated_calls() -> None:
    turns = [
        malformed("json"),
        malformed("empty"),
        call(query="x"),
        call(query="x"),
        call(query="y", error="timeout"),
        answer(),
    ]
    behaviour = summarise([episode("a", False, turns=turns)], planned=1).behaviour
    assert behaviour.format_error_rate == 2 / 6
    assert behaviour.format_errors == {"json": 1 / 6, "empty": 1 / 6}
    assert behaviour.invalid_call_rate == 1 / 4  # an empty turn tried no call
    assert behaviour.tool_errors == {"timeout": 1 / 3}
    assert behaviour.repeated_call_rate == 1 / 3


def test_equal_calls_in_two_episodes_repeat_nothing() -> None:
    assert summarise([episode("a"), episode("b")], planned=2).behaviour.repeated_call_rate == 0


def test_arguments_without_canonical_json_are_counted_too() -> None:
    turns = [call(query=2**70), call(query=float("nan")), call(query=2**70)]
    assert summarise([episode("a", turns=turns)], planned=1).behaviour.repeated_call_rate == 1 / 3


def test_all_fail_has_an_exact_interval_of_some_width() -> None:
    summary = summarise([episode(f"t{i}", False) for i in range(40)], planned=40)
    assert summary.pass1 is not None
    assert (summary.pass1.value, summary.pass1.method) == (0, "exact")
    assert summary.pass1.high == pytest.approx(1 - 0.025 ** (1 / 40))


def test_no_episodes_give_an_empty_summary() -> None:
    summary = summarise([], planned=0)
    assert summary.pass1 is None
    assert summary.overall.bounds is None
    assert json.loads(json.dumps(summary.to_json(), allow_nan=False))["by_language"] == {}


def test_more_episodes_than_planned_is_an_input_error() -> None:
    with pytest.raises(InputError, match="2 episodes, but only 1"):
        summarise([episode("a"), episode("b")], planned=1)


def test_json_keys_are_stable() -> None:
    record = summarise([episode("a"), episode("a", False)], planned=2).to_json()
    assert list(record) == [
        *("overall", "bootstrap", "by_world", "by_language", "by_template", "by_held_out", "by_turns", "by_hops"),
        *("by_contamination", "outcomes", "cost", "behaviour", "recovery", "goal_keeping"),
    ]
    assert list(record["overall"]) == ["counts", "pass1", "pass_k", "pass_hat_k", "bounds"]
    assert list(record["overall"]["pass_k"]) == ["1", "2"]
    assert list(record["overall"]["pass1"]) == ["value", "low", "high", "tasks", "clusters", "method"]


def pool(successes: int, trial: int) -> list[Episode]:
    return [episode(f"t{i}", i < successes, trial=trial) for i in range(20)]


def test_comparison_pairs_tasks_and_says_how_many_it_left_out() -> None:
    comparison = compare(pool(2, 0), [*pool(15, 1), episode("other")])
    assert (comparison.tasks, comparison.left_out) == (20, 1)
    assert comparison.difference.estimate.value == pytest.approx(0.65)
    assert comparison.difference.p_value < 0.01


def test_evaluations_of_different_pools_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="no task is scored in both"):
        compare([episode("a")], [episode("b")])
