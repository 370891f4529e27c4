"""Duplicates: exact ones by content, near ones by the similarity of what was asked and written."""

from __future__ import annotations

import pytest
from curation_episodes import answered, called, episode

from quintain.curation import duplicates
from quintain.curation.duplicates import Duplicates, shingles, written

WORDS = [f"word{number}" for number in range(100)]


def saying(words, name="e", **more):
    return episode(name, turns=[answered("yes")], prompt=" ".join(words), **more)


def jaccard(one, two):
    first, second = (set(shingles(f"{one.success}\n" + "\n".join(written(each)))) for each in (one, two))
    return len(first & second) / len(first | second)


def test_the_same_episode_under_another_name_with_other_results_is_an_exact_duplicate():
    seen = Duplicates(0.9)
    one = episode("a", turns=[called(result="x", query="q"), answered()], prompt="?")
    two = episode("b", turns=[called(result="y", query="q"), answered()], prompt="?")
    assert [seen.kind(one), seen.kind(two)] == ["", "exact_duplicate"]


def test_a_success_and_a_failure_are_never_duplicates():
    seen = Duplicates(0.9)
    assert [seen.kind(saying(WORDS)), seen.kind(saying(WORDS, success=False))] == ["", ""]


@pytest.mark.parametrize(("changed", "kind"), [(1, "near_duplicate"), (40, "")])
def test_near_duplicates_are_those_more_alike_than_the_threshold(changed, kind):
    one, two = saying(WORDS), saying(["other"] * changed + WORDS[changed:], "b")
    assert (jaccard(one, two) > 0.9) == bool(kind)
    seen = Duplicates(0.9)
    assert [seen.kind(one), seen.kind(two)] == ["", kind]


def test_with_a_threshold_of_1_only_exact_copies_go():
    seen = Duplicates(1.0)
    assert [seen.kind(saying(WORDS)), seen.kind(saying([*WORDS, "more"])), seen.kind(saying(WORDS))] == [
        "",
        "",
        "exact_duplicate",
    ]


def test_of_100_rewordings_more_than_9_in_10_are_found_and_of_100_strangers_none_is():
    seen = Duplicates(0.9)
    originals = [saying([f"{word}-{number}" for word in WORDS], f"o{number}") for number in range(100)]
    assert [seen.kind(one) for one in originals] == [""] * 100
    reworded = [saying([f"{word}-{number}" for word in ["new", *WORDS[1:]]], f"r{number}") for number in range(100)]
    assert min(jaccard(one, two) for one, two in zip(originals, reworded, strict=True)) > 0.9
    assert [seen.kind(one) for one in reworded].count("near_duplicate") > 90


def test_the_index_forgets_the_oldest_when_it_is_full(monkeypatch):
    monkeypatch.setattr(duplicates, "REMEMBERED", 1)
    seen = Duplicates(0.9)
    one, two = (saying([f"{word}-{name}" for word in WORDS], name) for name in "ab")
    like_one = [saying([*[f"{word}-a" for word in WORDS], more]) for more in ("more", "less")]
    assert [seen.kind(one), seen.kind(like_one[0])] == ["", "near_duplicate"]
    assert [seen.kind(two), seen.kind(like_one[1])] == ["", ""]


def test_chinese_characters_are_words_and_so_is_punctuation():
    assert shingles("巴黎 is big.") == ["巴 黎 is", "黎 is big", "is big ."]
    assert shingles("one") == ["one"]
