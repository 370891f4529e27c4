"""Injected faults: seeded trouble that the journal tells apart from the world's answer and from infra errors."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.till import ANSWER, Script, Till, call, do, task
from harness.tower import Replaying, Tower
from quintain import Budget, Harness, Journal, tool
from quintain.harness.damage import damaged
from quintain.harness.faults import _SAID, FaultPlan, FaultStream
from quintain.harness.isolated import end_idle
from quintain.harness.journal import read_journal
from quintain.interface.errors import InfraError, InputError
from quintain.interface.faults import ALWAYS_PERMANENT, DAMAGES, KINDS, REFUSALS
from quintain.interface.messages import Action

ALWAYS = FaultPlan(episodes=1.0, rate=1.0, most=1, permanent=0.0)
PUT = do("put", item="tea")
PAGE = "Country. Capital: Roma. Population: 60000."


class Shop(Till):
    """The till with results that have fields."""

    @tool
    def record(self) -> dict[str, int | str]:
        """A record."""
        self.basket.append("seen")
        return {"price": 300, "name": "tea"}

    @tool
    def page(self) -> str:
        """A page."""
        self.basket.append("seen")
        return PAGE

    @tool
    def nothing(self) -> str:
        """An empty page."""
        return ""

    @tool
    def broken(self) -> str:
        """Infrastructure that never works."""
        raise InfraError("the cable is gone")


def only_kind(kind, **changes) -> FaultPlan:
    return replace(ALWAYS, kinds={kind: 1.0}, **changes)


async def play(*actions, plan=ALWAYS, world=Shop, seed: int = 0, **options):
    return await Harness(world, faults=plan, seed=seed, **options).run(task(), Script(actions))


def seen(episode) -> list:
    return [one for turn in episode.turns for one in turn.observations]


@pytest.mark.parametrize("kind", REFUSALS)
async def test_a_refused_call_is_an_error_with_its_kind_and_the_tool_never_runs(kind):
    episode = await play(do("record"), ANSWER, plan=only_kind(kind))
    (one,) = seen(episode)
    assert (one.fault, one.value) == (kind, None)
    assert one.error == ("timeout" if kind == "timeout" else "exception")
    assert one.content.startswith("Error (")
    assert episode.milestones == ()
    assert episode.success
    assert episode.usage.tool_calls == 1


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("name", ["record", "page", "price"])
async def test_a_damaged_result_is_no_error_and_the_tool_really_ran(kind, name):
    plan = only_kind(kind)
    action = do("price", item="tea") if name == "price" else do(name)
    clean = seen(await play(action, ANSWER, plan=None))[0]
    episode = await play(action, ANSWER, plan=plan)
    (one,) = seen(episode)
    assert one.error == ""
    assert one.content != clean.content
    shapeless = name == "price" and kind in ("renamed_field", "missing_field")
    assert one.fault == ("wrong_type" if shapeless else kind)
    assert episode.milestones == (() if name == "price" else ("filled",))


@pytest.mark.parametrize(
    ("kind", "value", "held_out", "expected"),
    [
        ("renamed_field", {"price": 3}, False, {"price_v2": 3}),
        ("renamed_field", {"Unit price": 3}, True, {"x_unit_price": 3}),
        ("missing_field", {"price": 3}, False, {}),
        ("wrong_type", {"price": 3}, False, {"price": "n/a"}),
        ("wrong_type", {"names": ["a", "b"]}, False, {"names": 2}),
        ("wrong_type", "four", True, {"length": 4}),
        ("empty_result", [1, 2], False, []),
        ("empty_result", "text", True, "(no content)"),
    ],
)
def test_what_each_damage_does(kind, value, held_out, expected):
    assert damaged(kind, value, Random(0), held_out)[1] == expected


def test_fields_of_a_text_are_what_stands_before_a_colon():
    found = {damaged("renamed_field", PAGE, Random(seed), False)[2] for seed in range(20)}
    assert found == {
        "Country. Capital_v2: Roma. Population: 60000.",
        "Country. Capital: Roma. Population_v2: 60000.",
    }
    found = {damaged("missing_field", PAGE, Random(seed), False)[2] for seed in range(20)}
    assert found == {"Country. Population: 60000.", "Country. Capital: Roma."}


def test_a_stale_page_has_older_figures_and_says_so():
    _, _, text = damaged("stale", PAGE, Random(1), False)
    assert text.startswith("[Cached copy of 20")
    assert "Capital: Roma." in text
    assert 36000 <= int(text.rpartition(" ")[2].strip(".")) <= 54000  # 60 to 90 %


def test_a_stale_whole_number_stays_exact_however_long():
    assert damaged("stale", 10**400, Random(1), False)[1]["result"] % 10**397 == 0


@given(
    st.sampled_from(DAMAGES),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, width=32) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
    st.integers(),
    st.booleans(),
)
def test_damage_gives_json_and_leaves_the_original_alone(kind, value, seed, held_out):
    before = json.dumps(value)
    done, made, content = damaged(kind, value, Random(seed), held_out)
    assert json.dumps(value) == before
    assert content == (made if isinstance(made, str) else json.dumps(made, ensure_ascii=False))
    assert done in DAMAGES


async def test_a_malformed_call_reaches_no_tool_and_so_meets_no_fault():
    episode = await play(do("price", itme="tea"), do("buy"), do("record"), ANSWER)
    assert [one.fault == "" for one in seen(episode)] == [True, True, False]


async def test_a_call_that_fails_by_itself_keeps_its_own_error():
    episode = await play(do("price", item="gold"), ANSWER, plan=only_kind("stale"))
    assert (seen(episode)[0].error, seen(episode)[0].fault) == ("exception", "")


@pytest.mark.parametrize("kind", ["empty_result", "truncated"])
async def test_a_result_that_the_damage_does_not_change_is_the_worlds_answer(kind):
    (one,) = seen(await play(do("nothing"), ANSWER, plan=only_kind(kind)))
    assert (one.content, one.fault) == ("", "")


async def test_a_fault_that_passes_strikes_one_or_two_calls_of_its_tool():
    counts = set()
    for seed in range(12):
        episode = await play(*[PUT] * 4, ANSWER, plan=only_kind("server_error"), seed=seed)
        struck = [bool(one.fault) for one in seen(episode)]
        counts.add(sum(struck))
        assert struck == sorted(struck, reverse=True)
    assert counts == {1, 2}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_permanent_fault_stays_and_looks_the_same_every_time(kind):
    episode = await play(*[do("record")] * 4, PUT, ANSWER, plan=only_kind(kind, permanent=1.0))
    *records, put = seen(episode)
    assert {one.content for one in records} == {records[0].content}
    assert {(one.fault, one.permanent) for one in records} == {(kind, True)}
    assert put.fault == ""


@pytest.mark.parametrize("kind", sorted(ALWAYS_PERMANENT))
async def test_what_is_gone_or_forbidden_stays_so_whatever_the_share(kind):
    episode = await play(*[PUT] * 4, ANSWER, plan=only_kind(kind, permanent=0.0))
    assert all(one.permanent for one in seen(episode))


def first_fault(plan: FaultPlan, seed: int, tool_name: str = "a") -> str:
    found = FaultStream(plan, seed).next(tool_name)
    return found.kind if found else ""


def test_rates_are_those_of_the_plan():
    plan = FaultPlan(episodes=0.4, rate=0.5, tools={"b": 1.0, "c": 0.0}, kinds={"stale": 3.0, "timeout": 1.0})
    drawn = {name: [first_fault(plan, seed, name) for seed in range(4000)] for name in "abc"}
    shares = {name: sum(map(bool, kinds)) / 4000 for name, kinds in drawn.items()}
    # five standard errors of a share of 4,000 are at most 0.04
    assert shares["a"] == pytest.approx(0.2, abs=0.04)
    assert shares["b"] == pytest.approx(0.4, abs=0.04)
    assert shares["c"] == 0
    assert drawn["b"].count("stale") / (4000 * shares["b"]) == pytest.approx(0.75, abs=0.06)


def test_an_episode_begins_no_more_faults_than_the_plan_allows():
    stream = FaultStream(FaultPlan(episodes=1.0, rate=1.0, most=2, permanent=1.0), 5)
    assert [stream.next(name) is not None for name in "abcab"] == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": 5.0}, "rate is a share from 0 to 1, found 5.0"),
        ({"episodes": float("nan")}, "episodes is a share from 0 to 1, found nan"),
        ({"tools": {"put": -1.0}}, r"tools\['put'\] is a share from 0 to 1, found -1.0"),
        ({"kinds": {}}, "kinds need a number above 0 each"),
        ({"kinds": {"flood": 1.0}}, "kinds need a number above 0 each.*known: timeout, server_error"),
        ({"kinds": {"stale": float("inf")}}, "kinds need a number above 0 each"),
        ({"wordings": "test"}, "wordings are 'train' or 'held_out', found 'test'"),
    ],
)
def test_a_plan_that_means_nothing_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        FaultPlan(**wrong)


async def test_the_same_seed_meets_the_same_faults_and_another_one_others():
    plan = FaultPlan(episodes=1.0, rate=0.5, most=9)
    runs = [
        [one.content for one in seen(await play(*[do("record")] * 6, ANSWER, plan=plan, seed=seed))]
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


ACTIONS = [PUT, do("record"), PUT, do("page"), do("record"), ANSWER]
MANY = FaultPlan(episodes=1.0, rate=0.6, most=9, permanent=0.3)


@pytest.fixture(scope="module", autouse=True)
def _no_idle_children():
    yield
    end_idle()


class Isolated(Shop):
    isolated = True


class Again(Shop):
    snapshots = "replay"


@pytest.mark.parametrize("world", [Shop, Isolated, Again])
async def test_a_rewound_episode_meets_the_same_faults(tmp_path, world):
    journal = Journal(tmp_path)
    harness = Harness(world, faults=MANY, journal=journal, seed=4)
    whole = await harness.run(task(), Script(ACTIONS))
    wanted = [(one.content, one.fault, one.permanent) for one in seen(whole)]
    assert 1 < sum(bool(one[1]) for one in wanted) < 5
    for turn in range(6):
        state = journal.state_at(whole.id, turn)
        branch = await harness.branch(whole, turn, task(), Script(ACTIONS), state=state, name=f"b{turn}")
        assert [(one.content, one.fault, one.permanent) for one in seen(branch)] == wanted
        assert branch.milestones == whole.milestones


@pytest.mark.parametrize("kept", [1, 3, 4])
async def test_a_resumed_episode_meets_the_same_faults(tmp_path, kept):
    journal = Journal(tmp_path)
    harness = Harness(Shop, faults=MANY, journal=journal, seed=4)
    whole = await harness.run(task(), Script(ACTIONS))
    lines = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(b"".join(lines[: kept + 1]))
    _, (unfinished,) = read_journal(tmp_path)
    resumed = await harness.resume(unfinished, task(), Script(ACTIONS))
    assert [one.content for one in seen(resumed)] == [one.content for one in seen(whole)]


async def test_the_journal_keeps_the_fault_at_its_call(tmp_path):
    journal = Journal(tmp_path)
    episode = await play(do("record"), ANSWER, plan=only_kind("tool_gone"), journal=journal)
    (read,), _ = read_journal(tmp_path)
    assert read.turns == episode.turns
    assert (seen(read)[0].fault, seen(read)[0].permanent) == ("tool_gone", True)
    assert read.outcome.kind == "answered"


async def test_calls_run_again_for_a_world_without_snapshots_leave_out_the_refused_ones():
    plan = only_kind("server_error")
    actions = [PUT, PUT, PUT, do("spin"), PUT, ANSWER]
    episode = await play(*actions, plan=plan, world=Replaying, budget=Budget(call_seconds=0.3))
    put = [one.value for one in seen(episode) if one.tool == "put" and not one.fault]
    assert put == list(range(1, len(put) + 1))


async def test_an_infra_error_is_retried_with_the_same_fault():
    Till.infra_failures = 1
    episode = await play(do("flaky"), do("flaky"), do("flaky"), ANSWER, plan=only_kind("truncated"))
    first, *others = seen(episode)
    assert (first.error, first.fault) == ("", "truncated")
    assert others[-1].fault == ""


async def test_a_turn_that_breaks_twice_keeps_what_never_reached_a_tool_apart_from_the_infra_error(tmp_path):
    plan = only_kind("server_error", tools={"broken": 0.0}, most=1, permanent=1.0)
    calls = (call("put", "a", itme="tea"), call("put", "b", item="tea"), call("broken", "c"))
    actions = [Action(calls=calls), PUT, ANSWER]
    harness = Harness(Shop, faults=plan, journal=Journal(tmp_path))
    whole = await harness.run(task(), Script(actions))
    told = [(one.error, one.fault) for one in seen(whole)]
    assert told == [("format", ""), ("exception", "server_error"), ("infra", ""), ("exception", "server_error")]
    state = harness.journal.state_at(whole.id, 1)
    branch = await harness.branch(whole, 1, task(), Script(actions), state=state, name="b")
    assert [(one.error, one.fault) for one in seen(branch)] == told


async def test_calls_that_run_at_once_meet_the_faults_they_would_meet_in_order():
    both = Action(calls=(call("price", "a", item="tea"), call("price", "b", item="tea")))
    plan = only_kind("server_error", permanent=1.0)
    assert [one.fault for one in seen(await play(both, ANSWER, plan=plan))] == ["server_error"] * 2


async def test_faults_strike_isolated_worlds_as_any_other():
    episode = await play(PUT, ANSWER, plan=only_kind("wrong_type"), world=Tower)
    assert (seen(episode)[0].fault, seen(episode)[0].value) == ("wrong_type", "n/a")


def test_training_and_measuring_have_no_wording_in_common():
    for words in _SAID.values():
        assert set(words["train"]).isdisjoint(words["held_out"])
    for kind in set(DAMAGES) - {"missing_field", "truncated"}:  # these two add no words
        train, held_out = (
            {damaged(kind, value, Random(seed), other)[2] for seed in range(30) for value in ({"a": 30}, "text", 7)}
            for other in (False, True)
        )
        assert train.isdisjoint(held_out)
