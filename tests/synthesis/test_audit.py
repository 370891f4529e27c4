"""The audit: cases whose truth is known, in other words than the teacher's; figures; the offline judge's target."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from quintain.cli.main import main
from quintain.commands import judge_audit
from quintain.commands.judge_audit import PRECISION, RECALL, desk_cases
from quintain.synthesis.audit import wording as audit_wording
from quintain.synthesis.audit.measure import summarise
from quintain.synthesis.fas import Spent
from quintain.synthesis.judging import KINDS, Judgement, judge_request
from quintain.synthesis.offline import wording as teacher_wording
from quintain.synthesis.teacher import Prompts
from quintain.worlds.desk import Desk
from quintain.worlds.desk.atlas import entities


@pytest.fixture(scope="module")
def cases():
    return desk_cases()


def test_half_of_the_known_cases_are_right_and_every_kind_occurs_in_both_languages(cases):
    known = [case for case in cases if case.known]
    assert sum(not case.kind for case in known) * 2 == len(known)
    for language in ("en", "zh"):
        of_language = [case for case in cases if case.plan.question.language == language]
        assert {case.kind for case in of_language if case.known} == {"", *KINDS}
        assert len({case.family for case in of_language if not case.known}) == 4


def test_truth_is_built_in(cases):
    toolset = Desk().toolset()
    families = {
        "search by name": "",
        "first link of a chain": "",
        "recites the right answer": "search_necessity",
        "unknown tool": "invalid_tool",
    }
    for case in cases:
        problems = [toolset.check(call.tool, call.arguments) for call in case.plan.action.calls]
        assert not any(problems) or case.kind == "invalid_tool"
        assert families.get(case.family, case.kind) == case.kind
    assert set(families) <= {case.family for case in cases}


def test_the_cases_ask_about_nothing_of_the_evaluation(cases):
    evaluated = {title for entity in entities() if entity.split == "eval" for title in entity.titles.values()}
    assert {one.entity for case in cases for one in case.plan.question.knowledge} & evaluated == set()


def sentences(module):
    found: list[str] = []

    def collect(value):
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict | tuple):
            for one in value.values() if isinstance(value, dict) else value:
                collect(one)

    for name, value in vars(module).items():
        if name.isupper() and name != "SYNONYMS":
            collect(value)
    return [one for one in found if len(one) > 12]


def test_the_audit_shares_no_sentence_with_the_offline_teacher():
    own, others = sentences(audit_wording), sentences(teacher_wording)
    assert len(own) > 30
    assert len(others) > 100
    plain = ["".join(one.split()).lower() for one in others]
    assert [one for one in own if "".join(one.split()).lower() in plain] == []
    starts = {" ".join(one.split()[:4]) for one in others if " " in one}
    assert [one for one in own if " " in one and " ".join(one.split()[:4]) in starts] == []


def made_case(kind, family="f", known=True):
    return SimpleNamespace(
        kind=kind, family=family, known=known, plan=SimpleNamespace(question=SimpleNamespace(cluster="c"))
    )


def test_figures_by_hand():
    yes, no = Judgement(right=True), Judgement(right=False, kind="invalid_tool")
    judged = [
        (made_case(""), yes),
        (made_case(""), yes),
        (made_case(""), yes),
        (made_case("", "odd"), no),
        (made_case("invalid_tool"), no),
        (made_case("invalid_tool", "sly"), yes),
        (made_case("search_necessity"), no),
        (made_case("content_inconsistency", "new", known=False), yes),
    ]
    found = summarise(judged, 2, Spent())
    assert (found.precision.hits, len(found.precision.values)) == (3, 4)
    assert (found.recall.hits, len(found.recall.values)) == (3, 4)
    assert {kind: share.value for kind, share in found.false_accepts.items()} == {
        "invalid_tool": 0.5,
        "search_necessity": 0.0,
    }
    assert found.unforeseen["new"].value == 1.0
    assert found.named.value == 0.5
    assert set(found.misjudged) == {"odd", "sly", "new"}
    assert found.unanswered == 2


def test_the_offline_judge_reaches_its_target_on_the_constructed_set(tmp_path, capsys):
    assert main(["synth", "audit", "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["precision"]["value"] >= PRECISION
    assert found["recall"]["value"] >= RECALL
    assert found["precision"]["low"] < found["precision"]["value"] < found["precision"]["high"]
    assert set(found["false_accepts"]) == set(KINDS)
    assert len(found["false_accepts_unforeseen"]) == 4
    assert found["unanswered"] == 0


def test_a_judge_that_accepts_everything_fails(tmp_path, capsys, monkeypatch):
    from loopback import serve

    monkeypatch.setattr(judge_audit, "MEMORIES", 2)

    with serve(lambda request: {"content": '{"right": true}'}) as server:
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            'name = "r"\n[pools.train]\nsplit = "train"\ncount = 1\n[[stages]]\nkind = "fas"\nname = "fas"\n'
            f'judge = {{ endpoint = {{ model = "yes", url = "{server.url}" }} }}\n'
        )
        assert main(["synth", "audit", str(recipe), "--out", str(tmp_path / "run")]) == 1
        asked = len(server.requests)
        assert main(["synth", "audit", str(recipe), "--out", str(tmp_path / "run")]) == 1
        assert len(server.requests) == asked
    shown = capsys.readouterr().out
    assert "precision                          0.500" in shown
    assert "MISSES precision 0.90 at recall 0.95" in shown
    prompts = Counter(request["messages"][0]["content"] for request in server.requests)
    assert asked > 50
    assert all("Judge one thing" in prompt for prompt in prompts)


def test_a_judge_that_leaves_most_cases_open_fails_however_right_it_is(tmp_path, capsys, monkeypatch):
    from loopback import serve

    monkeypatch.setattr(judge_audit, "MEMORIES", 2)
    right = next(case for case in judge_audit.desk_cases() if case.known and not case.kind)
    accepted = Prompts().render(judge_request(right.plan, Desk().toolset()))

    def respond(request):
        known = request["messages"][0]["content"] == accepted
        return {"content": '{"right": true}'} if known else {"content": None, "refusal": "no"}

    with serve(respond) as server:
        recipe = tmp_path / "recipe.toml"
        recipe.write_text(
            'name = "r"\n[pools.train]\nsplit = "train"\ncount = 1\n[[stages]]\nkind = "fas"\nname = "fas"\n'
            f'judge = {{ endpoint = {{ model = "shy", url = "{server.url}" }} }}\n'
        )
        assert main(["synth", "audit", str(recipe), "--out", str(tmp_path / "run")]) == 1
    shown = capsys.readouterr().out
    assert "precision                          1.000" in shown
    assert "cases without a judgement (at most 5 % may be)" in shown
    assert "MISSES" in shown


def test_a_recipe_without_a_judge_is_one_line(tmp_path, capsys):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'name = "r"\n[pools.train]\nsplit = "train"\ncount = 1\n'
        '[[stages]]\nkind = "rollout"\nname = "a"\npool = "train"\n'
    )
    assert main(["synth", "audit", str(recipe)]) == 2
    assert "no judge to audit" in capsys.readouterr().err
