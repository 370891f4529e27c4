"""A study's rows, table and plot, from evaluations written by hand."""

from __future__ import annotations

import xml.etree.ElementTree as xml

from evaluation_episodes import answer, call, episode
from test_recovery import GONE, LATE

from quintain.evaluation.study import plot, rows_of, table


def run(right: int):
    """Ten struck tasks of which `right` recover, and ten others that all succeed."""
    struck = [
        episode(f"s{n}", n < right, turns=[LATE, call(query="x"), answer()] if n < right else [GONE, GONE, answer()])
        for n in range(10)
    ]
    return struck + [episode(f"c{n}") for n in range(10)]


ROWS = rows_of({"clean": [run(2), run(4)], "mix": [run(9), run(7)]}, {"mix": "9 episodes"})


def test_a_row_pools_the_seeds_and_shows_each_of_them():
    first, second = ROWS
    assert (first.group, first.seeds) == ("clean", 2)
    assert first.estimates["recovery"].value == 0.3
    assert list(first.by_seed["recovery"]) == [0.2, 0.4]
    assert second.estimates["pass1"].value == (8 + 10) / 20
    assert second.estimates["repeat"].value == 0.1  # in 2 of 10 episodes, of two failed calls the first


def test_settings_are_paired_with_the_first():
    assert ROWS[0].differences == {}
    found = ROWS[1].differences["recovery"].estimate
    assert (round(found.value, 9), found.tasks) == (0.5, 10)
    assert found.low > 0


def test_the_table_has_a_line_for_each_setting():
    lines = table(ROWS).splitlines()
    assert lines[2].startswith("| clean | - | 2 | 0.65 [")
    assert lines[3].startswith("| mix | 9 episodes | 2 | ")
    assert "seeds 0.70 to 0.90" in lines[3]
    assert "+0.50 [" in lines[3]


def test_the_plot_is_an_image_with_a_whisker_for_every_estimate():
    image = xml.fromstring(plot(ROWS))
    circles = [one for one in image if one.tag.endswith("circle")]
    assert len(circles) == 6
    assert {one.text for one in image if one.tag.endswith("text")} >= {"clean", "mix", "recovery rate"}


def test_a_setting_without_struck_episodes_has_no_recovery_rate():
    (row,) = rows_of({"none": [[episode("a")]]}, {})
    assert row.estimates["recovery"] is None
    assert "| - |" in table([row])
