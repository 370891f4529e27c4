"""Curation from journals to lessons: what is kept, what is left out and why, in one stream."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from curation_episodes import answered, called, episode, records_of, write_journal, write_records

from quintain.curation.config import CurationConfig
from quintain.curation.curate import curate, curated
from quintain.curation.review import REVIEW, Judgement, add_judgement
from quintain.interface.errors import InputError


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_lessons_are_never_those_of_another_episode_with_the_same_id(tmp_path):
    wrong = [called(page=1, error="exception"), called(query="x"), answered("y")]
    write_journal(tmp_path / "a", [episode("e", [called(query="z"), answered()]), episode("e", wrong, prompt="Other?")])
    counts = curate({"a": tmp_path / "a"}, CurationConfig(), tmp_path / "mix")
    assert counts.rejected == {"duplicate_id": 1}
    ((_, one, (lesson,)),) = curated(tmp_path / "mix")
    assert (one.answer, lesson.learnt) == ("42", (0, 1))


@pytest.fixture
def run(tmp_path):
    """Two stages: 8 successes and 4 failures; a copy, a loop, one unscored and one that breaks the alternation."""
    write_journal(
        tmp_path / "experts",
        [*(episode(f"s{number}") for number in range(8)), episode("copy", prompt=episode("s0").messages[0].text)],
    )
    copy = episode("s0")
    write_journal(
        tmp_path / "model",
        [
            *(episode(f"f{number}", success=False) for number in range(4)),
            episode("s0-again", copy.turns, prompt=copy.messages[0].text),
            episode("loop", [called()] * 9, success=False),
            episode("broken", [answered("a"), answered("b")]),
            episode("unscored", success=None),
        ],
    )
    return tmp_path


def sources(run):
    return {"experts": run / "experts", "model": run / "model"}


def test_every_episode_is_kept_or_left_out_with_its_reason_source_and_line(run):
    counts = curate(sources(run), CurationConfig(), run / "mix")
    assert counts.episodes == 17
    assert counts.kept == 11
    assert counts.failures == 2
    assert counts.rejected == Counter(
        {"exact_duplicate": 1, "loop": 1, "alternation": 1, "unscored": 1, "failure_share": 2}
    )
    left = {(one["source"], one["reason"]): one for one in lines(run / "mix" / "rejected.jsonl")}
    broken = left["model", "alternation"]
    text = (run / "model" / "journal" / "journal.jsonl").read_text().splitlines()[broken["line"] - 1]
    assert json.loads(text)["episode"] == "broken"
    assert "follows without a user message" in broken["detail"]


def test_the_summary_says_what_was_kept_of_each_family_and_language(run):
    curate(sources(run), CurationConfig(), run / "mix")
    summary = json.loads((run / "mix" / "curation.json").read_text())
    assert summary["counts"]["families"] == {"desk/lookup": 11}
    assert summary["counts"]["languages"] == {"en": 11}
    assert summary["config"]["failure_share"] == 0.2


def test_the_same_data_and_seed_give_the_same_lessons(run):
    curate(sources(run), CurationConfig(), run / "one")
    curate(sources(run), CurationConfig(), run / "two")
    assert (run / "one" / "lessons.jsonl").read_bytes() == (run / "two" / "lessons.jsonl").read_bytes()


def test_another_seed_leaves_out_others(run):
    found = set()
    for seed in range(8):
        curate(sources(run), CurationConfig(seed=seed), run / "mix")
        found.add((run / "mix" / "lessons.jsonl").read_bytes())
    assert 1 < len(found) <= 6, "2 of 4 failures can be chosen in 6 ways"


def test_curated_data_is_read_back_with_its_episodes(run):
    curate(sources(run), CurationConfig(), run / "mix")
    found = list(curated(run / "mix"))
    assert [home.resolve().name for home, _, _ in found] == ["experts"] * 9 + ["model"] * 2
    assert all(lesson.episode == one.id for _, one, lessons in found for lesson in lessons)
    failed = [lessons for _, one, lessons in found if not one.success]
    assert [lesson.learnt for lessons in failed for lesson in lessons] == [(0,), (0,)]


def test_a_run_may_be_moved(run):
    curate(sources(run), CurationConfig(), run / "mix")
    moved = run.rename(run.with_name("moved"))
    assert len(list(curated(moved / "mix"))) == 11


def test_an_episode_that_left_its_journal_is_missed(run):
    curate(sources(run), CurationConfig(), run / "mix")
    write_journal(run / "model", [episode("f0", success=False)])
    with pytest.raises(InputError, match="is gone from its journal; curate again"):
        list(curated(run / "mix"))


def test_nothing_left_is_one_line_with_the_reasons_and_the_list_stays(tmp_path):
    write_journal(tmp_path / "a", [episode("x", success=None), episode("y", success=False)])
    with pytest.raises(InputError, match=r"no episode is left to learn from .*1 unscored, 1 failure_share"):
        curate({"a": tmp_path / "a"}, CurationConfig(), tmp_path / "mix")
    assert len(lines(tmp_path / "mix" / "rejected.jsonl")) == 2


def test_a_missing_journal_is_one_line(tmp_path):
    with pytest.raises(InputError, match="journal not found"):
        curate({"a": tmp_path / "a"}, CurationConfig(), tmp_path / "mix")


def test_a_folder_that_was_never_curated_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"holds no curated data: it has no curation.json"):
        list(curated(tmp_path))


def test_interleaved_episodes_of_a_rollout_are_curated_like_any_others(tmp_path):
    one, two = records_of(episode("a")), records_of(episode("b"))
    mixed = [one[0], two[0], *two[1:-1], *one[1:-1], two[-1], one[-1]]
    write_records(tmp_path / "a", mixed)
    counts = curate({"a": tmp_path / "a"}, CurationConfig(), tmp_path / "mix")
    assert [one.id for _, one, _ in curated(tmp_path / "mix")] == ["b", "a"]
    assert counts.kept == 2


def judge(run, *judgements):
    for stage, name, flag, *remark in judgements:
        add_judgement(run, Judgement(stage=stage, episode=name, flag=flag, remark="".join(remark)))


def test_what_a_person_flagged_is_left_out_and_counted_and_a_copy_of_it_is_none(run):
    judge(run, ("experts", "s0", "flag", "reads the answer off the page"), ("model", "s1", "flag"))
    judge(run, ("experts", "s2", "flag"), ("experts", "s2", ""))
    counts = curate(sources(run), CurationConfig(), run / "mix")
    assert counts.rejected["flagged"] == 1
    (left,) = [one for one in lines(run / "mix" / "rejected.jsonl") if one["reason"] == "flagged"]
    assert (left["source"], left["detail"]) == ("experts", "reads the answer off the page")
    kept = {one.id for _, one, _ in curated(run / "mix")}
    assert "s0" not in kept
    assert {"s1", "s2", "copy"} <= kept
    assert "1 flagged" in counts.line()


def test_what_a_person_kept_is_the_last_to_be_left_out(run):
    failures = [f"f{number}" for number in range(4)]
    for chosen in (failures[:2], failures[2:]):
        (run / REVIEW).unlink(missing_ok=True)
        judge(run, *(("model", name, "keep") for name in chosen))
        curate(sources(run), CurationConfig(), run / "mix")
        assert {one.id for _, one, _ in curated(run / "mix")} & set(failures) == set(chosen)
