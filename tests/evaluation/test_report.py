"""report.json and what report.html embeds."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import report_run
from evaluation_episodes import answer, call, episode, malformed
from hypothesis import given
from hypothesis import strategies as st

from quintain.evaluation.report import ReportData, StageReport, report_html, report_json, write_report
from quintain.evaluation.summary import summarise
from quintain.evaluation.trajectories import EMBED_LIMIT, TEXT_LIMIT, SampledEpisode, choose, spot_check
from quintain.interface.episode import Segment, Span
from quintain.interface.example import Example


def embedded(data: ReportData) -> dict[str, object]:
    """The data that the page reads."""
    page = report_html(data, report_json(data))
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert text is not None
    return json.loads(text[1])


def test_json_keys_are_stable_and_versioned(tmp_path: Path) -> None:
    path, _ = write_report(tmp_path, report_run.demo_run())
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["schema_version"] == 1
    assert set(record) == {
        *("schema_version", "title", "stages", "comparisons", "frontier", "targets"),
        *("machine", "versions", "recipe", "notes", "episodes"),
    }
    assert set(record["stages"][0]) == {"name", "kind", "seconds", "notes", "audit", "evaluation", "metrics", "inputs"}
    assert set(record["comparisons"][0]) == {
        *("before", "after", "world", "tasks", "left_out"),
        *("before_pass1", "after_pass1", "difference", "p_value", "p_value_holm"),
    }
    assert set(record["targets"][0]) == {"name", "target", "reached", "met", "note"}
    assert record["stages"][-1]["evaluation"]["overall"]["pass1"]["value"] > 0.7


def test_numbers_that_are_not_finite_become_null() -> None:
    stage = StageReport("sft", "sft", metrics=[{"step": 1, "loss": float("nan")}, {"step": 2, "loss": float("inf")}])
    record = report_json(ReportData("x", stages=[stage]))
    assert [row["loss"] for row in record["stages"][0]["metrics"]] == [None, None]


def test_the_page_embeds_a_thinned_curve_and_report_json_all_of_it() -> None:
    rows = [{"step": step, "loss": 1.0} for step in range(2_501)]
    data = ReportData("x", stages=[StageReport("sft", "sft", metrics=rows)])
    shown = embedded(data)["stages"][0]["metrics"]  # type: ignore[index]
    assert len(report_json(data)["stages"][0]["metrics"]) == 2_501
    assert len(shown) <= 1_001
    assert (shown[0]["step"], shown[-1]["step"]) == (0, 2_500)


def test_the_page_is_one_file_that_names_no_address() -> None:
    data = report_run.demo_run()
    page = report_html(data, report_json(data))
    addresses = set(re.findall(r"https?://[^\s\"'<>\\]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of the SVG namespace, never fetched
    assert not re.search(r"<(link|script|img)[^>]+(href|src)=(?!\"data:)", page)


@given(st.text())
def test_no_text_leaves_its_script_element_or_changes_on_the_way(text: str) -> None:
    hostile = episode("a", turns=[answer(text + report_run.INJECTION)], prompt=text, reasons=[text])
    data = ReportData("x", episodes=[SampledEpisode("s", hostile)], recipe=text + "{{script}}")
    page = report_html(data, report_json(data))
    assert page.count("</script>") == 2
    assert page.lower().count("<script") == 2
    assert embedded(data)["recipe"] == text + "{{script}}"
    assert embedded(data)["trajectories"][0]["messages"][1]["text"] == text  # type: ignore[index]


def test_a_title_is_escaped() -> None:
    data = ReportData("</title><script>1</script>")
    assert "<title>&lt;/title&gt;&lt;script&gt;" in report_html(data, report_json(data))


def test_a_lone_surrogate_does_not_stop_the_report(tmp_path: Path) -> None:
    data = ReportData("x", episodes=[SampledEpisode("s", episode(turns=[answer("\ud800")]))], notes=["\ud800"])
    write_report(tmp_path, data)
    assert embedded(data)["trajectories"][0]["turns"][0]["answer"] == "\ud800"  # type: ignore[index]


def test_a_long_text_is_cut_and_says_so() -> None:
    long = episode(turns=[call(content="x" * (TEXT_LIMIT + 5_000), query="q"), answer()])
    data = ReportData("x", episodes=[SampledEpisode("s", long)])
    text = embedded(data)["trajectories"][0]["turns"][0]["observations"][0]["text"]  # type: ignore[index]
    assert text.endswith("(5,000 more characters in the journal)")


def test_at_most_200_episodes_are_embedded_and_the_page_says_of_how_many() -> None:
    samples = [SampledEpisode("s", episode(f"t{i}")) for i in range(EMBED_LIMIT + 30)]
    found = embedded(ReportData("x", episodes=samples))
    assert len(found["trajectories"]) == EMBED_LIMIT  # type: ignore[arg-type]
    assert found["episodes"] == {"sampled": 230, "embedded": 200, "limit": 200}


def test_sampling_keeps_rare_failures_stages_and_templates_in_sight() -> None:
    common = [SampledEpisode("sft", episode(f"a{i}", True, template="lookup")) for i in range(300)]
    rare = [SampledEpisode("sft", episode(f"b{i}", False, template=f"rare{i % 2}")) for i in range(4)]
    base = [SampledEpisode("base", episode(f"c{i}", False)) for i in range(5)]
    kept = choose([*common, *rare, *base], 20)
    assert len(kept) == 20
    assert set(map(id, [*rare, *base])) <= set(map(id, kept))


def test_sampling_is_the_same_every_time_and_keeps_the_order() -> None:
    samples = [SampledEpisode("s", episode(f"t{i:03d}")) for i in range(50)]
    kept = choose(samples, 10)
    assert kept == choose(samples, 10)
    assert [one.episode.id for one in kept] == sorted(one.episode.id for one in kept)


def test_the_spot_check_holds_failures_and_successes_of_the_last_stage_only() -> None:
    samples = [SampledEpisode("base", episode("a", False))]
    samples += [SampledEpisode("sft", episode(f"b{i}", i % 10 > 0)) for i in range(40)]
    samples += [SampledEpisode("sft", episode("c"), "training"), SampledEpisode("sft", episode("d", None))]
    sheet = [samples[index] for index in spot_check(samples, "sft")]
    assert len(sheet) == 12
    assert {(one.stage, one.source) for one in sheet} == {("sft", "evaluation")}
    assert sum(not one.episode.success for one in sheet) == 4


def as_text(ids: Sequence[int]) -> list[str]:
    return [f"<{number}>" for number in ids]


def marks(sample: SampledEpisode) -> list[list[object]]:
    data = ReportData("x", episodes=[sample], decode_tokens=as_text)
    return embedded(data)["trajectories"][0]["segments"][0]["marks"]  # type: ignore[index]


def test_marked_tokens_are_the_agents_own_and_malformed_turns_carry_no_loss() -> None:
    # 4 prompt tokens, then 3 generated and 2 of observation a turn.
    one = episode(turns=[call(query="x"), malformed(), answer()], tokens=True)
    assert marks(SampledEpisode("s", one)) == [[4, 7, "loss"], [9, 12, "written"], [14, 17, "loss"]]


def test_a_trained_trajectory_shows_the_ids_and_weights_it_was_trained_with() -> None:
    windows = [Example((1, 2, 3), (0, 0, 1.0)), Example((1, 8, 9, 10), (0, 0.5, 0.5, 0))]
    one = episode(turns=[call(query="x"), answer()])  # an oracle's episode has no tokens of its own
    data = ReportData("x", episodes=[SampledEpisode("s", one, "training", windows)], decode_tokens=as_text)
    found = embedded(data)
    parts = found["trajectories"][0]["segments"]  # type: ignore[index]
    assert [part["marks"] for part in parts] == [[[2, 3, "loss"]], [[1, 3, "loss"]]]
    assert [found["vocabulary"][index] for index in parts[1]["tokens"]] == ["<1>", "<8>", "<9>", "<10>"]  # type: ignore[index]
    assert parts[1]["label"] == "training example 2 of 2"


def test_adjacent_turns_of_several_segments_are_marked_in_their_own_segment() -> None:
    one = episode(turns=[call(query="x"), answer()])
    one = replace(
        one, segments=(Segment((1, 2, 3)), Segment((4, 5), 0, "discard")), spans=(Span(0, 1, 3), Span(1, 1, 2))
    )
    data = ReportData("x", episodes=[SampledEpisode("s", one)], decode_tokens=as_text)
    segments = embedded(data)["trajectories"][0]["segments"]  # type: ignore[index]
    assert [part["marks"] for part in segments] == [[[1, 3, "loss"]], [[1, 2, "loss"]]]
    assert segments[1]["label"] == "segment 2 (discard)"


def test_token_texts_that_do_not_fit_the_ids_are_an_error() -> None:
    data = ReportData("x", episodes=[SampledEpisode("s", episode(tokens=True))], decode_tokens=lambda ids: ["one"])
    with pytest.raises(ValueError, match="gave 1 texts for 14 token ids"):
        report_html(data, report_json(data))


def test_a_report_of_nothing_can_be_written(tmp_path: Path) -> None:
    paths = write_report(tmp_path / "new" / "run", ReportData("Empty"))
    assert [path.name for path in paths] == ["report.json", "report.html"]
    assert not list(tmp_path.rglob("*.partial"))


def test_a_stage_whose_episodes_were_all_infra_errors_can_be_reported() -> None:
    stage = StageReport("base", "base", summarise([episode("a", None)], 1))
    assert report_json(ReportData("x", stages=[stage]))["stages"][0]["evaluation"]["overall"]["pass1"] is None
