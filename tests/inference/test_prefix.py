from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quintain.inference.prefix import find_trunks, shared_length

tokens = st.lists(st.integers(0, 2), max_size=12)


@given(tokens, tokens)
def test_shared_length_is_that_of_the_common_prefix(left: list[int], right: list[int]) -> None:
    length = shared_length(left, right)
    assert left[:length] == right[:length]
    assert length == min(len(left), len(right)) or left[length] != right[length]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=7))
def test_trunks_are_disjoint_prefixes_that_their_members_share(kinds: list[tuple[int, int]]) -> None:
    sequences = [[1] * 50 + [10 + a] * 100 + [20 + b] * 100 for a, b in kinds]
    trunks = find_trunks(sequences)
    members = [index for trunk in trunks for index in trunk.members]
    assert len(members) == len(set(members))
    for trunk in trunks:
        assert len(trunk.members) > 1
        assert len({tuple(sequences[index][: trunk.length]) for index in trunk.members}) == 1


def test_groups_become_trunks_and_a_stranger_stays_alone() -> None:
    group = [[1] * 200 + [index] for index in range(4)]
    other = [[2] * 300 + [index] for index in range(3)]
    found = {frozenset(trunk.members): trunk.length for trunk in find_trunks([*group, [9] * 50, *other])}
    assert found == {frozenset({0, 1, 2, 3}): 200, frozenset({5, 6, 7}): 300}


def test_one_trunk_for_all_is_taken_where_it_saves_more_than_several() -> None:
    # together: 3 * 300; in pairs: 2 * (1 * 310), and each trunk costs something too
    sequences = [[1] * 300 + [pair] * 10 + [member] for pair in (2, 3) for member in (4, 5)]
    (trunk,) = find_trunks(sequences)
    assert (set(trunk.members), trunk.length) == ({0, 1, 2, 3}, 300)


def test_short_prefixes_are_not_worth_a_trunk() -> None:
    assert find_trunks([[1] * 60 + [2], [1] * 60 + [3]]) == []
