"""`quintain worlds new`: from tables to a world that its owner can trust, or one line that says why not."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import sys
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain.agents.silent import SilentAgent
from quintain.cli.main import main
from quintain.commands.new_world import new_world
from quintain.commands.new_world.acceptance import Acceptance, spoiled
from quintain.commands.new_world.module import module_text, names_of
from quintain.commands.new_world.sources import read_sources
from quintain.commands.new_world.tidying import tidy
from quintain.doctor.doctor import examine
from quintain.doctor.world import Script
from quintain.harness.loop import Harness
from quintain.interface.errors import InfraError, InputError
from quintain.interface.messages import Action, Call
from quintain.interface.tasks import load_tasks
from quintain.interface.words import language_of
from quintain.recipe.user_code import load_world
from quintain.worlds.tables.schema import Column, Table
from tiny import save_tiny

SCRIPT = """
CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT NOT NULL, boss INTEGER REFERENCES people(id),
                    team TEXT REFERENCES teams(code));
CREATE TABLE teams(code TEXT PRIMARY KEY, title TEXT, lead INTEGER REFERENCES people(id), budget REAL);
CREATE TABLE tickets(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL REFERENCES people(id),
                     state TEXT CHECK (state IN ('open', 'done', 'stuck')), opened DATE, hours INTEGER);
"""


def write_shop(folder, customers=30, orders=90):
    """CSV files of a shop: customers, and orders that refer to them."""
    rng = random.Random(1)
    folder.mkdir()
    people = [
        f"{n},Person {n},{rng.choice(['Oslo', 'Bern', 'Rome'])},{rng.randrange(100)}" for n in range(1, customers + 1)
    ]
    (folder / "customers.csv").write_text("\n".join(["id,name,city,points", *people]))
    bought = [f"{1000 + n},{rng.randrange(1, customers + 1)},{rng.choice(['open', 'paid'])}" for n in range(orders)]
    (folder / "orders.csv").write_text("\n".join(["id,customer_id,status", *bought]))
    return folder


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A world over CSV files, and what making it said."""
    home = tmp_path_factory.mktemp("shop")
    made = new_world([write_shop(home / "csv")], home / "corner_shop", count=4)
    return home / "corner_shop", made


@pytest.fixture
def world(shop):
    """Its class, imported as a recipe imports it."""
    return load_world("corner_shop_world:CornerShop", shop[0])


def tasks_of(shop, split="eval"):
    return load_tasks(shop[0] / f"{split}.jsonl")


def test_every_level_has_tasks_which_the_reference_alone_solves(shop):
    _, made = shop
    assert made["tables"] == {"customers": 30, "orders": 90}
    for level in made["levels"]:
        played = level["played"]
        assert level["accepted"] == 8
        assert played["reference"] == (8, 8)
        assert played["silent"] == (0, 8)
        assert played["random"] == (0, 16)
        assert played["mutated"][0] == 0
        assert played["mutated"][1] >= 24
    assert [level["level"] for level in made["levels"]] == [1, 2, 3, 4, 5]


def test_levels_ask_for_more_and_more_calls(shop):
    calls = {level: [] for level in range(1, 6)}
    for task in tasks_of(shop) + tasks_of(shop, "train"):
        level = next(int(tag.removeprefix("level:")) for tag in task.tags if tag.startswith("level:"))
        calls[level].append(len(task.setup["plan"]))
    means = [sum(found) / len(found) for found in calls.values()]
    assert means == sorted(means)
    assert means[0] == 1


def test_no_row_that_a_training_task_is_about_is_one_of_an_evaluated_task(shop):
    mains = [{task.cluster for task in tasks_of(shop, split)} for split in ("train", "eval")]
    assert all(len(found) > 8 for found in mains)
    assert mains[0].isdisjoint(mains[1])


def test_the_folder_passes_the_doctor_as_it_is(shop, tmp_path):
    folder, _ = shop
    recipe = folder / "tiny.toml"
    recipe.write_text((folder / "recipe.toml").read_text().replace("smollm2-135m", str(save_tiny(tmp_path / "model"))))
    found = {one["name"]: one["state"] for one in examine(recipe)["checks"]}
    for name in ("gold passes", "gold without its last call", "three repeats agree", "silent fails", "random fails"):
        assert found[name] == "ok"


async def play(world, task, *calls, answer):
    actions = [*(Action(calls=(Call("x", name, arguments),)) for name, arguments in calls), Action(answer=answer)]
    return await Harness(world).run(task, Script({task.id: tuple(actions)}))


async def test_the_reasons_name_the_rows_that_are_wrong(shop, world):
    task = next(task for task in tasks_of(shop) if task.template == "change")
    look, change = task.setup["plan"]
    (line,) = task.answer["changes"]
    assert (await play(world, task, look, change, answer="Done")).success
    lazy = await play(world, task, look, answer="Done")
    assert lazy.verdict.reasons == (f"missing: {line}",)
    blind = await play(world, task, change, answer="Done")
    assert "not in this episode: saw" in blind.verdict.reasons[0]
    more = await play(world, task, look, change, ["remove_orders", {"id": 1000}], answer="Done")
    assert more.verdict.reasons[0].startswith('not asked for: orders - {"id": 1000')


async def test_what_is_missing_must_be_looked_for_before_it_is_declined(shop, world):
    task = next(task for task in tasks_of(shop) + tasks_of(shop, "train") if task.template == "missing")
    assert not (await play(world, task, answer="Cannot answer: no such entry.")).success
    assert (await play(world, task, *task.setup["plan"], answer="Cannot answer: no such entry.")).success
    assert not (await play(world, task, *task.setup["plan"], answer="Oslo")).success


async def test_tools_refuse_what_the_tables_do_not_allow(shop, world):
    (task, *_) = tasks_of(shop)
    made = world()
    made.reset(task)
    for work, cause in [
        (lambda: made.find_orders("status", "open"), "at most 20"),
        (lambda: made.change_orders(1000, "customer_id", "999"), "no customers 999"),
        (lambda: made.change_customers(1, "points", "many"), "whole number"),
        (lambda: made.change_customers(1, "points", "9" * 40), "whole number"),
        (lambda: made.change_customers(77, "city", "Oslo"), "no customers 77"),
        (lambda: made.add_orders(customer_id=999), "no customers 999"),
        (lambda: made.remove_orders(5), "no orders 5"),
    ]:
        with pytest.raises(ValueError, match=cause):
            work()
    (busy,) = made.database.execute("SELECT customer_id FROM orders LIMIT 1").fetchone()
    with pytest.raises(ValueError, match="rows of orders refer to"):
        made.remove_customers(busy)


def test_a_schema_without_rows_gets_invented_ones_also_where_tables_refer_to_each_other(tmp_path):
    (tmp_path / "team.sql").write_text(SCRIPT)
    made = new_world([tmp_path / "team.sql"], tmp_path / "team", count=2)
    assert made["tables"] == {"people": 60, "teams": 60, "tickets": 60}
    assert made["notes"] == ["no table has rows: invented some"]
    data = sqlite3.connect(tmp_path / "team" / "data.sqlite")
    assert {row[0] for row in data.execute("SELECT DISTINCT state FROM tickets")} == {"open", "done", "stuck"}
    assert data.execute("PRAGMA foreign_key_check").fetchall() == []
    data.close()


def test_a_database_keeps_its_rows_and_what_can_not_be_worked_on_is_said(tmp_path):
    source = sqlite3.connect(tmp_path / "a.db")
    source.executescript("""
        CREATE TABLE items(id INTEGER PRIMARY KEY, label TEXT, picture BLOB, owner INTEGER REFERENCES gone(id));
        CREATE TABLE pairs(a INT, b INT, note TEXT, PRIMARY KEY(a, b));
        CREATE TABLE void(id INTEGER PRIMARY KEY, x);
        CREATE VIEW v AS SELECT 1;
        CREATE TABLE gone(id INTEGER PRIMARY KEY, t TEXT);
        INSERT INTO gone VALUES(1, 'one');
    """)
    source.executemany("INSERT INTO items VALUES(?, ?, x'00ff', 7)", [(n, f"thing {n}") for n in range(30)])
    source.executemany("INSERT INTO pairs VALUES(?, ?, ?)", [(n, n + 1, f"note {n % 3}") for n in range(1200)])
    source.commit()
    source.close()
    made = new_world([tmp_path / "a.db"], tmp_path / "out", name="mine", count=2)
    assert made["tables"] == {"items": 30, "pairs": 1000, "gone": 1}
    assert made["notes"] == [
        "items: binary data left out: picture",
        "pairs: the first 1000 of 1200 rows are taken",
        "void is empty: left out",
        "items.owner: 1 values name no row of gone: taken as plain values",
    ]
    text = (tmp_path / "out" / "mine_world.py").read_text()
    assert "def change_pairs(self, row_id: int," in text
    assert "picture" not in text


@pytest.mark.parametrize(
    ("name", "content", "cause"),
    [
        ("a.csv", b"id,name\n1,a\n2,b,c\n", r"a\.csv:3: 3 fields, the first line names 2 columns"),
        ("a.csv", b"", "empty; the first line must name the columns"),
        ("a.csv", b"id,name\n", "a: no rows"),
        ("a.csv", b"x,X\n1,2\n", "column 'x' occurs twice"),
        ("a.csv", b"x,\n1,2\n", "column '' has no name"),
        ("a.csv", b'id,name\n1,"x\n', "not valid CSV"),
        ("a.csv", b"\x00\x01\x02", "binary"),
        ("quintain_log.csv", b"id,name\n1,a\n", "table 'quintain_log': this name is kept"),
        ("SQLite_x.csv", b"id,name\n1,a\n", "table 'SQLite_x': this name is kept"),
        ("a.sql", b"", "no tables"),
        ("a.sql", b"ATTACH '/etc/hostname' AS x;", "not authorized"),
        ("a.sql", b"PRAGMA writable_schema = 1;", "not authorized"),
        ("a.sql", b"CREATE TABLE t(id INT AUTO_INCREMENT) ENGINE=InnoDB;", "syntax error"),
        (
            "a.sql",
            b"CREATE TABLE a(id INTEGER PRIMARY KEY, b INTEGER NOT NULL REFERENCES b(id));"
            b"CREATE TABLE b(id INTEGER PRIMARY KEY, a INTEGER NOT NULL REFERENCES a(id));",
            "tables a, b refer to each other in a circle",
        ),
        ("a.sql", b"CREATE TABLE t(id INTEGER PRIMARY KEY);", "nothing to ask for"),
        ("a.sql", b"".join(b"CREATE TABLE t%d(x);" % n for n in range(9)), "9 tables > 8"),
        ("a.db", b"SQLite format 3\0 and no more", "file is not a database"),
        ("a.xlsx", b"PK", "neither a SQLite database nor"),
    ],
)
def test_what_can_not_be_read_is_one_line_and_leaves_nothing_behind(tmp_path, capsys, name, content, cause):
    (tmp_path / name).write_bytes(content)
    assert main(["worlds", "new", str(tmp_path / name), "--out", str(tmp_path / "w")]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("quintain: ")]
    assert len(said) == 1
    assert re.search(cause, said[0])
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_missing_files_unknown_tables_mixtures_and_folders_in_the_way_are_refused(tmp_path):
    folder = write_shop(tmp_path / "csv", 4, 4)
    script = tmp_path / "a.sql"
    script.write_text(SCRIPT)
    (tmp_path / "there").mkdir()
    for sources, options, cause in [
        ([tmp_path / "no.csv"], {}, "no such file"),
        ([tmp_path / "there"], {}, "no .*csv in this folder"),
        ([script, folder], {}, "give one database or one"),
        ([folder], {"tables": ["users"]}, "no table 'users'"),
        ([folder], {"name": "9 lives"}, "letter first"),
    ]:
        with pytest.raises(InputError, match=cause):
            new_world(sources, tmp_path / "w", **options)
    with pytest.raises(InputError, match="exists already"):
        new_world([folder], tmp_path / "there")


def test_a_table_with_a_strange_name_is_a_table_like_any_other(tmp_path):
    rows = "\n".join(f"{n},Thing {n},{n % 3}" for n in range(1, 20))
    (tmp_path / 'a "b" c.csv').write_text(f'id,"na""me",select\n{rows}\n')
    made = new_world([tmp_path / 'a "b" c.csv'], tmp_path / "out", count=2)
    assert made["tables"] == {'a "b" c': 19}
    assert [level["accepted"] for level in made["levels"][:2]] == [4, 4]


def test_other_encodings_and_separators_are_read_and_codes_stay_texts(tmp_path):
    rows = "\n".join(f"{n};Müller {n};{n:03d};{n}.5;Köln;Straße {n}" for n in range(1, 25))
    (tmp_path / "kunden.csv").write_bytes(f"id;name;plz;wert;stadt;straße\n{rows}\n".encode("cp1252"))
    new_world([tmp_path / "kunden.csv"], tmp_path / "out", count=2)
    data = sqlite3.connect(tmp_path / "out" / "data.sqlite")
    assert data.execute("SELECT * FROM kunden WHERE id = 7").fetchone() == (
        7,
        "Müller 7",
        "007",
        7.5,
        "Köln",
        "Straße 7",
    )
    data.close()
    prompts = [task.prompt for task in load_tasks(tmp_path / "out" / "eval.jsonl")]
    assert any("Müller" in prompt for prompt in prompts)


def test_a_given_agent_is_measured_by_level_and_levels_stop_where_it_solves_nothing(tmp_path):
    @asynccontextmanager
    async def silent():
        yield SilentAgent()

    made = new_world([write_shop(tmp_path / "csv")], tmp_path / "out", count=3, agent=silent)
    assert [level["agent"] for level in made["levels"]] == [(0, 3)]
    assert made["lines"][1].endswith("the agent solves 0 of 3 (0%)")


def test_an_agent_whose_episodes_all_break_stops_it_with_the_cause_and_is_no_agent_that_solves_nothing(tmp_path):
    class Unreachable(SilentAgent):
        async def act(self, view):
            raise InfraError("no answer from 127.0.0.1:9")

    @asynccontextmanager
    async def unreachable():
        yield Unreachable()

    with pytest.raises(InputError, match=r"all of its 2 episodes broke: .*no answer from 127\.0\.0\.1:9"):
        new_world([write_shop(tmp_path / "csv")], tmp_path / "out", count=2, agent=unreachable)


def test_what_a_program_wrote_to_a_database_that_it_still_has_open_is_read(tmp_path):
    writer = sqlite3.connect(tmp_path / "a.db")
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE things(id INTEGER PRIMARY KEY, label TEXT)")
    writer.executemany("INSERT INTO things VALUES(?, ?)", [(n, f"thing {n}") for n in range(30)])
    writer.commit()
    (table,) = read_sources([tmp_path / "a.db"])
    assert len(table.rows) == 30
    writer.close()


def test_prompts_are_english_and_chinese_in_turn_where_both_are_asked_for(tmp_path):
    folder = write_shop(tmp_path / "csv")
    made = new_world([folder], tmp_path / "out", count=4, languages=["zh", "en"])
    assert [level["played"]["reference"] for level in made["levels"]] == [(8, 8)] * 5
    assert [level["rejected"] for level in made["levels"]] == [[]] * 5
    tasks = load_tasks(tmp_path / "out" / "eval.jsonl")
    for language in ("en", "zh"):
        spoken = [task for task in tasks if f"lang:{language}" in task.tags]
        assert len(spoken) == 10
        assert {language_of(task.prompt) for task in spoken} == {language}
    with pytest.raises(InputError, match=r"worlds new: languages \['fr'\]: allowed are en, zh"):
        new_world([folder], tmp_path / "fr", languages=["fr"])


def test_columns_beyond_what_a_tool_can_take_are_left_out_and_csv_files_may_end_in_capitals(tmp_path):
    rows = [",".join(f"{row}x{column}" for column in range(2100)) for row in range(3)]
    (tmp_path / "wide.CSV").write_text("\n".join([",".join(f"c{column}" for column in range(2100)), *rows]))
    _, made, notes = tidy(read_sources([tmp_path]), (), 0)
    assert [one.name for one in made["wide"].columns] == [f"c{column}" for column in range(100)]
    assert notes == ["wide: the first 100 of 2100 columns are taken"]


def test_a_model_is_measured_from_the_command_line(tmp_path, capsys):
    folder = write_shop(tmp_path / "csv")
    model = save_tiny(tmp_path / "model")
    out = tmp_path / "out"
    assert main(["worlds", "new", str(folder), "--out", str(out), "--tasks", "2", "--model", str(model), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["levels"][0]["agent"] == [0, 2]
    assert sorted(path.name for path in out.iterdir()) == [
        "data.sqlite", "eval.jsonl", "out_world.py", "recipe.toml", "train.jsonl",
    ]  # fmt: skip


def test_a_task_whose_spoiled_solution_passes_is_rejected_with_the_reason(shop, world):
    class Lenient(world):
        """Forgives rows that nobody asked for."""

        def verify(self, task, episode):
            found = super().verify(task, episode)
            reasons = tuple(one for one in found.reasons if not one.startswith("not asked for"))
            return type(found)(success=not reasons, reasons=reasons)

    task = next(task for task in tasks_of(shop) if task.template == "change")
    key = next(key for key in range(1, 31) if ["customers", key] not in task.answer["seen"])
    disturb = Call("d", "change_customers", {"id": key, "column": "city", "value": "nobody asked"})
    examined = Acceptance(Lenient, lambda _: disturb, 0).examine([task])
    assert examined.kept == []
    assert examined.rejected == [f"{task.id}: a mutated agent succeeds"]
    assert Acceptance(world, lambda _: disturb, 0).examine([task]).kept == [task]


def test_a_solution_that_knows_what_it_has_not_read_is_rejected(shop, world):
    task = next(task for task in tasks_of(shop) if task.template == "change")
    hidden = type(task)(**{**{name: getattr(task, name) for name in task.__slots__}, "prompt": "Do what is needed."})
    disturb = Call("d", "remove_orders", {"id": 1000})
    (reason,) = Acceptance(world, lambda _: disturb, 0).examine([hidden]).rejected
    assert "without having read it" in reason


def test_spoiled_solutions_differ_from_the_solution_in_one_thing():
    calls = [
        Action(calls=(Call("a", "find_t", {"column": "id", "value": "3"}),)),
        Action(calls=(Call("b", "change_t", {"id": 3, "column": "n", "value": "x"}),)),
    ]
    solution = (*calls, Action(answer="Done"))
    disturb = Call("d", "remove_t", {"id": 9})
    found = spoiled(solution, {"change_t", "remove_t"}, disturb)
    assert len(found) == 5  # last call gone, another row, declined, another key, another value
    assert solution not in found
    altered = [one[1].calls[0].arguments for one in found if len(one) == 3 and one[1] not in calls and one[1].calls]
    assert {"id": 4, "column": "n", "value": "x"} in altered
    assert {"id": 3, "column": "n", "value": "xx"} in altered


NAMES = st.text(min_size=1, max_size=12).filter(lambda text: "\0" not in text)


@settings(max_examples=25)
@given(NAMES, st.lists(NAMES, min_size=2, max_size=4, unique_by=str.casefold), st.sampled_from(["INTEGER", "TEXT"]))
def test_whatever_tables_and_columns_are_called_the_module_is_python_and_runs_nothing_of_it(name, columns, kind):
    key, *rest = columns
    table = Table(name, Column(key, kind), tuple(Column(one, "TEXT") for one in rest))
    text = module_text("w", {name: table}, names_of({name: table}))
    made = {"__file__": "w.py", "__name__": "generated"}
    sys.modules["generated"] = type(sys)("generated")  # where annotations are looked up
    vars(sys.modules["generated"]).update(made)
    exec(compile(text, "w.py", "exec"), vars(sys.modules["generated"]))
    tools = sys.modules.pop("generated").W().toolset()
    assert len(tools) == 4
    find = next(one for one in tools if one.name.startswith("find_"))
    assert find.parameters["properties"]["column"]["enum"] == columns
