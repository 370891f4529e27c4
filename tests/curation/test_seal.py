"""A sealed pool: nobody reads it without the key, every opening is in its log, and a change of anything is noticed."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from quintain.curation import seal as sealing
from quintain.curation.pools import CANARY_TAG, Manifest
from quintain.curation.seal import log_path, open_pool, openings, read_key, read_log, seal, sealed_manifest
from quintain.interface.errors import InputError
from quintain.interface.tasks import Task

TASKS = [Task(f"t{n}", "till", f"How much is tea number {n}?", answer=str(n), tags=("lang:en",)) for n in range(5)]
ABOUT = Manifest(name="eval", world="till", tasks=0, digest="")


@pytest.fixture
def paths(tmp_path):
    return tmp_path / "eval.sealed", tmp_path / "eval.key"


@pytest.fixture
def manifest(paths):
    return seal(TASKS, ABOUT, *paths)


def test_what_was_sealed_comes_back_with_the_pools_canary_on_every_task(paths, manifest):
    tasks, _ = open_pool(*paths, "evaluation", "base")
    assert [(task.id, task.prompt, task.answer) for task in tasks] == [
        (one.id, one.prompt, one.answer) for one in TASKS
    ]
    assert {task.tags for task in tasks} == {("lang:en", CANARY_TAG + manifest.canary)}
    assert sealed_manifest(paths[0]) == manifest
    assert (manifest.tasks, len(manifest.canary)) == (5, 48)


def test_the_file_shows_no_task_but_its_manifest_knows_them(paths, manifest):
    text = paths[0].read_text()
    assert "tea" not in text
    assert "t3" not in json.loads(text)["manifest"]["prompts"]
    assert manifest.owns(" how much is TEA number 3? ")
    assert not manifest.owns("How much is tea number 9?")


def test_two_pools_of_the_same_tasks_have_nothing_in_common(paths, manifest, tmp_path):
    other = seal(TASKS, ABOUT, tmp_path / "two.sealed", paths[1])
    assert other.canary != manifest.canary
    assert other.prompts.isdisjoint(manifest.prompts)


def test_a_new_key_is_readable_for_its_owner_alone_and_an_old_one_is_kept(paths, manifest, tmp_path):
    assert stat.S_IMODE(paths[1].stat().st_mode) == 0o600
    key = read_key(paths[1])
    seal(TASKS, ABOUT, tmp_path / "two.sealed", paths[1])
    assert read_key(paths[1]) == key


def test_the_log_says_who_opened_it_for_which_checkpoint_and_how_often(paths, manifest):
    for checkpoint in ("base", "run/sft", "run/sft"):
        _, log = open_pool(*paths, "evaluation", checkpoint)
    open_pool(*paths, "audit", "")
    assert [entry.purpose for entry in log] == ["seal", "evaluation", "evaluation", "evaluation"]
    assert openings(read_log(paths[0], read_key(paths[1]))) == {"base": 1, "run/sft": 2}
    assert all("@" in entry.who and entry.digest == manifest.digest for entry in log)


def test_openings_at_the_same_time_are_all_written_down(paths, manifest):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: open_pool(*paths, "evaluation", str(n)), range(12)))
    assert openings(read_log(paths[0], read_key(paths[1]))) == {str(n): 1 for n in range(12)}


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def flip(path):
    record = json.loads(path.read_text())
    record["data"] = record["data"][:40] + ("A" if record["data"][40] != "A" else "B") + record["data"][41:]
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    "tamper",
    [
        flip,
        lambda path: change(path, '"tasks": 5', '"tasks": 4'),
        lambda path: change(path, '"world": "till"', '"world": "desk"'),
        lambda path: change(path, '"nonce": "', '"nonce": "00'),
    ],
    ids=["tasks", "count", "world", "nonce"],
)
def test_a_change_of_tasks_or_manifest_is_noticed_and_not_logged_as_an_opening(paths, manifest, tamper):
    tamper(paths[0])
    with pytest.raises(InputError, match="tampered with or damaged"):
        open_pool(*paths, "evaluation", "base")
    assert len(log_path(paths[0]).read_text().splitlines()) == 1


def test_another_pools_key_is_named_as_the_wrong_one(paths, manifest, tmp_path):
    seal(TASKS, ABOUT, tmp_path / "two.sealed", tmp_path / "two.key")
    with pytest.raises(InputError, match=r"two.key is the wrong key for .*eval.sealed: it is [0-9a-f]{16}, the pool"):
        open_pool(paths[0], tmp_path / "two.key", "evaluation", "base")


@pytest.mark.parametrize(
    ("which", "content", "message"),
    [
        (0, b"{", "damaged sealed pool"),
        (0, b"[]", "is no sealed pool of this version"),
        (0, None, "sealed pool not found"),
        (1, b"secret", "holds no key: it must be 64 hexadecimal digits"),
        (1, None, "key file not found"),
    ],
)
def test_a_damaged_or_missing_file_is_one_line(paths, manifest, which, content, message):
    if content is None:
        paths[which].unlink()
    else:
        paths[which].write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        open_pool(*paths, "evaluation", "base")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["format", "key", "nonce", "data"])
def test_a_sealed_file_with_a_number_for_a_text_is_one_line(paths, manifest, key):
    paths[0].write_text(json.dumps(json.loads(paths[0].read_text()) | {key: 5}))
    with pytest.raises(InputError, match="is no sealed pool of this version"):
        open_pool(*paths, "evaluation", "base")


@pytest.mark.parametrize("content", ["", '{"at": 1}\n', "[1]\n", "NaN\n"])
def test_a_log_that_holds_something_else_stops_the_opening(paths, manifest, content):
    log_path(paths[0]).write_text(content)
    with pytest.raises(InputError, match="log of openings"):
        open_pool(*paths, "evaluation", "base")


@pytest.mark.parametrize(("key", "value"), [("chain", None), ("chain", "é"), ("who", float("nan")), ("at", [])])
def test_an_entry_with_a_value_of_another_kind_stops_the_opening(paths, manifest, key, value):
    log = log_path(paths[0])
    log.write_text(json.dumps(json.loads(log.read_text()) | {key: value}) + "\n")
    with pytest.raises(InputError, match="log of openings"):
        open_pool(*paths, "evaluation", "base")


def test_the_log_of_another_pool_with_the_same_key_stops_the_opening(paths, manifest, tmp_path):
    other = tmp_path / "two.sealed"
    seal(TASKS, ABOUT, other, paths[1])
    log_path(other).replace(log_path(paths[0]))
    with pytest.raises(InputError, match="is another pool's"):
        open_pool(*paths, "evaluation", "base")


def test_a_user_without_a_name_is_logged_by_number(paths, monkeypatch):
    """As in a container that is started with a number for a user."""

    def unknown():
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(sealing.getpass, "getuser", unknown)
    seal(TASKS, ABOUT, *paths)
    assert read_log(paths[0], read_key(paths[1]))[0].who.startswith(f"{os.getuid()}@")


@pytest.mark.parametrize("damage", ["change", "drop", "add", "missing", "torn", "first", "no newline"])
def test_a_log_that_was_changed_stops_the_opening(paths, manifest, damage):
    for checkpoint in ("a", "b"):
        open_pool(*paths, "evaluation", checkpoint)
    log = log_path(paths[0])
    lines = log.read_text().splitlines()
    if damage == "missing":
        log.unlink()
    else:
        changed = {
            "change": [lines[0], lines[1].replace('"a"', '"c"'), lines[2]],
            "drop": [lines[0], lines[2]],
            "add": [*lines, lines[2]],
            "torn": [*lines[:2], lines[2][:20]],
            "first": lines[1:],
            "no newline": lines,
        }
        log.write_text("\n".join(changed[damage]) + "\n" * (damage != "no newline"))
    with pytest.raises(InputError, match="log of openings"):
        open_pool(*paths, "evaluation", "d")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "has no tasks"),
        ([TASKS[0], TASKS[0]], "two tasks have the id 't0'"),
        ([Task("a", "till", "What?")], "task 'a' has neither answer nor setup; nothing could be verified"),
    ],
)
def test_what_cannot_be_measured_is_not_sealed(paths, tasks, message):
    with pytest.raises(InputError, match=message):
        seal(tasks, ABOUT, *paths)
    assert not paths[0].exists()


def test_a_sealed_pool_is_never_overwritten(paths, manifest):
    before = paths[0].read_bytes()
    with pytest.raises(InputError, match="is never overwritten"):
        seal(TASKS, ABOUT, *paths)
    assert paths[0].read_bytes() == before


def test_a_full_disk_leaves_no_half_file(paths, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sealing.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        seal(TASKS, ABOUT, *paths)
    assert not paths[0].exists()
    assert not paths[1].exists()
