"""Which tasks are played next: reproducible, and those likely to teach something."""

from __future__ import annotations

from collections import Counter

import pytest
from rl_episodes import answers, episode

from quintain.interface.tasks import Task
from quintain.training.curriculum import FLOOR, MEMORY, Curriculum, outcomes_of

TASKS = [Task(f"t{n}", "w", "?", template="a" if n < 20 else "b") for n in range(40)]


def curriculum(seed: int = 0) -> Curriculum:
    return Curriculum(TASKS, 8, seed)


def test_the_same_draw_gives_the_same_tasks_and_another_draw_others():
    ids = [[task.id for task in curriculum().choose(6, draw)] for draw in ("1.0", "1.0", "2.0")]
    assert ids[0] == ids[1] != ids[2]
    assert len(set(ids[0])) == 6


def test_tasks_left_out_are_not_drawn_and_a_small_pool_gives_what_it_has():
    without = [task.id for task in TASKS[:35]]
    assert {task.id for task in curriculum().choose(9, "x", without)} == {task.id for task in TASKS[35:]}


def test_a_pass_rate_by_hand():
    """Template a: 8 episodes, 4 wins, so a prior of 5/10; the task itself 0 of 8: (0 + 2 x 0.5) / (8 + 2)."""
    one = curriculum()
    one.observe({"t0": (8, 0), "t1": (0, 0), "t2": (0, 4)})
    assert one.pass_rate("t0") == pytest.approx(0.1)
    assert one.pass_rate("t25") == pytest.approx(0.5)


def test_earlier_outcomes_fade():
    one = curriculum()
    one.observe({"t0": (8, 8)})
    one.observe({})
    prior = (8 * MEMORY + 1) / (8 * MEMORY + 2)
    assert one.pass_rate("t0") == pytest.approx((8 * MEMORY + 2 * prior) / (8 * MEMORY + 2))


def test_promise_is_the_chance_that_a_group_varies_and_never_nothing():
    one = curriculum()
    assert one.promise("t0") == pytest.approx(1 - 2 * 0.5**8)
    for _ in range(30):
        one.observe({task.id: (8, 0) for task in TASKS[:20]})
    assert one.promise("t0") == FLOOR


def test_a_template_that_never_succeeds_is_drawn_less_often_but_still_drawn():
    one = curriculum()
    for _ in range(30):
        one.observe({task.id: (8, 0) for task in TASKS[:20]} | {task.id: (8, 4) for task in TASKS[20:]})
    drawn = Counter(task.template for draw in range(200) for task in one.choose(2, str(draw)))
    assert 0 < drawn["a"] < 0.25 * drawn["b"]


def test_outcomes_count_scored_episodes_only():
    episodes = [episode(answers(), success=one, task="t0", number=n) for n, one in enumerate((True, False, None))]
    assert outcomes_of(episodes) == {"t0": (2, 1)}
