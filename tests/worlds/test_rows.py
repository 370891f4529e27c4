"""The row-level difference of two databases."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from quintain.worlds.rows import differences, open_copy, set_against

SCHEMA = "CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT, age); CREATE TABLE codes(code TEXT PRIMARY KEY, n);"


def database(*statements):
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.row_factory = sqlite3.Row
    made.executescript(SCHEMA)
    made.executescript("INSERT INTO people VALUES(1, 'Ada', 36); INSERT INTO codes VALUES('a', 1);")
    for statement in statements:
        made.execute(statement)
    return made


def test_equal_databases_have_no_difference():
    assert differences(database(), database()) == []


def test_a_changed_value_names_table_key_column_and_both_values():
    assert differences(database(), database("UPDATE people SET age = 37")) == ["people 1: age 36 -> 37"]


def test_a_new_row_leaves_out_a_key_that_sqlite_chose_and_shows_one_that_was_given():
    after = database("INSERT INTO people(name) VALUES('Bo')", "INSERT INTO codes VALUES('b', 2)")
    assert differences(database(), after) == [
        'codes + {"code": "b", "n": 2}',
        'people + {"name": "Bo", "age": null}',
    ]


def test_a_row_that_is_gone_and_one_in_its_place_are_both_told():
    after = database("DELETE FROM people", "INSERT INTO people VALUES(2, 'Ada', 36)")
    assert differences(database(), after) == [
        'people + {"name": "Ada", "age": 36}',
        'people - {"id": 1, "name": "Ada", "age": 36}',
    ]


def test_a_change_of_type_alone_counts():
    assert differences(database(), database("UPDATE people SET age = 36.0")) == ["people 1: age 36 -> 36.0"]


def test_new_and_dropped_tables_count_and_a_log_can_be_left_out():
    after = database("DROP TABLE codes", "CREATE TABLE log(id INTEGER PRIMARY KEY, t)", "INSERT INTO log(t) VALUES(1)")
    assert differences(database(), after) == ['codes - {"code": "a", "n": 1}', 'log + {"t": 1}']
    assert differences(database(), after, ("log", "codes")) == []


def test_repeated_lines_count_as_often_as_they_occur():
    assert set_against(["a", "a", "b"], ["a", "c"]) == (["c"], ["a", "b"])


def test_a_copy_is_apart_from_what_it_was_made_of():
    made = database()
    copy = open_copy(made.serialize())
    copy.execute("DELETE FROM people")
    assert differences(made, database()) == []
    assert len(differences(made, copy)) == 1


@given(st.lists(st.tuples(st.integers(1, 5), st.text(max_size=3)), max_size=6))
def test_there_is_a_difference_exactly_where_the_rows_differ(rows):
    after = database()
    for key, name in rows:
        after.execute("INSERT OR REPLACE INTO people VALUES(?, ?, 36)", (key, name))
    same = [tuple(row) for row in after.execute("SELECT * FROM people")] == [(1, "Ada", 36)]
    assert (differences(database(), after) == []) == same
