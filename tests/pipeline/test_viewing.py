"""The local page of a run's episodes: what it finds, what it shows, what it keeps of a person's judgement."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from quintain.cli.main import main
from quintain.curation.review import CORRECTIONS, REVIEW, read_review
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError
from quintain.interface.reading import JOURNAL
from quintain.interface.tools import Toolset
from quintain.synthesis.corrections import read_corrections
from quintain.viewing.app import ROWS, Viewer, make_app
from quintain.viewing.index import Index, Query


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished run: 4 and 8 measured episodes, 12 that were trained on."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def page(run: Path) -> Iterator[TestClient]:
    """A client of the page of that run."""
    index = Index(run, {})
    yield TestClient(make_app(Viewer(index)), base_url="http://127.0.0.1")
    index.close()


def keys(page: TestClient, **asked: str) -> list[int]:
    return [row["key"] for row in page.get("/episodes", params=asked).json()["rows"]]


def demo(page: TestClient) -> dict[str, Any]:
    """The row of the first episode that was trained on."""
    return page.get("/episodes", params={"stage": "demos"}).json()["rows"][0]


def test_every_finished_episode_is_listed_the_latest_stage_first(page):
    reply = page.get("/episodes").json()
    assert reply["total"] == 24
    assert [row["stage"] for row in reply["rows"]] == ["tuned"] * 8 + ["demos"] * 12 + ["base"] * 4
    assert reply["facets"]["stage"] == {"base": 4, "demos": 12, "tuned": 8}
    assert reply["facets"]["flag"] == {"": 24}


def test_words_are_found_wherever_they_stand_and_filters_narrow_further(page):
    assert len(keys(page, words="ADD 7")) == len(keys(page, words="add 7")) > 0
    found = page.get("/episodes", params={"words": '"a":7'}).json()
    assert [row["id"] for row in found["rows"]] == ["train-7#0"], "in the arguments of a call"
    assert keys(page, words="train-7", stage="base") == []
    assert keys(page, words="no such word") == []
    assert page.get("/episodes", params={"result": "success"}).json()["facets"]["result"]["success"] == 12, (
        "others stay"
    )


def test_an_episode_is_read_from_among_others_that_ran_beside_it(page, run):
    kept = {one.id: one for one in read_journal(run / "demos" / "journal")[0]}
    for key in keys(page, stage="demos"):
        shown = page.get(f"/episodes/{key}").json()["episode"]
        assert shown["turns"][-1]["answer"] == kept[shown["id"]].answer


def test_tokens_are_marked_as_training_saw_them(page):
    reply = page.get(f"/episodes/{demo(page)['key']}").json()
    assert reply["episode"]["source"] == "training"
    (segment,) = reply["episode"]["segments"]
    texts = [reply["vocabulary"][index] for index in segment["tokens"]]
    marked = ["".join(texts[start:stop]) for start, stop, mark in segment["marks"] if mark == "loss"]
    assert [one.startswith("<call>add") for one in marked] == [True, False]


def test_the_sheet_of_every_evaluation_is_a_list_of_its_own_that_says_how_many_are_judged(page, run):
    assert page.get("/spot-checks").json() == [
        {"stage": "tuned", "episodes": 8, "reviewed": 0},
        {"stage": "base", "episodes": 4, "reviewed": 0},
    ]
    rows = page.get("/episodes", params={"stage": "base", "spot_check": "sheet"}).json()["rows"]
    headings = re.findall(r"^## (\S+):", (run / "base" / "sheet.md").read_text(), re.MULTILINE)
    assert sorted(row["id"] for row in rows) == sorted(headings)
    for row, flag in zip(rows, ("keep", "flag", ""), strict=False):
        said = {"stage": "base", "episode": row["id"], "flag": flag}
        assert page.post(f"/episodes/{row['key']}/flag", json=said).status_code == 200
    assert page.get("/spot-checks").json()[1] == {"stage": "base", "episodes": 4, "reviewed": 2}


def test_a_judgement_is_kept_shown_and_read_again(page, run):
    row = demo(page)
    said = {"stage": row["stage"], "episode": row["id"], "flag": "flag", "remark": "wrong 法"}
    assert page.post(f"/episodes/{row['key']}/flag", json=said).status_code == 200
    assert keys(page, flag="flag") == [row["key"]]
    found = read_review(run)
    assert found["demos", row["id"]].remark == "wrong 法"
    again = Index(run, {place: one.flag for place, one in found.items()})
    assert again.count(Query(facets=(("flag", "flag"),))) == 1
    again.close()
    page.post(f"/episodes/{row['key']}/flag", json={**said, "flag": ""})
    assert keys(page, flag="flag") == []
    assert len((run / REVIEW).read_text().splitlines()) == 2, "nothing is written over"


def test_a_correction_comes_in_by_the_door_of_a_recover_stage(page, run):
    from counter import Counter

    row = demo(page)
    written = {
        "episode": row["id"],
        "turn": 1,
        "thought": "Look again.",
        "calls": [{"tool": "add", "arguments": {"a": 1, "b": 2}}],
    }
    assert page.post(f"/episodes/{row['key']}/correction", json=written).status_code == 200
    episodes = read_journal(run / "demos" / "journal")[0]
    (point,) = read_corrections(run / CORRECTIONS, episodes, lambda world: Toolset.of(Counter), "demos")
    assert list(read_corrections(run / CORRECTIONS, episodes, lambda world: Toolset.of(Counter), "own")) == []
    assert (point.episode.id, point.turns) == (row["id"], 1)


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("correction", {"turn": 0, "calls": [{"tool": "sub", "arguments": {}}]}, "no tool named 'sub'"),
        ("correction", {"turn": 9, "answer": "4"}, "turns 0 to 1, not 9"),
        ("correction", {"turn": 0}, "either `calls` or an `answer`"),
        ("flag", {"stage": "demos", "flag": "burn"}, "keep"),
        ("flag", {"stage": "base", "flag": "keep"}, "but the key is that of demos"),
    ],
)
def test_a_wrong_judgement_is_refused_in_one_line_and_nothing_is_written(page, run, path, body, text):
    row = demo(page)
    reply = page.post(f"/episodes/{row['key']}/{path}", json={"episode": row["id"], **body})
    assert reply.status_code == 400
    assert text in reply.json()["error"]
    assert not (run / REVIEW).exists()
    assert not (run / CORRECTIONS).exists()


def test_no_other_page_can_write_through_a_browser(page):
    row = demo(page)
    said = json.dumps({"stage": row["stage"], "episode": row["id"], "flag": "keep"})
    plain = page.post(f"/episodes/{row['key']}/flag", content=said, headers={"Content-Type": "text/plain"})
    assert plain.status_code == 415
    assert page.get("/", headers={"Host": "rebound.example"}).status_code == 400
    policy = page.get("/").text
    assert "default-src &#39;none&#39;" in policy or "default-src 'none'" in policy


def test_what_fits_can_be_saved_as_one_file_that_needs_no_server(page):
    text = page.get("/episodes.html", params={"stage": "demos", "words": '"a":7'}).text
    embedded = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    assert [one["id"] for one in embedded["trajectories"]] == ["train-7#0"]
    assert "src=" not in text.split("<body>")[0]


@pytest.mark.parametrize("asked", ["/episodes/99999", "/episodes?first=x"])
def test_a_wrong_address_is_one_line(page, asked):
    reply = page.get(asked)
    assert reply.status_code == 400
    assert reply.json()["error"]


@pytest.mark.parametrize("copies", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_list_of_thousands_is_fetched_stretch_by_stretch(run, copies):
    path = run / "base" / JOURNAL
    lines = path.read_text(encoding="utf-8")
    identity = json.loads(lines.splitlines()[0])["episode"]
    with path.open("a", encoding="utf-8") as file:
        for number in range(copies):
            file.writelines(
                line.replace(f'"{identity}"', f'"copy-{number}#0"') + "\n"
                for line in lines.splitlines()
                if json.loads(line)["episode"] == identity
            )
    index = Index(run, {})
    query = Query(facets=(("stage", "base"),))
    assert index.count(query) == copies + 4
    stretches = [index.page(query, first, ROWS) for first in range(0, copies + 4, ROWS)]
    assert [len(one) for one in stretches] == [100] * (copies // 100) + [4]
    assert index.episode(stretches[-1][-1]["key"])[1].id == f"copy-{copies - 1}#0"
    index.close()


def test_a_run_without_episodes_is_one_line(run, capsys):
    for stage in ("base", "demos", "tuned"):
        (run / stage / JOURNAL).write_text("")
    assert main(["view", str(run), "--port", "0"]) == 2
    error = capsys.readouterr().err
    assert "no stage has a finished episode yet" in error
    assert error.count("\n") == 1


def test_a_damaged_review_names_its_line(run):
    (run / REVIEW).write_text('{"stage": "demos", "episode": "x", "flag": "keep"}\n{"flag": 1}\n')
    with pytest.raises(InputError, match=r"review.jsonl:2"):
        read_review(run)


# The page in a browser.

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
in_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium and chromedriver are not installed")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--window-size=1280,1000",
)


@pytest.fixture
def browser(run: Path, tmp_path: Path) -> Iterator[webdriver.Chrome]:
    """A headless browser on the page of the run, served for real."""
    import uvicorn

    from quintain.serving.server import listen

    index, listening = Index(run, {}), listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(Viewer(index)), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.get(f"http://127.0.0.1:{listening.getsockname()[1]}/")
    yield driver
    driver.quit()
    server.should_exit = True
    thread.join()
    index.close()


def wait(browser: webdriver.Chrome, selector: str, text: str = "") -> Any:
    def there(driver: webdriver.Chrome) -> Any:
        return next((one for one in driver.find_elements(By.CSS_SELECTOR, selector) if text in one.text), None)

    redrawn = [StaleElementReferenceException]  # by the page, between the search and the look
    return WebDriverWait(browser, 30, ignored_exceptions=redrawn).until(there, f"{selector} with {text!r}")


def keyed(browser: webdriver.Chrome, *pressed: str) -> None:
    for key in pressed:
        browser.switch_to.active_element.send_keys(key)


@in_browser
def test_a_person_searches_judges_and_corrects_with_the_keyboard(browser, run):
    wait(browser, "#found", "24 found")
    keyed(browser, "/", '"a":7')
    wait(browser, "#found", "1 found")
    wait(browser, "#episode h3", "train-7#0")
    browser.find_element(By.ID, "episodes").send_keys("f")
    wait(browser, "#said", "train-7#0: flagged")
    wait(browser, "[data-flag=flag][aria-pressed=true]")
    assert read_review(run)["demos", "train-7#0"].flag == "flag"
    browser.find_element(By.CSS_SELECTOR, ".fix summary").click()
    browser.find_element(By.CSS_SELECTOR, ".fix button").click()
    wait(browser, "#said", "correction saved")
    assert json.loads((run / CORRECTIONS).read_text())["calls"] == [{"tool": "add", "arguments": {"a": 7, "b": 1}}]
    box = browser.find_element(By.CSS_SELECTOR, ".fix textarea")
    box.clear()
    box.send_keys("{")
    browser.find_element(By.CSS_SELECTOR, ".fix button").click()
    wait(browser, "#said.bad", "not valid JSON")
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


@in_browser
def test_a_spot_check_is_gone_through_with_one_key_an_episode(browser, run):
    wait(browser, "[data-queue=base]", "Spot check of base: 4 episodes, 0 reviewed").click()
    wait(browser, "#found", "4 found")
    wait(browser, "[data-queue=base][aria-pressed=true]")
    for number, key in enumerate("kfk", 1):
        chosen = browser.find_element(By.CSS_SELECTOR, "li[aria-selected=true]").get_attribute("id")
        keyed(browser, key)
        wait(browser, "[data-queue=base]", f"{number} reviewed")
        wait(browser, f"li[aria-selected=true]:not(#{chosen})")
    assert [one.flag for one in read_review(run).values()] == ["keep", "flag", "keep"]
    keyed(browser, "c")
    box = wait(browser, ".fix[open] textarea:focus")
    box.clear()
    box.send_keys('{"answer": "5"}', Keys.CONTROL, Keys.ENTER)
    wait(browser, "#said", "correction saved")
    assert json.loads((run / CORRECTIONS).read_text())["answer"] == "5"
    wait(browser, "[data-queue=base]").click()
    wait(browser, "#found", "24 found")
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


@in_browser
def test_two_episodes_of_a_task_stand_beside_each_other_and_tokens_are_marked(browser):
    wait(browser, "#found", "24 found")
    wait(browser, "[data-view=compare]").click()
    wait(browser, ".pair h4", "tuned")
    wait(browser, "#other option", "base").click()
    wait(browser, ".pair h4", "base")
    assert browser.find_elements(By.CSS_SELECTOR, ".pair .differs, .pair .same")
    browser.find_element(By.ID, "search").send_keys("train-7")
    wait(browser, "#episode h3", "train-7#0")
    wait(browser, "[data-view=tokens]").click()
    wait(browser, "mark.loss")


@in_browser
def test_light_and_dark_both_stand_out_from_their_ground(browser):
    wait(browser, "#episode h3")
    grounds = []
    for _ in range(2):
        browser.find_element(By.ID, "theme").click()
        grounds.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(set(grounds)) == 2
