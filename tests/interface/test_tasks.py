"""Task files: one JSON line each, every mistake named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values

from quintain.interface.errors import InputError
from quintain.interface.tasks import Task, load_tasks, save_tasks, task_from_json

GOOD = {"id": "1", "world": "desk", "prompt": "茶?"}


def write(folder: Path, text: str) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_tasks_survive_the_file(tmp_path: Path) -> None:
    tasks = [
        Task("1", "desk", "茶?\nNow.", {"a": [1]}, {"b": None}, "tea", "look-up", ("lang:zh",)),
        Task("2", "desk", "one\u2028two\x85three", cluster="2"),
    ]
    save_tasks(tmp_path / "new" / "tasks.jsonl", tasks)
    assert load_tasks(tmp_path / "new" / "tasks.jsonl") == tasks


texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@given(prompt=texts, answer=json_values, tags=st.lists(texts, max_size=2).map(tuple))
def test_any_task_reads_back_as_itself(prompt: str, answer: Any, tags: tuple[str, ...]) -> None:
    task = Task("1", "desk", prompt, {"x": answer}, answer, "c", "t", tags)
    assert task_from_json(task.to_json(), "here") == task


def test_one_user_message_may_stand_for_the_prompt() -> None:
    record = {"id": "1", "world": "desk", "messages": [{"role": "user", "content": "茶?"}]}
    assert task_from_json(record, "here").prompt == "茶?"


def test_a_task_is_its_own_cluster_unless_it_says_otherwise() -> None:
    assert task_from_json(GOOD, "here").cluster == "1"
    assert task_from_json(GOOD | {"cluster": "tea"}, "here").cluster == "tea"


def test_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, '\n{"id": "1", "world": "desk", "prompt": "a"}\n   \n')
    assert [task.id for task in load_tasks(path)] == ["1"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"promt": "x"}, "unknown key 'promt'; allowed: id, world, prompt"),
        ({"id": ""}, "'id' must be a non-empty string, found ''"),
        ({"world": 3}, "'world' must be a non-empty string, found 3"),
        ({"prompt": None}, "'prompt' must be a non-empty string, found None"),
        ({"setup": []}, "'setup' must be an object, found list"),
        ({"cluster": 3}, "'cluster' must be text, found 3"),
        ({"template": None}, "'template' must be text, found None"),
        ({"tags": "lang:en"}, "'tags' must be a list of texts, found 'lang:en'"),
        ({"tags": [1]}, "'tags' must be a list of texts"),
    ],
)
def test_a_wrong_key_is_named_with_its_place(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        task_from_json(GOOD | change, "tasks.jsonl:3")
    assert str(caught.value).startswith("tasks.jsonl:3: ")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "x"}],
        [{"role": "user", "content": ["x"]}],
        "x",
        [{"role": "user", "content": "x"}] * 2,
    ],
)
def test_other_messages_are_refused(messages: Any) -> None:
    with pytest.raises(InputError, match="exactly one user message"):
        task_from_json({"id": "1", "world": "desk", "messages": messages}, "here")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", ":1: not valid JSON"),
        ("[" * 100_000, ":1: not valid JSON"),
        ('{"id": "1", "world": "desk", "prompt": "a"}\n[]', ":2: a task is a JSON object, found list"),
        ('{"id": "1", "world": "w", "prompt": "a"}\n\n{"id": "1", "world": "w", "prompt": "a"}',
         ":3: task id '1' already stands on line 1"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_tasks(write(tmp_path, text))


def test_a_line_that_is_no_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(b'{"id": "1", "world": "desk", "prompt": "a"}\n{"id": "\xff"}\n')
    with pytest.raises(InputError, match=r":2: not valid JSON: .*utf-8"):
        load_tasks(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"task file not found: .*none\.jsonl"):
        load_tasks(tmp_path / "none.jsonl")
