"""What the world `research` promises: five tools over any provider, bounded and unable to reach what it must not."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from web_sites import page, serve

from loopback import Quiet, listening
from quintain.agents.oracle import OracleAgent
from quintain.agents.random import RandomAgent
from quintain.agents.silent import SilentAgent
from quintain.harness.faults import FaultPlan
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.errors import InfraError, InputError
from quintain.interface.tasks import Task
from quintain.worlds.research import Research
from quintain.worlds.research import files as files_module
from quintain.worlds.research.files import text_of
from quintain.worlds.research.grading import right
from quintain.worlds.research.providers import SearXNG, Serper
from quintain.worlds.research.reader import NetworkReader
from quintain.worlds.web.browser import Refused
from quintain.worlds.web.page import NoPage

HTML = {"Content-Type": "text/html"}
GB = "镇上的商店每天早上八点开门，茶叶的价格是三欧元，比去年便宜了一些。老板说，今年的收成很好。"


@contextmanager
def search_server(reply, status=200):
    """A server that answers every request with one JSON body; yields its address and what it was asked."""
    asked = []

    class Handler(Quiet):
        def do_GET(self):
            asked.append((self.path, parse_qs(urlsplit(self.path).query)))
            self.answer()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, body, self.headers["X-API-KEY"]))
            self.answer()

        def answer(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(reply if isinstance(reply, bytes) else json.dumps(reply).encode())

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}", asked


def test_searxng_is_asked_as_its_api_says_and_hits_without_address_are_left_out():
    found = [{"title": f"T{n}", "url": f"http://h/{n}", "content": "some  text"} for n in range(20)]
    with search_server({"results": [{"title": "no address"}, "odd", *found]}) as (url, asked):
        provider = SearXNG(url, NetworkReader())
        hits = provider.search("a b", 10)
        provider.scholar("paper", 3)
    assert [hit.title for hit in hits] == [f"T{n}" for n in range(10)]
    assert (hits[0].url, hits[0].snippet) == ("http://h/0", "some text")
    assert asked[0] == ("/search?q=a+b&format=json", {"q": ["a b"], "format": ["json"]})
    assert asked[1][1]["categories"] == ["science"]


def test_serper_is_asked_with_its_key_and_papers_show_year_and_citations(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "secret")
    paper = {"title": "P", "link": "http://h/p", "publicationInfo": "A, B", "year": 2020, "citedBy": 7, "snippet": "s"}
    with search_server({"organic": [paper]}) as (url, asked):
        provider = Serper(NetworkReader(), url, "TEST_KEY")
        assert provider.scholar("q", 10)[0].snippet == "A, B · 2020 · 7 · s"
        assert provider.search("q", 10)[0].url == "http://h/p"
    assert asked[0] == ("/scholar", {"q": "q", "num": 10}, "secret")
    assert asked[1][0] == "/search"
    with pytest.raises(InputError, match="set the environment variable NO_SUCH_KEY"):
        Serper(NetworkReader(), url, "NO_SUCH_KEY")


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        ({}, 403, "HTTP 403; check the key"),
        ({}, 500, "HTTPError"),
        (b"<html>", 200, "JSONDecodeError"),
        ([], 200, "no JSON object"),
    ],
)
def test_a_search_server_that_fails_is_an_infra_error_and_no_fault_of_the_agent(reply, status, reason):
    with search_server(reply, status) as (url, _), pytest.raises(InfraError, match=reason):
        SearXNG(url, NetworkReader()).search("q", 10)


async def test_one_call_asks_several_queries_and_blocked_hosts_are_neither_shown_nor_read():
    found = [{"title": "bad", "url": "https://datasets.huggingface.co/x", "content": ""}]
    found.append({"title": "good", "url": "http://h/1", "content": "yes"})
    with search_server({"results": found}) as (url, asked):
        world = Research("searxng", search_url=url)
        shown = world.search(["one", "two"])
        assert shown.count("good") == 2
        assert "bad" not in shown
        assert "is on a blocked host" in world.visit(["https://huggingface.co/y"], "goal")
        assert len(asked) == 2
        with pytest.raises(ValueError, match="give 1 to 5 texts"):
            world.search([])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://0.0.0.0/",
        "http://2130706433/",
        "file:///etc/passwd",
        "ftp://example.com/x",
        "nonsense",
        "http://",
    ],
)
def test_private_addresses_and_other_schemes_are_never_read(url):
    with serve({"/": (200, HTML, b"<p>secret")}) as port, pytest.raises(Refused):
        NetworkReader().page(url.format(port=port))


def test_a_redirect_to_a_private_address_is_refused():
    with serve({"/inner": (200, HTML, b"<p>secret")}) as inner:
        away = (302, {"Location": f"http://127.0.0.1:{inner}/inner"}, b"")
        with serve({"/": away}) as outer, pytest.raises(Refused, match="not on the public network"):
            NetworkReader(trusted=[f"127.0.0.1:{outer}"]).page(f"http://127.0.0.1:{outer}/")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, HTML, b""), "HTTP 404"),
        ((200, {"Content-Type": "image/png"}, b"x"), "is no page but image/png"),
        ((200, HTML, b"<p>a\0b"), "is binary"),
        ((302, {"Location": "/"}, b""), "more than 5 redirects"),
        ((302, {"Location": "http://[bad"}, b""), "can't be read: Invalid IPv6 URL"),
        ((200, {"Content-Type": "application/pdf"}, b"%PDF-1.4 broken"), "damaged"),
    ],
)
def test_what_is_no_page_is_refused_in_one_line(answer, reason):
    with serve({"/": answer}) as port, pytest.raises(Refused, match=reason):
        NetworkReader(trusted=[f"127.0.0.1:{port}"]).page(f"http://127.0.0.1:{port}/")


def test_visit_shows_the_passages_about_the_goal_their_links_and_hides_pages_with_the_canary():
    filler = "".join(
        f"<p>Paragraph {n} about nothing in particular, to fill the page with many words.</p>" * 3 for n in range(80)
    )
    body = page("Long", f'{filler}<p>The lighthouse keeper was <a href="/ana">Ana Velt</a>.</p>{filler}')
    pages = {"/": (200, HTML, body.encode()), "/leak": (200, HTML, b"<p>canary-123 the answer is 4")}
    with serve(pages) as port:
        home = f"http://127.0.0.1:{port}"
        world = Research("searxng", search_url="http://unused", trusted=[f"127.0.0.1:{port}"])
        world.reset(Task("t", "research", "?", {"canary": "canary-123"}))
        shown = world.visit([f"{home}/", f"{home}/leak", f"{home}/none"], "who was the lighthouse keeper?")
    assert "The lighthouse keeper was Ana Velt [1]." in shown
    assert f"[1] {home}/ana" in shown
    assert len(shown) < 5000
    assert "holds this benchmark's canary" in shown
    assert "the answer is 4" not in shown
    assert world.flagged == [f"{home}/leak"]


async def test_python_runs_in_the_sandbox_and_says_how_it_ended():
    world = Research()
    try:
        assert await world.python("print(6 * 7)") == "42"
        assert await world.python("x = 1") == "(nothing was printed; use print())"
        assert "exit 1" in await world.python("1 / 0")
    finally:
        await world.end_programs()


def office(kind):
    """A document of a kind with the line `tea | 3`, or `tea 3`."""
    out = io.BytesIO()
    if kind == ".docx":
        from docx import Document

        made = Document()
        table = made.add_table(1, 2)
        table.cell(0, 0).text, table.cell(0, 1).text = "tea", "3"
    elif kind == ".xlsx":
        from openpyxl import Workbook

        made = Workbook()
        made.active.append(["tea", 3])
    else:
        from pptx import Presentation
        from pptx.util import Inches

        made = Presentation()
        slide = made.slides.add_slide(made.slide_layouts[6])
        slide.shapes.add_textbox(0, 0, Inches(2), Inches(1)).text_frame.text = "tea | 3"
    made.save(out)
    return out.getvalue()


def pdf(text):
    """A PDF of one page, written by hand."""
    stream = f"BT /F1 12 Tf 50 100 Td ({text}) Tj ET".encode()
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        font,
    ]
    body, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Root 1 0 R /Size 6 >>\nstartxref\n%d\n%%%%EOF" % len(body)
    return body + b"xref\n0 6\n0000000000 65535 f \n" + table + end


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.docx", office(".docx"), "tea | 3"),
        ("a.xlsx", office(".xlsx"), "[sheet Sheet]\ntea | 3"),
        ("a.pptx", office(".pptx"), "[slide 1]\ntea | 3"),
        ("a.pdf", pdf("tea is 3"), "[page 1]\ntea is 3"),
        ("a.csv", b"tea;3\nmilk;1;extra\nsalt\n", "tea | 3\nmilk | 1 | extra\nsalt"),
        ("a.html", b"<p>tea <b>3</b>", "tea 3"),
        ("A.TXT", GB.encode("gb18030"), GB),
    ],
)
def test_files_of_each_kind_are_read(name, data, text):
    assert text_of(name, data) == text


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.docx", b"no zip", "damaged"),
        ("a.xlsx", office(".docx"), "damaged"),
        ("a.pdf", b"", "damaged"),
        ("a.exe", b"MZ", "not read"),
        ("a.csv", b"a\0b", "binary"),
        ("a.txt", b"  ", "no text"),
    ],
)
def test_files_that_can_not_be_read_are_refused_in_one_line(name, data, reason):
    with pytest.raises(NoPage, match=reason):
        text_of(name, data)


def test_a_file_that_unpacks_to_far_more_than_it_is_is_refused(monkeypatch):
    monkeypatch.setattr(files_module, "MAX_BYTES", 1_000_000)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(3_000_000))
    with pytest.raises(NoPage, match="unpacks to 3 MB > 1 MB allowed"):
        text_of("a.docx", out.getvalue())


def test_only_the_files_a_task_names_are_read(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text("tea,3")
    (folder / "b.csv").write_text("salt,9")
    (tmp_path / "secret.txt").write_text("secret")
    world = Research(files=str(folder))
    world.reset(Task("t", "research", "?", {"files": ["a.csv", "../secret.txt"]}))
    assert world.parse_file(["a.csv"]) == "a.csv:\ntea | 3"
    with pytest.raises(ValueError, match="has no file"):
        world.parse_file(["b.csv"])
    with pytest.raises(InfraError, match="not in the folder"):
        world.parse_file(["../secret.txt"])
    with pytest.raises(InputError, match="no folder"):
        Research(files=str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("42", "42"),
        ("1234.5", "$1,234.50"),
        ("Saint Petersburg", "saint petersburg."),
        ("seagull", "sea gull"),
        ("a, 2; c", "A, 2.0; C"),
        ("北京", "<answer>北京。</answer>"),
        ("x", "I think so. <answer>y</answer> No: <answer>x</answer>"),
    ],
)
def test_a_right_answer_is_right_by_rule(gold, answer):
    assert right(gold, answer)


@pytest.mark.parametrize(
    ("gold", "answer"),
    [("42", "42 or 43"), ("42", "about 42"), ("Paris", "Paris or Rome"), ("a, b", "a"), ("a, b", "b, a"), ("x", "")],
)
def test_a_guess_a_hedge_and_a_part_are_wrong_by_rule(gold, answer):
    assert not right(gold, answer)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_offline_gold_succeeds_and_silence_chance_and_memory_fail(language):
    tasks = Research.generate("eval", 26, 2, (language,), ())
    harness = Harness(Research, budget=Budget(turns=20, call_seconds=60))
    gold = await harness.rollout(tasks, OracleAgent(Research().solution, {task.id: task for task in tasks}))
    assert [one.verdict.reasons for one in gold if not one.success] == []
    for agent in (SilentAgent(), RandomAgent()):
        assert not any(one.success for one in await harness.rollout(tasks, agent))
    for task in tasks:
        *_, answer = list(Research().solution(task))
        episode = await harness.run(task, OracleAgent(lambda _, last=answer: iter([last]), {task.id: task}))
        assert "in this episode" in episode.verdict.reasons[0]


async def test_faults_strike_calls_and_break_no_episode_and_a_branch_remembers_what_was_visited(tmp_path):
    tasks = Research.generate("eval", 8, 2, ("en", "zh"), ())
    room = Budget(turns=20, call_seconds=60)
    oracle = OracleAgent(Research().solution, {task.id: task for task in tasks})
    struck = await Harness(
        Research, budget=room, faults=FaultPlan(episodes=1.0, rate=1.0, kinds={"server_error": 1.0}, permanent=0.0)
    ).rollout(tasks, oracle)
    assert {str(one.outcome) for one in struck} == {"answered"}
    assert all(any(seen.fault for turn in one.turns for seen in turn.observations) for one in struck)
    journal = Journal(tmp_path)
    harness = Harness(Research, budget=room, journal=journal)
    first = await harness.run(tasks[0], oracle)
    last = len(first.turns) - 1
    again = await harness.branch(first, last, tasks[0], oracle, state=journal.state_at(first.id, last), name="b")
    assert (first.success, again.success) == (True, True)


def test_a_provider_that_is_unknown_or_has_no_address_is_one_clear_line():
    for options, reason in (
        ({"provider": "google"}, "allowed are offline, searxng, serper"),
        ({"provider": "searxng"}, "needs `search_url`"),
        ({"provider": "serper", "key": "NO_SUCH_KEY"}, "set the environment variable"),
        ({"site": "/no/such/folder"}, "site not found"),
    ):
        with pytest.raises(InputError, match=reason):
            Research(**options)
