"""The documentation keeps up with the code: links resolve, folders are named, every recipe key is explained."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from quintain import recipe as recipes
from quintain.curation.config import CurationConfig
from quintain.endpoint.config import EndpointConfig, ExampleSection, PromptConfig
from quintain.interface.dialects import NAMES
from quintain.interface.records import SCHEMA
from quintain.recipe import tables
from quintain.recipe.tables import ProbeSection
from quintain.synthesis.config import FASConfig, TeacherConfig
from quintain.training.config import CPTConfig, RopeConfig, SFTConfig
from quintain.training.grpo_config import GRPOConfig
from quintain.training.guard import GuardConfig
from quintain.training.reward import RewardConfig
from quintain.training.rules import RULES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "quintain"
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_ELSEWHERE = ("http://", "https://", "mailto:")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Ids GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_resolves(page):
    wrong = []
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if target.startswith(_ELSEWHERE):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            wrong.append(target)
    assert wrong == []


def test_every_page_can_be_reached_from_the_index():
    reached, waiting = set(), [DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        links = _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links if "://" not in link]
    assert set(DOCS.rglob("*.md")) - reached == set()


def test_the_architecture_page_names_every_folder_and_every_module_beside_them():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    tracked = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    folders = {parent.name for path in SOURCE.rglob("__init__.py") for parent in [path.parent] if parent != SOURCE}
    modules = {path.name for path in tracked if path.parent == SOURCE}
    missing = [name for name in sorted(folders) if f"`{name}/`" not in text]
    missing += [name for name in sorted(modules) if f"`{name}`" not in text]
    assert missing == []


def test_the_data_page_states_the_journals_schema():
    assert f"schema {SCHEMA}" in (DOCS / "data.md").read_text(encoding="utf-8")


def test_the_page_on_dialects_lists_every_one():
    page = (DOCS / "concepts" / "dialects.md").read_text(encoding="utf-8").partition("## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE) == list(NAMES)


SECTIONS: dict[type[BaseModel], str] = {
    recipes.Recipe: "The file itself",
    recipes.TargetSection: "`[[targets]]`",
    recipes.EngineSection: "`[engine]`",
    recipes.ModelSection: "`[model]`",
    tables.ClusterSection: "`[cluster]`",
    recipes.WorldSection: "`[world]`",
    recipes.WorldEntry: "`[worlds.NAME]`",
    ProbeSection: "`[[world.probes]]`",
    recipes.BudgetSection: "`[budget]`",
    recipes.FaultsSection: "`[faults.NAME]`",
    recipes.ProgramSection: "`[programs.NAME]`",
    recipes.PoolSection: "`[pools.NAME]`",
    tables.PlanSection: "`[plan]`",
    tables.ShapeSection: "`[plan.shape]`",
    tables.ContextSection: "`context` of a stage",
    recipes.SamplingSection: "`sampling` of a stage",
    recipes.RolloutStage: '`kind = "rollout"`',
    recipes.HASStage: '`kind = "has"`',
    recipes.FASStage: '`kind = "fas"`',
    FASConfig: "`make` of a fas stage",
    TeacherConfig: "`teacher` of a fas stage",
    recipes.CPTStage: '`kind = "cpt"`',
    recipes.RecoverStage: '`kind = "recover"`',
    recipes.CurateStage: '`kind = "curate"`',
    CurationConfig: "`mix` of a curate stage",
    recipes.SFTStage: '`kind = "sft"`',
    recipes.GRPOStage: '`kind = "grpo"`',
    recipes.EvalStage: '`kind = "eval"`',
    CPTConfig: "`train` of a cpt stage",
    RopeConfig: "`rope` of a cpt stage",
    EndpointConfig: "`endpoint` of an eval stage",
    PromptConfig: "`prompt` of an eval stage",
    ExampleSection: "`examples` of a prompt",
    SFTConfig: "`train` of an sft stage",
    GRPOConfig: "`train` of a grpo stage",
    RewardConfig: "`reward` of a grpo stage",
    GuardConfig: "`guard` of a grpo stage",
}
"""Heading in docs/recipes.md of every model a recipe is made of."""


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """Every pydantic model in a type, fields included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.values()
        return {annotation}.union(*(models_in(field.annotation) for field in fields))
    return set().union(*(models_in(part) for part in get_args(annotation)))


def table_of(heading: str) -> dict[str, str]:
    """Keys and defaults of the table under a heading of docs/recipes.md."""
    text = (DOCS / "recipes.md").read_text(encoding="utf-8")
    match = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"docs/recipes.md has no heading {heading!r}"
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", match[1], re.MULTILINE))


def shown(default: Any) -> str:
    """A default as the page writes it."""
    if default is PydanticUndefined:
        return "required"
    if isinstance(default, BaseModel):
        return "see below"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float):
        return f"`{default:g}`"
    if isinstance(default, str):
        return f'`"{default}"`'
    if default is None:
        return "none"
    return f"`{list(default) if isinstance(default, tuple) else default}`".replace("'", '"')


def test_every_part_of_a_recipe_has_a_section():
    assert models_in(recipes.Recipe) == set(SECTIONS)


@pytest.mark.parametrize("model", SECTIONS, ids=lambda model: model.__name__)
def test_every_key_is_explained_with_its_true_default(model):
    fields = {name: shown(field.default) for name, field in model.model_fields.items() if name != "kind"}
    assert table_of(SECTIONS[model]) == fields


def test_every_rule_of_the_guard_is_explained():
    text = (DOCS / "recipes.md").read_text(encoding="utf-8")
    assert [rule.name for rule in RULES if f"`{rule.name}`" not in text] == []


def test_every_message_of_the_troubleshooting_page_is_one_the_code_writes():
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    # texts that go on in the next line of the source are one text
    code = re.sub(r'"\s*\n\s*f?"', "", code) + (ROOT / "Makefile").read_text(encoding="utf-8")
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8").partition("## No error")[0]
    messages = re.findall(r"\*\*``?(.+?)``?\*\*", page)
    assert len(messages) > 30
    assert [one for one in messages if one.strip() not in code] == []


def test_the_page_on_worlds_shows_the_example_as_it_is():
    page = (DOCS / "worlds" / "your-own.md").read_text(encoding="utf-8")
    source = (ROOT / "examples" / "till" / "till_world.py").read_text(encoding="utf-8")
    shown_code = re.findall(r"^```python\n# till_world.py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    classes = [block[block.index("class ") :] for block in shown_code]
    assert len(classes) == 2
    assert [block for block in classes if block not in source] == []


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readme_quotes_the_quickstarts_figures_as_measured(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    result = measured("quickstart")
    for one in result["pass1"].values():
        assert f"| {one['value']:.3f} | [{one['low']:.3f}, {one['high']:.3f}] |" in text


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readme_quotes_ones_own_documents_as_measured(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    result = measured("own_documents")
    for one in result["pass1"].values():
        assert quoted(one) in text
    assert f" {result['minutes']:.0f} " in text


def test_the_page_on_contamination_quotes_the_benchmark_as_measured():
    page = (DOCS / "concepts" / "contamination.md").read_text(encoding="utf-8")
    result = measured("contamination")
    pools = result["pools"].values()
    for kind in ("verbatim", "reordered", "changed number", "truncated", "paraphrased"):
        figures = " | ".join(f"{pool['recall'][kind]['recall']:.3f}" for pool in pools)
        assert f"| recall, {kind} | {figures} |" in page
    speeds = " | ".join(f"{pool['mb_per_second']:.0f}" for pool in pools)
    assert f"| MB/s of one core | {speeds} |" in page


def _cosines(result):
    """Of each base, a list for each seed."""
    found = {}
    for name, values in result["gradient_cosine"].items():
        found.setdefault(name.rsplit("-", 1)[0], []).append([one["cosine"] for one in values])
    return found


@pytest.mark.parametrize("suffix", ["", ".zh"])
def test_the_pages_on_pretraining_quote_the_study_as_measured(suffix):
    page = (DOCS / "concepts" / f"continual-pre-training{suffix}.md").read_text(encoding="utf-8")
    readme = (ROOT / f"README{suffix}.md").read_text(encoding="utf-8")
    result = measured("study_cpt")
    paired = {
        base: [quoted_change(found["estimate"]) for found in both.values()]
        for base, both in result["against_original"].items()
    }
    for row in result["rows"]:
        one = row["estimates"]["pass1"]
        seeds = ", ".join(f"{value:.3f}" for value in row["by_seed"]["pass1"])
        differences = " | ".join(paired.get(row["group"], ["", ""])).replace(" |  ", " | ")
        assert f"| {quoted(one)} | {seeds} | {differences}".rstrip() in page
        assert f"{one['value']:.3f}" in readme
    assert paired["fas_has"][0] in readme
    for base, found in _cosines(result).items():
        means = " → ".join(f"{fmean(values):+.2f}" for values in zip(*found, strict=True))
        assert f"| {means} | {', '.join(f'{one[-1]:+.2f}' for one in found)} |" in page, base
    first, second, third = (one["steps_to_control"] for one in result["fine_tuning_loss"]["fas_has"])
    assert (
        f"{first}, {second} and {third} of its 32" in " ".join(page.split())
        or f"第 {first}、{second} 和 {third} 步" in page
    )
    minutes = round(sum(result["seconds"].values()) / 60)
    assert f" {minutes} minutes" in page or f"{minutes} 分钟" in page
    assert all(
        quoted_change(one["estimate"]) in page for one in result["earlier_run"]["against_original"]["fas_has"].values()
    )
    for cell in result["amounts"]["cells"]:
        loss, cosine = cell["loss"], cell["gradient_cosine"][-1]["cosine"]
        scores = f"{cell['pass1']:.3f} | {cell['pass_at_k']:.3f} | {loss['last_mean']:.3f} | {loss['steps_to_control']}"
        assert f"| {cell['cpt_tokens']:,} | {scores} | {cosine:+.2f} |" in page
    for law in result["amounts"]["laws"]:
        assert f"{law['predicted']:.3f} [{law['low']:.3f}, {law['high']:.3f}]" in page
    (smaller,) = result["sizes"]
    losses = [f"{row['fine_tuning_loss']['mean']:.2f}" for row in smaller["rows"]]
    assert all(quoted(row["pass1"]) in page for row in smaller["rows"])
    assert re.search(".*".join(map(re.escape, [f"--models {smaller['model']}", *losses])), page, re.DOTALL)


@pytest.mark.parametrize("suffix", ["", ".zh"])
def test_the_pages_on_grpo_quote_the_longer_runs_as_measured(suffix):
    result = measured("grpo_desk_longer")
    page = (DOCS / "concepts" / f"grpo{suffix}.md").read_text(encoding="utf-8")
    assert f"{result['before']['pass1']:.3f}" in page
    for run in result["runs"]:
        gain = run["difference"]["estimate"]
        said = [
            f"{run['steps']} ",
            f"{run['after']['pass1']:.3f}",
            f"{gain['value']:+.3f} [{gain['low']:.3f}, {gain['high']:.3f}]",
        ]
        said.append(f"{run['calls_per_success_ratio']['value']:.3f}")
        assert re.search(".*?".join(map(re.escape, said)), page, re.DOTALL)


@pytest.mark.parametrize("suffix", ["", ".zh"])
def test_the_pages_on_grpo_quote_what_a_cost_did_as_measured(suffix):
    result = measured("grpo_desk_cost")
    (gain,) = (one["estimate"] for name, one in result["differences"].items() if name.endswith("a cost - before"))
    (calls,) = result["ratios"].values()
    before, after = result["before"], result["pooled"]["GRPO with a cost"]
    page = " ".join((DOCS / "concepts" / f"grpo{suffix}.md").read_text(encoding="utf-8").split())
    assert f"{before['pass1']:.3f} -> {after['pass1']:.3f}" in page
    assert f"{before['calls_per_success']:.2f} -> {after['calls_per_success']:.2f}" in page
    assert f"{gain['value']:+.3f} [{gain['low']:.3f}, {gain['high']:.3f}]" in page
    assert f"{calls['value']:.3f}" in page
    assert f"[{calls['low']:.3f}, {calls['high']:.3f}]" in page
    readme = (ROOT / f"README{suffix}.md").read_text(encoding="utf-8")
    assert quoted_change(gain) in readme
    assert quoted(calls) in readme


@pytest.mark.parametrize("suffix", ["", ".zh"])
def test_the_pages_on_studies_quote_that_of_failures_as_measured(suffix):
    page = (DOCS / "concepts" / f"studies{suffix}.md").read_text(encoding="utf-8")
    result = measured("study_failures")
    for row in result["rows"]:
        seeds = ", ".join(f"{value:.3f}" for value in row["by_seed"]["pass1"])
        paired = row["differences"].get("pass1", {}).get("estimate")
        change = quoted_change(paired) if paired else ""
        score, recovery, repeat = (quoted(row["estimates"][name]) for name in ("pass1", "recovery", "repeat"))
        cells = re.escape(f"| {score} | {seeds} | {change} | {recovery} | {repeat} |")
        share = row["group"].partition("-")[0]
        assert re.search(rf"^\| {share} \| [^|]+ {cells}$", page, re.MULTILINE)


@pytest.mark.parametrize("suffix", ["", ".zh"])
def test_the_pages_on_grpo_quote_the_memory_as_measured(suffix):
    result = measured("grpo_vs_trl_memory")
    page = (DOCS / "concepts" / f"grpo{suffix}.md").read_text(encoding="utf-8")
    assert re.findall(r"\| (\d+\.\d\d) GB \|", page) == [f"{row['peak_gb']:.2f}" for row in result["memory"]]


@pytest.mark.parametrize("suffix", ["", ".zh"])
def test_the_pages_on_recovery_quote_the_study_as_measured(suffix):
    page = (DOCS / "concepts" / f"recovery{suffix}.md").read_text(encoding="utf-8").replace("，各种子 ", ", seeds ")
    result = measured("study_recovery")
    clean, mix = result["rows"]
    for measure in ("pass1", "recovery", "repeat"):
        cells = [quoted(one["estimates"][measure]) for one in (clean, mix)]
        if measure == "recovery":
            for place, one in enumerate((clean, mix)):
                cells[place] += ", seeds " + ", ".join(f"{value:.3f}" for value in one["by_seed"][measure])
        assert f"| {' | '.join(cells)} |" in page
    for measure in ("pass1", "recovery"):
        found = mix["differences"][measure]
        assert f"{quoted_change(found['estimate'])} (p {found['p_value']:.2f})" in page
    for one in (result["seeds"]["clean"]["1"], result["seeds"]["mix"]["1"], *result["variants"]):
        cells = f"{one['pass1']['value']:.3f} | {quoted(one['struck']['recovery'])} | {quoted(one['repeat'])}"
        assert f"| {cells} |" in page
    for row in result["fewer_tokens"]["rows"]:
        assert all(quoted(one) in page for one in row["estimates"].values())
    own = result["fewer_tokens"]["variants"][1]
    assert re.search(rf"{own['struck']['recovery']['value']:.3f} (and|和) {own['repeat']['value']:.3f}", page)
    pass1 = clean["estimates"]["pass1"]["value"]
    assert f"{pass1:.2f} (" in (DOCS / "concepts" / "studies.md").read_text(encoding="utf-8")


def measured(name: str) -> dict[str, Any]:
    """Figures of a benchmark or a study."""
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def quoted(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def quoted_change(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:+.3f} [{estimate['low']:+.3f}, {estimate['high']:+.3f}]"


def test_the_page_on_bfcl_quotes_the_benchmark_as_measured():
    page = (DOCS / "worlds" / "bfcl.md").read_text(encoding="utf-8")
    result = measured("bfcl_gold")
    assert f"`bfcl-eval` {result['bfcl-eval']}:" in page
    single, multi = (result["worlds"][name]["agents"] for name in ("bfcl-single", "bfcl-multi-turn"))
    for agent in single:
        calling = [one for name, one in single[agent].items() if name != "irrelevance"]
        groups = [calling, [single[agent].get("irrelevance", {})], list(multi[agent].values())]
        totals = [[sum(one.get(key, 0) for one in group) for key in ("successes", "episodes")] for group in groups]
        cells = (f"{right} of {played}" if played else "" for right, played in totals)
        row = re.search(rf"^\| {agent}[^|]* \|(.*)\|$", page, re.MULTILINE)
        assert row
        assert [cell.strip() for cell in row[1].split("|")] == list(cells)


def outline(text: str) -> list[int]:
    """Levels of the headings."""
    return [len(marks) for marks in re.findall(r"^(#+) ", _FENCE.sub("", text), re.MULTILINE)]


def code(text: str) -> list[str]:
    """Every line of code, without its comment; a block without a language is a drawing."""
    blocks = [block for block in _FENCE.findall(text) if not block.startswith("```\n")]
    return [line.partition("#")[0].rstrip() for block in blocks for line in block.split("\n")]


def figures(text: str) -> list[list[str]]:
    """Numbers of every row of the tables."""
    rows = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    return [[one.rstrip(".,") for one in re.findall(r"\d[\d.,]*", row)] for row in rows]


def targets(text: str) -> set[str]:
    """Pages and files a page links to, those in Chinese by their English names."""
    links = (link.partition("#")[0] for link in _LINK.findall(_FENCE.sub("", text)))
    return {link.replace(".zh.md", ".md") for link in links} - {""}


CHINESE = [page for page in PAGES if page.name.endswith(".zh.md")]


def english(page: Path) -> Path:
    """The page that a Chinese one is of."""
    return page.with_name(page.name.replace(".zh.md", ".md"))


def test_the_page_on_agentdojo_quotes_the_benchmark_as_measured():
    page = (DOCS / "worlds" / "agentdojo.md").read_text(encoding="utf-8")
    result = measured("agentdojo_gold")
    assert f"`agentdojo` {result['agentdojo']}:" in page
    for agent, found in result["user_tasks"]["agents"].items():
        suites = (found.get(name) for name in ("workspace", "travel", "banking", "slack"))
        cells = " | ".join(f"{one['successes']} of {one['episodes']}" if one else "-" for one in suites)
        assert f"| {agent} | {cells} |" in page
    for agent, one in result["attack"]["agents"].items():
        assert f"| {agent} | {one['episodes']} | {one['utility']:.3f} | {one['attack_success']:.3f} |" in page


def test_the_learning_path_every_concept_and_the_peers_are_there_in_chinese():
    asked = [*(DOCS / "learn").glob("*.md"), *(DOCS / "concepts").glob("*.md"), DOCS / "peers.md", ROOT / "README.md"]
    assert {page for page in asked if page not in CHINESE} - {english(page) for page in CHINESE} == set()


@pytest.mark.parametrize("page", [page for page in CHINESE if page != DOCS / "README.zh.md"], ids=name_of)
def test_a_chinese_page_has_the_same_sections_code_tables_and_links(page):
    one, two = (path.read_text(encoding="utf-8") for path in (english(page), page))
    assert outline(one) == outline(two)
    assert code(one) == code(two)
    assert figures(one) == figures(two)
    assert targets(one) - {english(page).name} == targets(two) - {english(page).name}


@pytest.mark.parametrize("page", CHINESE, ids=name_of)
def test_both_languages_of_a_page_lead_to_each_other(page):
    assert f"[中文]({page.name})" in english(page).read_text(encoding="utf-8")
    assert f"[English]({english(page).name})" in page.read_text(encoding="utf-8")


def test_every_page_begins_an_entry_of_an_index_of_its_language_which_is_the_sites_navigation():
    indexes = {name: DOCS / name for name in ("README.md", "README.zh.md", "api/README.md")}
    entry = re.compile(r"^(?:-|\d\.) \[[^\]]+\]\(([^)#]+\.md)\)", re.MULTILINE)
    listed = [
        (index.parent / target).resolve()
        for name, index in indexes.items()
        for target in entry.findall(index.read_text(encoding="utf-8"))
        if target.endswith(".zh.md") == name.endswith(".zh.md")
    ]
    assert len(listed) == len(set(listed)), "an entry stands twice"
    assert [name_of(page) for page in PAGES if page not in {*listed, *indexes.values()}] == []


@pytest.mark.parametrize("name", ["peers.md", "peers.zh.md"])
def test_the_page_on_peers_quotes_the_benchmarks_as_measured(name):
    page = " ".join((DOCS / name).read_text(encoding="utf-8").split())
    results = ROOT / "benchmarks" / "results"
    speed, tuned = (
        json.loads((results / f"grpo_vs_trl{suffix}.json").read_text(encoding="utf-8"))["speed"]
        for suffix in ("", "_tuned")
    )
    turns = json.loads((results / "harness_overhead.json").read_text(encoding="utf-8"))["rows"]
    key = "trajectories_per_second"
    quoted = [f"{speed['quintain'][key]:.1f}", f"{speed['trl'][key]:.2f}", f"{tuned['trl'][key]:.2f}"]
    quoted += [f"{turns['quintain']['ms_per_turn']:.2f} ms", f"{turns['inspect_ai']['ms_per_turn']:.1f} ms"]
    quoted += [f"Inspect {turns['inspect_ai']['version']}", f"TRL {speed['trl']['version'].removesuffix('.0')}"]
    assert [one for one in quoted if one not in page] == []


def test_every_dependency_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=!~]", one)[0] for one in asked} - {"quintain"}
    cells = re.findall(r"^\| ([^|]+) \|", (DOCS / "dependencies.md").read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name.strip() for cell in cells for name in cell.split(",")}
    assert names - explained == set()
