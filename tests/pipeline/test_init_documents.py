"""What `quintain init --from-docs` asks about: whole names, quantities and dates, and sums of what has a unit."""

from __future__ import annotations

import pytest

from quintain.commands.init.documents import document_tasks
from quintain.commands.init.gaps import gaps
from quintain.synthesis.documents import Document as Source
from quintain.synthesis.statements import statements
from quintain.worlds.answers import wrong
from quintain.worlds.desk.collection import Collection, Document


def asked(*texts: str, title: str = "Boat") -> list[set[str]]:
    """The values left out in each document."""
    told = [list(statements(Source(f"{title}{number}", text, ""))) for number, text in enumerate(texts)]
    return [{gap.value for gap in document} for document in gaps(told)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("It is organised by Piet Visser.", {"Piet Visser"}),
        ("Hamid Rezaei looks after it.", {"Hamid Rezaei"}),
        ("It was built by Harlow & Sons in 1997.", {"Harlow & Sons", "1997"}),
        ("The course is 2,250 m long.", {"2,250 m"}),
        ("A ticket costs €12 or 15 euros at the gate.", {"€12", "15 euros"}),
        ("The last service was on 26 April 2025.", {"26 April 2025"}),
        ("Rent is due on March 3, 2026 at 09:30.", {"March 3, 2026", "09:30"}),
        ("The University of Oslo lent it to Dr. Ida Noor.", {"University of Oslo", "Dr. Ida Noor"}),
        ("Dogs get it wet.", set()),  # a first word has its capital from where it stands
        ("它由诺德维克船厂于2009年5月2日建造。", {"诺德维克船厂", "2009年5月2日"}),
        ("航道长1250米，宽30米。", {"1250米", "30米"}),
        ("比赛在奥姆湖举行，李娜是裁判。", {"奥姆湖"}),
        ("王小明负责保养这艘船。", {"王小明"}),
    ],
)
def test_a_gap_takes_a_whole_value(text, values):
    assert asked(text, "Nothing of the kind stands here.")[0] == values


def test_what_every_document_says_alike_is_not_asked_for():
    texts = [f"Boat{n} is a boat of the Millbrook Rowing Club. It was built by {who}." for n, who in enumerate("ABBA")]
    texts = [text.replace("by A", "by Nordvik").replace("by B", "by Stampfer Yard") for text in texts]
    assert asked(*texts) == [{"Nordvik"}, {"Stampfer Yard"}, {"Stampfer Yard"}, {"Nordvik"}]
    assert asked(*("木舟属于米尔布鲁克划船俱乐部。" for _ in range(3))) == [set()] * 3


def test_a_document_without_names_and_numbers_is_asked_for_a_word_of_its_own():
    assert asked("the gate is guarded by a porter", "the gate is guarded by a gardener") == [{"porter"}, {"gardener"}]


@pytest.mark.parametrize(
    ("line", "unit"),
    [("Weight: {} kg", " kg"), ("重量：{}公斤", "公斤")],
)
def test_values_with_a_unit_are_added_subtracted_and_compared(line, unit):
    documents = [Document(f"Boot{number}", line.format(20 + 7 * number)) for number in range(12)]
    learnt, held_out = document_tasks("w", Collection(documents, "boats"), 1)
    tasks = learnt + held_out
    assert {"total", "difference", "compare"} <= {task.template for task in tasks}
    for task in tasks:
        left, right = (20 + 7 * int(one.removeprefix("Boot")) for one in (*task.setup["documents"], "Boot0")[:2])
        results = {"total": left + right, "difference": abs(left - right)}
        if (result := results.get(task.template)) is not None:
            assert wrong(task.answer, f"{result}{unit}", task.prompt) == ""
            assert wrong(task.answer, str(result), task.prompt) == ""
            assert wrong(task.answer, f"{result} euros", task.prompt) != ""
            sign = "+" if task.template == "total" else "-"
            assert task.setup["plan"][-1][0][1] == f"{max(left, right)} {sign} {min(left, right)}"


def test_facts_in_markdown_are_facts():
    documents = [
        Document(f"Tower{n}", f"# Tower{n}\n\n## How tall\n\n- **Height:** {90 + n} m\n- by [Ida](http://a.example)")
        for n in range(4)
    ]
    learnt, held_out = document_tasks("w", Collection(documents, "towers"), 1)
    assert {"lookup", "compare"} <= {task.template for task in learnt + held_out}
    assert not any(mark in task.prompt for task in learnt + held_out for mark in "*#[")


def test_values_of_different_units_are_not_added():
    documents = [Document(f"Boat{number}", f"Length: {7 + number} {'m' if number else 'ft'}") for number in range(2)]
    learnt, _ = document_tasks("w", Collection(documents, "boats"), 1)
    assert {task.template for task in learnt} == {"lookup"}
