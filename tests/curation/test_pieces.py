import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quintain.curation.pieces import Pieces

TOKENS = st.integers(1, 12)


def test_a_stretch_holds_a_part_only_with_every_token_of_one_of_its_pieces():
    pieces = Pieces([(frozenset({1, 2}), frozenset({3})), (), (frozenset({4}),)])
    masked = np.array([1, 9, 2, 9, 3, 1], np.uint64)
    part, begin, end = (
        np.array(one) for one in zip((0, 0, 3), (0, 1, 3), (0, 4, 5), (0, 5, 6), (2, 0, 6), strict=True)
    )
    assert pieces.held(masked, part, begin, end).tolist() == [True, False, True, False, False]


def test_no_stretches_and_no_pieces_hold_nothing():
    none = np.empty(0, np.int64)
    assert Pieces([]).held(np.array([1], np.uint64), none, none, none).tolist() == []


@given(
    st.lists(st.lists(st.frozensets(TOKENS, min_size=1, max_size=4), min_size=1, max_size=2), min_size=1, max_size=4),
    st.lists(TOKENS, min_size=1, max_size=30),
    st.data(),
)
def test_many_stretches_at_once_are_judged_as_one_after_the_other_by_sets(pieces, masked, data):
    edges = st.tuples(st.integers(0, len(pieces) - 1), st.integers(0, len(masked)), st.integers(0, len(masked)))
    stretches = [(part, min(a, b), max(a, b)) for part, a, b in data.draw(st.lists(edges, min_size=1, max_size=8))]
    part, begin, end = (np.array(one, np.int64) for one in zip(*stretches, strict=True))
    found = Pieces(pieces).held(np.array(masked, np.uint64), part, begin, end)
    assert found.tolist() == [any(one <= set(masked[a:b]) for one in pieces[number]) for number, a, b in stretches]
