"""The mix: caps, balance and the share of failures, by hand and as properties."""

from __future__ import annotations

from collections import Counter

import pytest
from curation_episodes import episode
from hypothesis import given
from hypothesis import strategies as st

from quintain.curation.config import CurationConfig
from quintain.curation.mix import Candidates, shares

NEUTRAL = {"cluster_cap": 10_000, "balance": 0.0, "failure_share": 0.99}


def choose(episodes, **config):
    candidates = Candidates(0)
    for one in episodes:
        candidates.add(one)
    return dict(
        zip([one.id for one in episodes], candidates.choose(CurationConfig(**{**NEUTRAL, **config})), strict=True)
    )


def many(count, name, **more):
    return [episode(f"{name}{number}", **more) for number in range(count)]


def test_of_a_cluster_no_more_than_its_cap_is_kept():
    found = choose([*many(5, "a", cluster="one"), *many(2, "b", cluster="two")], cluster_cap=3)
    assert Counter(found.values()) == {"": 5, "cluster_cap": 2}
    assert [found["b0"], found["b1"]] == ["", ""]


@pytest.mark.parametrize(("balance", "kept"), [(0.0, 90), (0.5, 68), (1.0, 50)])
def test_a_family_above_the_mean_is_brought_towards_it(balance, kept):
    """Mean of 90 and 10 is 50; half-way in logarithms is sqrt(90 * 50) = 67.1, rounded up."""
    found = choose([*many(90, "a", template="big"), *many(10, "b", template="small")], balance=balance)
    assert Counter(found.values()) == Counter({"": kept + 10, "family_balance": 90 - kept})
    assert all(found[f"b{number}"] == "" for number in range(10))


def test_languages_are_balanced_after_families():
    found = choose([*many(90, "a", language="en"), *many(10, "b", language="zh")], balance=1.0)
    assert Counter(found.values()) == {"": 60, "language_balance": 40}


def test_20_failures_in_100_by_default():
    found = choose([*many(80, "s"), *many(50, "f", success=False)], failure_share=0.2)
    assert Counter(found.values()) == {"": 100, "failure_share": 30}


@pytest.mark.parametrize(
    ("successes", "failures", "share", "size", "kept"),
    [
        (80, 50, 0.2, None, (80, 20)),
        (80, 10, 0.2, None, (80, 10)),
        (80, 50, 0.0, None, (80, 0)),
        (100, 100, 0.6, None, (100, 100)),
        (100, 100, 0.6, 50, (20, 30)),
        (10, 100, 0.2, 50, (10, 2)),
        (0, 5, 0.2, None, (0, 0)),
    ],
)
def test_failures_never_make_up_more_than_their_share(successes, failures, share, size, kept):
    assert shares(successes, failures, share, size) == kept


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.booleans()), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.2, 0.5]),
    st.sampled_from([None, 10]),
)
def test_the_share_of_failures_and_the_size_hold_for_any_data(rows, share, size):
    episodes = [
        episode(f"e{number}", template=template, language=language, success=success)
        for number, (template, language, success) in enumerate(rows)
    ]
    found = choose(episodes, failure_share=share, size=size, balance=0.5, cluster_cap=4)
    kept = [one for one in episodes if found[one.id] == ""]
    failures = sum(not one.success for one in kept)
    assert failures <= share * len(kept) + 0.5
    assert size is None or len(kept) <= size


def test_what_is_kept_does_not_depend_on_the_order_of_the_data():
    episodes = [*many(40, "a", cluster="one"), *many(40, "b", success=False)]
    settings = {"cluster_cap": 20, "failure_share": 0.3}
    assert choose(episodes, **settings) == choose(episodes[::-1], **settings)


def test_what_a_person_chose_is_the_last_to_go_in_every_draw():
    """Of two clusters of 30, a cap of 2; of the 4 successes and failures left, one failure and a size of 3."""
    episodes = [*many(30, "a", cluster="one"), *many(30, "b", cluster="two", success=False)]
    candidates = Candidates(0)
    for one in episodes:
        candidates.add(one, chosen=one.id in ("a7", "a21", "b13"))
    found = candidates.choose(CurationConfig(**{**NEUTRAL, "cluster_cap": 2, "failure_share": 0.34, "size": 3}))
    kept = {one.id for one, reason in zip(episodes, found, strict=True) if not reason}
    assert kept == {"a7", "a21", "b13"}


def test_the_bounds_hold_for_what_a_person_chose_too():
    episodes = many(10, "a", cluster="one")
    candidates = Candidates(0)
    for one in episodes:
        candidates.add(one, chosen=True)
    found = candidates.choose(CurationConfig(**{**NEUTRAL, "cluster_cap": 3}))
    assert Counter(found) == {"": 3, "cluster_cap": 7}
