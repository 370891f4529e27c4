"""report.html in a real browser: what a person sees, with the keyboard alone, in light and dark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
import report_run
from test_recovery import EPISODES as STRUCK

from quintain.evaluation.report import ReportData, StageReport, write_report
from quintain.evaluation.summary import summarise

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="Chromium and chromedriver are not installed (apt-get install chromium-driver)"
)

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,1000"),
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of the reports."""
    folder = tmp_path_factory.mktemp("reports")
    unscored = StageReport("base", "base", summarise([report_run.episode("a", None)], 1), [{"step": 1, "loss": None}])
    runs = {
        "demo": report_run.demo_run(),
        "held_out": report_run.held_out_run(),
        "ten": report_run.ten_stages(),
        "empty": ReportData("Empty run"),
        "grpo": ReportData("GRPO", stages=[StageReport("rl", "grpo", metrics=report_run.monitors(20))]),
        "unscored": ReportData("Unscored", stages=[unscored]),
        "struck": ReportData("Struck", stages=[StageReport("tuned", "eval", summarise(STRUCK, 6))]),
    }
    return {name: write_report(folder / name, run)[1].as_uri() for name, run in runs.items()}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One headless browser with a fresh profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def open_page(browser: webdriver.Chrome, address: str) -> None:
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)
    # Curves are drawn once their place has a width, which a loaded machine may say some frames after the load.
    browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


def requests(browser: webdriver.Chrome) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]


def type_keys(browser: webdriver.Chrome, *keys: str) -> None:
    """Sends keys to whatever has the focus, as a person without a mouse does."""
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def detail(browser: webdriver.Chrome) -> str:
    return str(browser.find_element(By.ID, "episode").text)


@pytest.mark.parametrize("name", ["demo", "held_out", "ten", "empty", "unscored", "grpo"])
def test_page_opens_without_console_errors_or_requests_to_anywhere(
    browser: webdriver.Chrome, pages: dict[str, str], name: str
) -> None:
    open_page(browser, pages[name])
    browser.execute_script("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.find_element(By.TAG_NAME, "h1").text
    assert browser.get_log("browser") == []
    outside = [url for url in requests(browser) if not url.startswith(("data:", "blob:"))]
    assert outside == [pages[name]]


def test_result_shows_before_and_after_with_intervals(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    evaluation = report_run.demo_run().stages[-1].evaluation
    assert evaluation is not None
    assert evaluation.pass1 is not None
    hero = browser.find_element(By.CLASS_NAME, "hero")
    assert f"{evaluation.pass1.value:.2f}" in hero.find_element(By.CLASS_NAME, "big").text
    assert f"[{evaluation.pass1.low:.2f}, {evaluation.pass1.high:.2f}]" in hero.text
    assert "Paired difference" in hero.text
    assert len(hero.find_elements(By.CSS_SELECTOR, "svg circle")) == 2


def test_result_never_sets_stages_side_by_side_that_were_measured_on_different_tasks(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    open_page(browser, pages["held_out"])
    hero = browser.find_element(By.CLASS_NAME, "hero")
    assert hero.find_element(By.CLASS_NAME, "label").text == "pass@1, base to sft"
    assert "Paired difference" in hero.text
    assert len(hero.find_elements(By.CSS_SELECTOR, "svg circle")) == 3
    assert "…" not in hero.text, "the quickstart's names fit"
    open_page(browser, pages["ten"])  # nothing says that its stages share tasks
    assert browser.find_element(By.CSS_SELECTOR, ".hero .label").text == "pass@1, stage-9-with-a-long-name"


def test_loss_curve_outcomes_and_tables_are_drawn(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    curve = browser.find_element(By.CSS_SELECTOR, "#training svg .line").get_attribute("d")
    assert curve.count("L") == 95
    assert len(browser.find_elements(By.CSS_SELECTOR, "#success .track")) == 2
    for words in ("By template", "By language", "两国面积之和", "held out"):
        assert words in browser.find_element(By.ID, "success").text
    assert "Tool calls per success" in browser.find_element(By.ID, "cost").text


def test_success_and_every_monitor_of_reinforcement_learning_are_drawn(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    """Also those that only some steps have: 4 validations are 3 lines, 19 losses are 18."""
    open_page(browser, pages["grpo"])
    training = browser.find_element(By.ID, "training")
    assert training.find_element(By.TAG_NAME, "h3").text == "rl: success"
    names = [label.text for label in training.find_elements(By.CSS_SELECTOR, ".grid .label")]
    curves = [line.get_attribute("d") for line in training.find_elements(By.CSS_SELECTOR, "svg .line")]
    lines = dict(zip(["success", *names], (curve.count("L") for curve in curves), strict=True))
    assert lines == {"success": 19, "reward_spread": 19, "loss": 18, "validation_success": 3}


def test_arrow_keys_read_the_loss_curve(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    browser.execute_script("document.querySelector('#training svg').focus()")
    type_keys(browser, Keys.HOME, Keys.ARROW_RIGHT)
    assert browser.find_element(By.CSS_SELECTOR, "#training output").text.startswith("step 2 · loss ")


def test_ten_stages_all_appear(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["ten"])
    assert len(browser.find_elements(By.CSS_SELECTOR, ".hero svg circle")) == 10
    assert len(browser.find_elements(By.CSS_SELECTOR, "#success .track")) == 10


def test_a_trajectory_is_found_and_read_by_keyboard_alone(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    type_keys(browser, "/")
    assert browser.switch_to.active_element.get_attribute("id") == "search"
    type_keys(browser, "calculate")
    shown = browser.find_elements(By.CSS_SELECTOR, "#episodes li")
    assert 0 < len(shown) < 200
    browser.execute_script("document.getElementById('filter-stage').focus()")
    type_keys(browser, "sft", Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    assert browser.switch_to.active_element.get_attribute("id") == "episodes"
    type_keys(browser, Keys.END, Keys.ARROW_UP, Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "episode"
    chosen = browser.find_element(By.CSS_SELECTOR, "#episodes li[aria-selected=true]")
    assert "sft" in chosen.text
    assert "calculate" in detail(browser)
    assert "error: exception" in detail(browser)
    type_keys(browser, Keys.ESCAPE)
    assert browser.switch_to.active_element.get_attribute("id") == "episodes"


def test_filters_combine_and_say_how_many_are_left(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    for name, value in (("stage", "base"), ("outcome", "limit(format_errors)")):
        browser.find_element(By.CSS_SELECTOR, f"#filter-{name} option[value='{value}']").click()
    items = browser.find_elements(By.CSS_SELECTOR, "#episodes li")
    assert items
    assert all("base" in item.text for item in items)
    assert f"{len(items)} shown" in browser.find_element(By.CSS_SELECTOR, "#trajectories .tools").text
    browser.find_element(By.ID, "search").send_keys("no such word anywhere")
    assert "No trajectory fits" in detail(browser)


def test_tokens_that_carry_loss_are_marked_and_visible(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    browser.find_element(By.CSS_SELECTOR, "#filter-result option[value='success']").click()
    browser.execute_script("document.querySelector('[data-view=tokens]').focus()")
    type_keys(browser, Keys.ENTER)
    marked = browser.find_elements(By.CSS_SELECTOR, ".tokens mark.loss")
    turns = browser.find_elements(By.CSS_SELECTOR, "#episodes li[aria-selected=true] .meta")[0].text.split(" · ")[-1]
    assert f"{len(marked)} turns" == turns
    assert all(one.is_displayed() for one in marked)
    plain, loss = (
        browser.find_element(By.CSS_SELECTOR, place).value_of_css_property("background-color")
        for place in (".tokens > span", ".tokens mark.loss")
    )
    assert plain != loss


def test_what_models_and_documents_write_cannot_run(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    browser.find_element(By.ID, "search").send_keys("hostile")
    assert "</script><script>window.hacked" in detail(browser)
    browser.execute_script("document.querySelector('[data-view=tokens]').click()")
    assert "onerror=" in detail(browser)
    for summary in browser.find_elements(By.CSS_SELECTOR, "#check details"):
        browser.execute_script("arguments[0].open = true", summary)
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 2


def test_the_policy_stops_a_script_even_if_it_got_into_the_page(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    open_page(browser, pages["demo"])
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.hacked = 3'; document.body.append(s)"
    )
    assert browser.execute_script("return window.hacked") is None


def brightness(browser: webdriver.Chrome, selector: str, name: str) -> float:
    color = browser.find_element(By.CSS_SELECTOR, selector).value_of_css_property(name)
    return sum(map(float, color[color.index("(") + 1 : -1].split(",")[:3])) / 3


def test_page_follows_the_system_to_dark_and_the_button_switches(
    browser: webdriver.Chrome, pages: dict[str, str]
) -> None:
    for scheme, is_dark in (("light", False), ("dark", True)):
        emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
        open_page(browser, pages["demo"])
        assert (brightness(browser, "body", "background-color") < 60) is is_dark
        assert (brightness(browser, "body", "color") > 200) is is_dark
        browser.find_element(By.ID, "theme").click()
        assert (brightness(browser, "body", "background-color") < 60) is not is_dark
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_spot_check_counts_what_was_read(browser: webdriver.Chrome, pages: dict[str, str]) -> None:
    open_page(browser, pages["demo"])
    first = browser.find_element(By.CSS_SELECTOR, "#check input[value=no]")
    browser.execute_script("arguments[0].focus()", first)
    type_keys(browser, Keys.SPACE)
    assert "1 of 12 read" in browser.find_element(By.ID, "check").text


def test_recovery_stands_in_a_section_of_its_own_where_faults_struck(browser, pages):
    open_page(browser, pages["struck"])
    text = " ".join(browser.find_element(By.ID, "recovery").text.split())
    assert "any fault tuned 4 0.75" in text
    assert "tool gone tuned 2 0.50" in text
    open_page(browser, pages["empty"])
    assert browser.find_elements(By.ID, "recovery") == []


def test_lineage_is_a_graph_of_stages_and_inputs_that_can_also_be_heard(browser, pages):
    open_page(browser, pages["demo"])
    image = browser.find_element(By.CSS_SELECTOR, ".lineage svg")
    assert image.get_attribute("role") == "img"
    assert image.get_attribute("aria-label") == (
        "Lineage: base from eval, base; demos from train, oracle; sft from base, demos"
    )
    assert len(image.find_elements(By.CSS_SELECTOR, ".node")) == 7
    assert len(image.find_elements(By.CSS_SELECTOR, ".edge")) == 6
    left = {one.text.split("\n")[0]: one.rect["x"] for one in image.find_elements(By.CSS_SELECTOR, ".node")}
    assert left["train"] < left["demos"] < left["sft"]
    open_page(browser, pages["empty"])
    assert browser.find_elements(By.CSS_SELECTOR, ".lineage") == []


def test_success_is_drawn_against_cost_with_intervals(browser, pages):
    open_page(browser, pages["demo"])
    image = browser.find_element(By.CSS_SELECTOR, "#cost svg[role=img]")
    assert image.get_attribute("aria-label").startswith("pass@1 against generated tokens per episode: base 0.0")
    assert len(image.find_elements(By.CSS_SELECTOR, ".whisker")) == 2
