"""The scan finds leaks in text that is really there, and takes siblings of a template for what they are."""

from __future__ import annotations

import pydoc_data.topics as manual
import unicodedata

import pytest

from quintain.curation.contamination import Item, Scanner
from quintain.curation.leak_index import LeakIndex
from quintain.curation.pools import Manifest, prompt_hash
from quintain.interface.tasks import Task
from quintain.worlds.desk.tasks import generate

PROMPT = (
    "A grocer in Lyon sells 14 crates of apricots on Monday and twice as many on Tuesday. "
    "Each crate holds 36 apricots and costs 9 euros. How much money did she take in both days together?"
)
CHINESE = (
    "里昂的一位水果商星期一卖出14箱杏子，星期二卖出的是它的两倍。每箱装36个杏子，售价9欧元。她两天一共收入多少钱？"
)
POOL = [
    Task("grocer", "shop", PROMPT, answer="378"),
    Task("grocer-zh", "shop", CHINESE, answer="378"),
    Task("other", "shop", "Which of the three bridges over the Saone in Lyon is the oldest one, and who had it built?"),
]
MANUAL = "\n".join(manual.topics.values())


def scan(text: str, pool: list[Task] = POOL, siblings: list[Task] | None = None) -> dict[str, str]:
    """Reasons by the task that is given away by one item."""
    scanner = Scanner(LeakIndex({"eval": pool}, siblings or []))
    return {one.task: one.reason for one in scanner.scan([Item("here", text)])}


def inside(text: str) -> str:
    return f"{MANUAL[:5000]} {text} {MANUAL[5000:9000]}"


@pytest.mark.parametrize(
    ("leak", "task"),
    [
        (PROMPT, "grocer"),
        (PROMPT.upper().replace(" ", "  "), "grocer"),
        (PROMPT.replace("14", "25").replace("36", "1,250").replace("9", "8.5"), "grocer"),
        (PROMPT[: len(PROMPT) * 6 // 10], "grocer"),
        (PROMPT[len(PROMPT) * 4 // 10 :], "grocer"),
        (" ".join(reversed(PROMPT.split(". "))), "grocer"),
        (CHINESE, "grocer-zh"),
        (CHINESE.replace("14", "25").replace("36", "50"), "grocer-zh"),
        (CHINESE[: len(CHINESE) * 6 // 10], "grocer-zh"),
        ("。".join(reversed(CHINESE.split("。"))), "grocer-zh"),
    ],
    ids=["verbatim", "case", "numbers", "start", "end", "order", "zh", "zh numbers", "zh start", "zh order"],
)
def test_a_leak_inside_a_manual_is_found_and_names_its_task(leak, task):
    assert list(scan(inside(leak))) == [task]


def test_a_manual_without_a_leak_is_clean():
    assert scan(MANUAL) == {}


def test_a_finding_shows_both_texts_side_by_side():
    (found,) = Scanner(LeakIndex({"eval": POOL})).scan([Item("notes.txt:1", inside(PROMPT))])
    assert (found.where, found.pool, found.field, found.original) == ("notes.txt:1", "eval", "prompt", PROMPT)
    assert PROMPT in found.found
    assert len(found.found) < 2 * len(PROMPT)
    assert found.share == pytest.approx(1.0)


def test_thirteen_words_in_a_row_are_enough():
    words = PROMPT.split()
    assert scan(inside(" ".join(words[5:18]))) == {"grocer": "verbatim run"}
    assert scan(inside(" ".join(words[5:10]))) == {}


def test_the_words_alone_are_not_enough():
    shuffled = " ".join(sorted(PROMPT.split()))
    assert scan(inside(shuffled)) == {}


def test_a_prompt_too_short_for_runs_is_found_as_a_whole_item():
    pool = [Task(f"sum-{n}", "counter", f"{n} + 1?") for n in range(40)]
    assert scan(" 17 +  1? ", pool) == {"sum-17": "same text"}
    assert scan("170 + 1?", pool) == {}


def test_a_long_answer_is_a_leak_too_but_a_short_fact_is_not():
    sheet = "First multiply the crates of both days, then the price of a crate with their number, and add nothing more."
    pool = [Task("a", "shop", "How much?", answer={"said": sheet, "number": "378 euros"})]
    assert scan(inside(sheet), pool) == {"a": "verbatim run"}
    assert scan(inside("378 euros"), pool) == {}


CANARY = "quintain-canary-0f3a" + 7 * "9b1c"


@pytest.mark.parametrize(
    "text",
    [
        f"tags: {CANARY}.",
        f"\\n{CANARY}\\n",
        CANARY.upper(),
        CANARY.replace("-", "_"),
        CANARY.replace("-", " - "),
        f"{CANARY[:30]}\n    {CANARY[30:]}",
    ],
)
def test_a_canary_is_found_wherever_it_stands_and_however_it_is_spelled(text):
    sealed = Manifest(name="eval", world="shop", tasks=0, digest="", canary=CANARY)
    scanner = Scanner(LeakIndex({}), [sealed])
    (found,) = scanner.scan([Item("x", "a"), Item("y", text)])
    assert (found.where, found.pool, found.reason) == ("y", "eval", "canary")


def test_the_canary_of_a_pool_that_nobody_named_is_found_too_but_no_text_about_canaries():
    (found,) = Scanner(LeakIndex({})).scan([Item("x", "canaries begin with quintain-canary-"), Item("y", CANARY)])
    assert (found.where, found.pool, found.original) == ("y", "", CANARY)


@pytest.mark.parametrize("form", ["NFD", "NFKD"])
def test_a_prompt_written_with_other_code_points_is_the_same_text(form):
    task = Task("cafe", "shop", "Où est le café n° ２ ?", answer="x")
    (found,) = Scanner(LeakIndex({"eval": [task]})).scan([Item("x", unicodedata.normalize(form, task.prompt))])
    assert (found.task, found.reason) == ("cafe", "same text")
    sealed = Manifest(name="s", world="shop", tasks=1, digest="", prompts=frozenset([prompt_hash("", task.prompt)]))
    assert sealed.owns(unicodedata.normalize(form, task.prompt))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_training_tasks_of_the_same_templates_are_no_leaks(language):
    pool, training = generate("eval", 60, 7, [language]), generate("train", 150, 1, [language])
    scanner = Scanner(LeakIndex({"eval": pool}, training))
    assert list(scanner.scan(Item(task.id, task.prompt) for task in training)) == []
    found = {one.task for one in scanner.scan(Item(task.id, inside(task.prompt)) for task in pool)}
    assert len(found) >= 0.95 * len(pool)


def test_a_document_about_a_tasks_subject_is_no_leak():
    pool = generate("eval", 24, 7, ["zh"])
    assert scan("阿尔巴尼亚的首都是地拉那。人口二百多万。", pool) == {}


def test_a_stream_is_read_as_it_comes_and_findings_keep_its_order():
    read: list[int] = []

    def stream():
        for number in range(400):
            read.append(number)
            yield Item(str(number), inside(PROMPT) if number in (0, 399) else MANUAL[:9000])

    findings = Scanner(LeakIndex({"eval": POOL})).scan(stream())
    assert next(findings).where == "0"
    assert len(read) < 100
    assert [one.where for one in findings] == ["399"]


def test_no_pool_finds_nothing():
    assert scan(PROMPT, []) == {}


ASKED = {
    "en": ("What is the currency of Palau?", "What is the capital of Chad?", "What is the currency of Nepal?"),
    "zh": ("帕劳的货币是什么？", "乍得的首都是什么？", "尼泊尔的货币是什么？"),
}
TRAINED = {
    "en": [
        f"What is the {what} of {of}?" for what in ("currency", "capital") for of in ("Peru", "Oman", "Togo", "Fiji")
    ],
    "zh": [f"{of}的{what}是什么？" for what in ("货币", "首都") for of in ("秘鲁", "阿曼", "多哥", "斐济")],
}


def short(language: str, text: str) -> dict[str, str]:
    pool, siblings = (
        [Task(f"{name}-{n}", "desk", one, template="fact", cluster=one) for n, one in enumerate(asked)]
        for name, asked in (("eval", ASKED[language]), ("train", TRAINED[language]))
    )
    return scan(inside(text), pool, siblings)


@pytest.mark.parametrize(
    ("language", "leak"),
    [
        ("en", "of Palau? What is the currency"),
        ("en", "Palau? the currency of What is"),
        ("zh", "是什么？帕劳的货币"),
        ("zh", "劳的货币是什么？帕"),
    ],
)
def test_a_short_question_is_found_in_any_order_of_its_pieces(language, leak):
    assert short(language, leak) == {"eval-0": "overlap"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the currency of Palau?", {"eval-0": "verbatim run"}),
        ("the currency of Palau is the US Dollar.", {}),
        ("of Palau?", {}),
        ("What is the currency", {}),
        ("What is the currency of Peru?", {}),
        ("The currency: US Dollar. What Palau is, the rest of us know.", {}),
    ],
)
def test_a_question_cut_short_is_found_by_its_names_and_its_end_but_the_fact_is_none(text, found):
    assert short("en", text) == found


def test_what_could_begin_a_statement_is_not_taken_for_a_question():
    assert short("zh", "帕劳的货币是美元。") == {}
    assert short("zh", "帕劳的货币") == {}


def test_a_question_of_three_words_is_found_as_a_whole_item_only():
    pool = [Task("who", "desk", "Who is Bo?")]
    assert scan(inside("Who is Bo?"), pool) == {}
    assert scan("Who is Bo?", pool) == {"who": "same text"}


def gaps(*documents: str, builders: tuple[str, ...] = ("Millbrook Yard", "Nordvik")) -> list[Task]:
    asked = [
        f'In the document "{one}", what stands at the gap? It was built by {builders[at % len(builders)]} in ___.'
        for at, one in enumerate(documents)
    ]
    return [
        Task(f"gap-{one}", "boats", text, template="gap", cluster=one)
        for one, text in zip(documents, asked, strict=True)
    ]


def test_few_measured_tasks_learn_from_training_what_their_templates_wording_is():
    pool, training = gaps("Osprey", "Razorbill"), gaps("Kestrel", "Curlew", "Heron", "Turnstone", "Petrel")
    scanner = Scanner(LeakIndex({"eval": pool}, training))
    assert list(scanner.scan(Item(task.id, task.prompt) for task in training)) == []
    assert list(scan(inside(pool[0].prompt), pool, training)) == ["gap-Osprey"]
    assert list(scan(inside(pool[0].prompt[:70]), pool, training)) == ["gap-Osprey"]


def test_a_sibling_in_a_rare_wording_is_not_taken_for_the_task():
    def tasks(asked: str, *documents: str) -> list[Task]:
        texts = [asked.format(one) for one in documents]
        return [Task(text, "boats", text, template="lookup", cluster=text[-6:]) for text in texts]

    rare = "Which value do the sources give for the length in cm of {}?"
    pool, training = tasks(rare, "Gannet"), tasks(rare, "Puffin")
    training += tasks("Which value do the sources give for the seats of {}?", "Petrel", "Dunlin", "Curlew", "Turnstone")
    training += tasks("What is the length in cm of {}?", "Osprey", "Heron", "Plover", "Redshank")
    assert scan(training[0].prompt, pool, training) == {}
    assert list(scan(inside(pool[0].prompt), pool, training)) == [pool[0].id]


def sums(*pairs: tuple[int, int]) -> list[Task]:
    return [
        Task(f"sum-{a}-{b}", "sums", f"Call the tool `add` with a = {a}, b = {b}.", template="call", cluster=f"{a},{b}")
        for a, b in pairs
    ]


def test_numbers_count_where_they_alone_tell_the_tasks_of_a_template_apart():
    pool, training = sums((3, 5), (12, 7)), sums((5, 3), (3, 7), (12, 5), (8, 8))
    scanner = Scanner(LeakIndex({"eval": pool}, training))
    assert list(scanner.scan(Item(task.id, task.prompt) for task in training)) == []
    for task in pool:
        assert list(scan(inside(task.prompt), pool, training)) == [task.id]
    # of a single such task nothing says that other numbers make another task
    assert list(scan(inside(training[0].prompt), pool[:1])) == ["sum-3-5"]
