"""`quintain init` writes projects that the doctor accepts and `run` trains as they stand."""

from __future__ import annotations

import json
import random
import re
import shlex
import sys
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from loopback import Quiet, listening
from quintain.cli.main import main
from quintain.commands.commands import scaled
from quintain.commands.init.documents import document_tasks
from quintain.commands.init.moments import tells_time
from quintain.commands.init.project import MEASURED, Draft, Names, split
from quintain.commands.init.sources import from_openapi
from quintain.commands.init.tools import tool_tasks
from quintain.commands.init.values import argument_sets
from quintain.commands.pools import audit_files
from quintain.interface.errors import InputError
from quintain.interface.tasks import load_tasks
from quintain.interface.tools import Tool
from quintain.recipe import load_recipe
from quintain.worlds.bridges import session
from quintain.worlds.bridges.mcp import MCPWorld
from quintain.worlds.bridges.openapi import OpenAPIWorld
from quintain.worlds.desk.collection import Collection, Document
from recipe_edits import edit

ROOT = Path(__file__).parents[2]
STRANGE = ROOT / "tests" / "worlds" / "bridges" / "strange_server.py"
PAGE = (ROOT / "docs" / "start-your-own.md").read_text(encoding="utf-8")

FUNCTIONS = '''
from quintain import tool

made = []


@tool(read_only=True)
def price(item: str) -> int:
    """Price in cents.

    Args:
        item: what, such as 'tea' or 'honey' or 'rice'.
    """
    return 100 * len(item)


def order(item: str, amount: int) -> str:
    """Orders something, such as "tea" or "rice"."""
    made.append(item)
    return f"order {len(made)}"


def fresh(item: str) -> bool:
    """Whether something is fresh.

    Args:
        item: one of tea, bread or soap.
    """
    return item != "soap"
'''

SUMS = "".join(
    f'''
def {name}(a: int, b: int) -> int:
    """Calculates."""
'''
    for name in ("add", "subtract", "multiply")
)

ITEM = {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}
LIST = {"type": "array", "items": {"type": "string"}}
API = {
    "openapi": "3.0.3",
    "info": {"title": "Stock", "version": "1"},
    "paths": {
        "/items/{item}": {
            "parameters": [{"name": "item", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "operationId": "getItem",
                "summary": "What is known of an item.",
                "parameters": [{"name": "with", "in": "query", "schema": LIST}],
                "responses": {"200": {"description": "found", "content": ITEM}},
            },
            "put": {"requestBody": {"content": ITEM}, "responses": {"204": {"description": "kept"}}},
        }
    },
    "components": {
        "schemas": {
            "Item": {
                "type": "object",
                "properties": {
                    "stock": {"type": "integer"},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
                },
                "required": ["stock"],
            }
        }
    },
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A user's folder, with documents, functions and an API's description."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_tools.py").write_text(FUNCTIONS)
    (tmp_path / "api.json").write_text(json.dumps(API))
    documents = tmp_path / "documents"
    documents.mkdir()
    for number, place in enumerate(("Oslo", "Lima", "Cairo", "Quito", "Hanoi", "Accra")):
        facts = f"Kind: depot. Staff: {40 + number}. Area in m2: {900 - 7 * number}."
        more = f"It was opened in {1990 + number} by the company."
        (documents / f"{place}.md").write_text(f"# {place}\n\n{facts}\n\n{more}\n")
    return tmp_path


@contextmanager
def api():
    """The API that `API` describes; items that begin with a vowel are not there."""

    class Handler(Quiet):
        def do_GET(self):
            seen.append(self.path)
            item = self.path.split("/")[2].split("?")[0]
            body = json.dumps({"stock": "many" if item == "lies" else len(item) * 1000 + 7}).encode()
            self.send_response(404 if item[0] in "aeiou" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

    seen = []
    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}", seen


def small(project, model):
    """A tiny model in place of the real one, and few tasks."""
    edit(project / "recipe.toml", 'base = "smollm2-135m"', f'base = "{model}"')
    edit(project / "recipe.toml", "epochs = 3", "epochs = 1")
    for name, count in (("train.jsonl", 6), ("eval.jsonl", 3)):
        lines = (project / name).read_text().splitlines(keepends=True)
        assert len(lines) >= count
        (project / name).write_text("".join(lines[:count]))


def passes_doctor(project, model, capsys):
    small(project, model)
    capsys.readouterr()
    fit = main(["doctor", str(project / "recipe.toml")])
    said = capsys.readouterr().out
    assert fit == 0, said


def passes_doctor_and_trains(project, model, capsys):
    passes_doctor(project, model, capsys)
    assert main(["run", str(project / "recipe.toml"), "--json", "--out", str(project / "run")]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert stages["demos"]["successes"] == 6
    assert stages["sft"]["examples"] == 6


def test_a_world_of_your_own(here, model_folder, capsys):
    assert main(["init", "my-shop"]) == 0
    assert sorted(path.name for path in Path("my-shop").iterdir()) == [
        "README.md", "eval.jsonl", "my_shop_world.py", "recipe.toml", "train.jsonl",
    ]  # fmt: skip
    assert len(load_tasks(Path("my-shop/eval.jsonl"))) == 3 * 7
    assert audit_files(Path("my-shop/recipe.toml"), [Path("my-shop/train.jsonl")])["tasks"] == {}, "nothing given away"
    passes_doctor_and_trains(Path("my-shop"), model_folder, capsys)


def test_documents_in_five_commands_as_the_readme_says(here, model_folder, capsys, monkeypatch):
    commands = re.findall(r"^```bash\n(quintain init handbook.*?)^```", PAGE, re.M | re.S)[0].splitlines()
    assert len(commands) == 5
    assert main(shlex.split(commands[0])[1:]) == 0
    readme = Path("handbook/README.md").read_text()
    assert "\n".join(commands) in readme
    small(Path("handbook"), model_folder)
    monkeypatch.chdir(commands[1].removeprefix("cd "))
    monkeypatch.setattr("sys.stdin", None)
    for command in commands[2:]:
        assert main(shlex.split(command)[1:]) == 0, capsys.readouterr().out
    assert Path("runs/handbook/sft/model").is_dir()


def test_questions_about_documents_can_be_answered_from_them(here):
    assert main(["init", "handbook", "--from-docs", "documents"]) == 0
    learnt, measured = (load_tasks(Path(f"handbook/{name}.jsonl")) for name in ("train", "eval"))
    assert {"lookup", "compare", "gap"} <= {task.template for task in (*learnt, *measured)}
    apart = {document for task in measured for document in task.setup["documents"]}
    assert not apart & {document for task in learnt for document in task.setup["documents"]}
    assert audit_files(Path("handbook/recipe.toml"), [Path("handbook/train.jsonl")])["tasks"] == {}, (
        "nothing given away"
    )
    gap = next(task for task in (*learnt, *measured) if task.template == "gap")
    assert gap.prompt.endswith("It was opened in ___ by the company.")
    assert 1990 <= int(gap.answer["number"]) < 1996


def test_functions_of_a_module(here, model_folder, capsys):
    assert main(["init", "tools", "--from-functions", "my_tools"]) == 0
    tasks = load_tasks(Path("tools/eval.jsonl")) + load_tasks(Path("tools/train.jsonl"))
    prices = [task for task in tasks if task.template == "result"]
    assert {task.answer for task in prices} == {300, 500, 400, "true", "false"}
    ordered = [task for task in tasks if task.template == "call"]
    assert {task.answer for task in ordered} == {"done"}, "what `order` returns hangs on the calls before"
    assert {task.setup["plan"][0]["arguments"]["item"] for task in ordered} == {"tea", "rice"}
    said = capsys.readouterr()
    assert "calling price, order, fresh, to see what they return" in said.err
    assert "not asked for, as it changes with time or with what was called before: order: what it returns" in said.out


def test_tools_of_which_no_call_works_are_named_with_what_they_say(here, capsys):
    (here / "locked.py").write_text("def look(item: str) -> str:\n    'Looks.'\n    raise OSError('401 no key')\n")
    assert main(["init", "locked", "--from-functions", "locked"]) == 0
    assert "the tasks only name calls that fail: look: " in (said := capsys.readouterr().out)
    assert "401 no key" in said


def test_tasks_that_differ_by_numbers_alone_give_nothing_away(here):
    Path("sums.py").write_text(SUMS)
    assert main(["init", "sums", "--from-functions", "sums.py"]) == 0
    assert audit_files(Path("sums/recipe.toml"), [Path("sums/train.jsonl")])["tasks"] == {}


def test_an_mcp_server(here, model_folder, capsys):
    server = shlex.join([sys.executable, "-I", "-S", str(STRANGE)])
    assert main(["init", "served", "--from-mcp", server]) == 0
    assert "add `stateless = true` to [world.options]" in capsys.readouterr().out
    tasks = load_tasks(Path("served/train.jsonl")) + load_tasks(Path("served/eval.jsonl"))
    answers = {task.setup["plan"][0]["tool"]: task.answer for task in tasks}
    assert {answers[name] for name in answers.keys() - {"add"}} == {"done"}, (
        "what is not annotated may destroy: not called"
    )
    sums = [task for task in tasks if task.setup["plan"][0]["tool"] == "add"]
    assert len(sums) == 12
    for task in sums:
        arguments = task.setup["plan"][0]["arguments"]
        assert task.answer == arguments["a"] + arguments["b"]
        assert task.prompt.endswith("Answer with its `sum`.")
    passes_doctor_and_trains(Path("served"), model_folder, capsys)


def test_servers_whose_tools_are_all_read_only_are_shared_by_all_episodes(here, capsys):
    server = shlex.join([sys.executable, "-I", "-S", str(STRANGE), "read-only tools alone"])
    assert main(["init", "served", "--from-mcp", server]) == 0
    assert "stateless = true" in Path("served/recipe.toml").read_text()
    assert "stateless" not in capsys.readouterr().out


def test_an_api(here, model_folder, capsys):
    with api() as (url, seen):
        described = json.loads(Path("api.json").read_text()) | {"servers": [{"url": url}]}
        Path("api.json").write_text(json.dumps(described))
        assert main(["init", "stock", "--from-openapi", "api.json"]) == 0
        assert seen
        assert all(path.startswith("/items/") for path in seen)
        tasks = load_tasks(Path("stock/train.jsonl"))
        assert {task.setup["calls"][0]["tool"] for task in tasks} == {"getItem", "put_items_item"}
        assert any(str(task.answer).endswith("007") for task in tasks)
        passes_doctor(Path("stock"), model_folder, capsys)


def test_an_api_answers_as_described_or_the_agent_reads_why(here):
    def call(world, **arguments):
        one = world.toolset()["getItem"]
        return one.to_json(one.function(**arguments))

    with api() as (url, seen):
        world = OpenAPIWorld(file="api.json", url=url)
        assert call(world, item="tea", **{"with": ["a b", "c"]}) == {"stock": 3007}
        assert seen == ["/items/tea?with=a+b&with=c"]
        with pytest.raises(Exception, match="404 Not Found"):
            call(world, item="apples")
        with pytest.raises(Exception, match="'many' is not of type 'integer'"):
            call(world, item="lies")
    with pytest.raises(Exception, match=r"the API at .* can't be reached"):
        call(world, item="tea")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["1shop"], "project name '1shop': begin with a letter"),
        (["class"], "project name 'class'"),
        (["documents"], "documents is there already and not empty"),
        (["api.json"], "project name 'api.json'"),
        (["gone/shop"], "there is no folder"),
        (["x", "--from-mcp", "no-such-program"], "no program named 'no-such-program'"),
        (["x", "--from-mcp", "'"], "give the command that starts the server"),
        (["x", "--from-functions", "no_such_module"], "No module named 'no_such_module'"),
        (["x", "--from-openapi", "gone.json"], "OpenAPI file not found: gone.json"),
        (["x", "--from-openapi", "my_tools.py"], "my_tools.py: "),
        (["x", "--from-openapi", "circles.json"], "references go round in a circle: #/components/schemas/A -> "),
        (["x", "--from-openapi", "api.json"], "the API needs an address"),
        (["x", "--from-openapi", "down.json"], "can't be tried: the API at http://127.0.0.1:9 can't be reached: "),
        (["x", "--from-docs", "gone"], "collection not found: gone"),
        (["x", "--from-docs", "images"], "no readable document (3 of another kind)"),
        (["x", "--from-docs", "short"], "the documents hold too little text to ask about"),
    ],
)
def test_wrong_input_is_one_line_and_nothing_is_written(here, capsys, arguments, words):
    (here / "images").mkdir()
    for number in range(3):
        (here / "images" / f"{number}.png").write_bytes(b"\x89PNG\r\n")
    (here / "short").mkdir()
    (here / "short" / "a.txt").write_text("yes")
    circles = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}
    paths = {"/a": {"get": {"responses": {"200": {"description": "", "content": content}}}}}
    document = {**API, "paths": paths, "components": {"schemas": circles}, "servers": [{"url": "http://127.0.0.1:9"}]}
    (here / "circles.json").write_text(json.dumps(document))
    (here / "down.json").write_text(json.dumps(API | {"servers": [{"url": "http://127.0.0.1:9"}]}))
    before = sorted(here.rglob("*"))
    assert main(["init", *arguments]) == 2
    *announced, said = capsys.readouterr().err.strip().splitlines()
    assert words in said
    assert all(line.endswith(" ...") for line in announced), "what is under way, and one line of why it ends"
    assert [path for path in sorted(here.rglob("*")) if "__pycache__" not in path.parts] == before


def test_a_server_that_never_answers_is_one_line(here, capsys, monkeypatch):
    monkeypatch.setattr(session, "START_SECONDS", 1.0)
    server = shlex.join([sys.executable, "-I", "-S", str(STRANGE), "never answers"])
    assert main(["init", "x", "--from-mcp", server]) == 2
    assert "has not answered anything within 1 s" in capsys.readouterr().err
    assert not Path("x").exists()


def test_aliases_of_yaml_are_refused(here, capsys):
    Path("bomb.yaml").write_text("openapi: 3.0.0\na: &a [x, x]\nb: [*a, *a]\n")
    with pytest.raises(InputError, match="aliases of YAML"):
        from_openapi(Path("x"), Path("bomb.yaml"))


def test_names_of_a_project():
    assert Names.of("my-Shop_2") == Names("my-Shop_2", "my_shop_2_world", "MyShop2")


def test_a_third_of_the_documents_measures_equally_many_tasks_of_each():
    documents = [Document(f"Boat{number}", f"Built in {1900 + number}.\nPrice: {number}00.") for number in range(24)]
    learnt, held_out = document_tasks("w", Collection(documents, "boats"), 1)
    assert len({task.cluster for task in held_out}) == 8
    contents = [{one for task in tasks for one in task.setup["documents"]} for tasks in (learnt, held_out)]
    assert contents[0].isdisjoint(contents[1])
    _, measured = split(Draft("documents", learnt, "", held_out=held_out))
    assert 30 <= len(measured) <= MEASURED
    assert len(set(Counter(task.cluster for task in measured).values())) == 1


def test_a_single_document_is_split_within():
    text = "\n".join(
        f"The {side} room was opened in 19{place}7." for place, side in enumerate(("east", "west", "north"))
    )
    learnt, held_out = document_tasks("w", Collection([Document("House", text)], "houses"), 1)
    assert (len(learnt), held_out) == (3, [])
    learnt, measured = split(Draft("documents", learnt, ""))
    assert (len(learnt), len(measured)) == (2, 1)


def test_few_documents_are_said_to_tell_little_and_what_a_run_takes_is_said(here, capsys):
    assert main(["init", "handbook", "--from-docs", "documents", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    counts, outlook, advice = result["lines"]
    assert f"{result['evaluated']} tasks to measure by about 2 of 6 documents" in counts
    # two clusters, both perfect: Clopper-Pearson's lower end is 0.025 ** (1 / 2)
    assert "pass@1 would read 1.000 [0.158, 1.000]; 2 of 6 documents tell little" in outlook
    assert f"at most about {result['minutes']} minutes" in advice
    recipe = load_recipe(Path("handbook/recipe.toml"))
    assert [(one.measure, one.at_most) for one in recipe.targets] == [("minutes", result["minutes"])]
    trained = scaled(recipe, 0.5).stages[2].train
    assert (trained.seconds, trained.checkpoint_seconds) == (300, 60)
    assert f"at most about {result['minutes']} minutes" in Path("handbook/README.md").read_text()


CHANGING = '''
from datetime import datetime, timezone

from quintain import tool

@tool(read_only=True)
def convert(time: str) -> dict:
    """A time of today, in Tokyo; times are "10:20" and "11:40"."""
    now = datetime.now(timezone.utc)
    return {"day": f"{now:%d %B %Y}", "weekday": f"{now:%A}", "hour": int(time[:2]) + 9}


@tool(read_only=True)
def gears(bike: str) -> int:
    """Number of gears of a bike; bikes are "red" and "blue"."""
    return {"red": 7, "blue": 21}[bike]


def weight(bike: str) -> str:
    """Weight of a bike; bikes are "red" and "blue"."""
    return f'{{"grams": {9000 + len(bike)}}}'


def broken(bike: str) -> int:
    """Always fails."""
    raise ValueError(bike)
'''


def test_what_changes_with_time_is_not_asked_for_and_said(here, capsys):
    Path("changing.py").write_text(CHANGING)
    assert main(["init", "clock", "--from-functions", "changing"]) == 0
    tasks = load_tasks(Path("clock/train.jsonl")) + load_tasks(Path("clock/eval.jsonl"))
    answers = {
        name: [task.answer for task in tasks if task.id.startswith(name)] for name in ("convert", "gears", "weight")
    }
    assert sorted(answers["convert"]) == [19, 20]
    assert sorted(answers["gears"]) == [7, 21], "the examples of the tool's own description"
    assert sorted(answers["weight"]) == [9003, 9004], "values of a text that holds JSON"
    failing = [task for task in tasks if task.template == "error"]
    assert 1 <= len(failing) <= 3
    assert all(task.id.startswith("broken") for task in failing), "only where no call is known that succeeds"
    assert "with what was called before: convert: day, weekday\n" in capsys.readouterr().out


NOW = datetime(2026, 11, 30, 16, 25, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-30", "2026-11-30T09:00:00+09:00", "30.11.2026", "11/30/26", "20261130", "Nov 30th, 2026",
        "2026年11月30日", "1 December 2026 in Auckland", "Monday", "Mon", "星期一", "16:25", "01:26 in Tokyo",
        1796056000, 1796056000.25, "1796056000123",
    ],
)  # fmt: skip
def test_values_that_tell_the_time(value):
    assert tells_time(value, NOW)


@pytest.mark.parametrize(
    "value", ["2024-05-03", "2026", 30, "Friday", "monkey", "16:40", "November", "order 1130", 1.5]
)
def test_values_that_do_not(value):
    assert not tells_time(value, NOW)


def test_examples_stand_in_a_tools_own_description_too():
    text = {"type": "string"}
    properties = {"bike": text, "colour": text, "day": {"type": "string", "format": "date"}}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    described = 'Rents a bike (`bike`), such as "city". Args: bike: which. colour (str): one of red, blue or green.'
    made = argument_sets(Tool("rent", described, schema), 12, random.Random(0))
    assert {one["bike"] for one in made} == {"city"}
    assert {one["colour"] for one in made} == {"red", "blue", "green"}
    assert all(one["day"].startswith("2024-05-") for one in made)


def test_made_up_arguments_fit_the_schema_also_where_it_holds_itself():
    tree = {"type": "object", "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/Tree"}}}
    endless = {**tree, "required": ["child"]}
    members = {"tree": {"$ref": "#/$defs/Tree"}, "n": {"type": "integer", "minimum": 5, "maximum": 6}}
    schema = {"type": "object", "properties": members, "required": ["tree", "n"], "$defs": {"Tree": tree}}
    some = Tool("grow", "", schema)
    made = argument_sets(some, 5, random.Random(0))
    assert 2 <= len(made) <= 5
    assert all(some.check_arguments(one) is None and one["n"] in (5, 6) for one in made)
    none = Tool("grow", "", {**some.parameters, "$defs": {"Tree": endless}})
    assert argument_sets(none, 5, random.Random(0)) == []


def test_tools_that_allow_no_two_calls_are_refused():
    def world():
        return MCPWorld(command=sys.executable, args=["-I", "-S", str(STRANGE), "one tool"])

    with pytest.raises(InputError, match="fewer than two different calls"):
        tool_tasks(world, 0, lambda tool: True)
