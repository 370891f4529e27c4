"""Import and export of files: bad records are listed or stop it, good ones become a journal and leave it again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from curation_episodes import answered, called, episode, malformed, write_journal
from hypothesis import given, settings
from hypothesis import strategies as st

from interface.strategies import json_values
from quintain.cli.main import main
from quintain.curation.config import CurationConfig
from quintain.curation.curate import curate
from quintain.curation.exporting import export
from quintain.curation.importing import import_files, imported_toolset
from quintain.interface.errors import InputError
from quintain.interface.reading import JOURNAL, read_episodes
from quintain.interface.tools import Tool, Toolset

TOOLS = Toolset([Tool("search", "Finds pages.", {"type": "object"})])
GOOD = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "42"}]}
BAD = {"messages": [{"role": "user", "content": "?"}]}


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tools_of(home, digest):
    return imported_toolset(home, digest) or TOOLS


def episodes_of(folder):
    return [recorded.episode() for recorded in read_episodes(folder / JOURNAL)]


@pytest.fixture
def mixed(tmp_path):
    return write(tmp_path / "mixed.jsonl", json.dumps(GOOD), json.dumps(BAD), "", "{", "[]", json.dumps(GOOD))


def test_bad_records_are_listed_with_line_and_reason_and_the_others_imported(mixed, tmp_path):
    counts = import_files([mixed], "messages", tmp_path / "out")
    assert (counts.episodes, counts.unscored) == (2, 2)
    assert [(one["line"], one["reason"]) for one in lines(tmp_path / "out" / "rejected.jsonl")] == [
        (2, "no_action"),
        (4, "json"),
        (5, "record"),
    ]
    assert [one.id for one in episodes_of(tmp_path / "out")] == ["mixed-1", "mixed-6"]


def test_strict_stops_at_the_first_and_leaves_no_journal(mixed, tmp_path):
    with pytest.raises(InputError, match=r"mixed.jsonl:2: no_action: no assistant message"):
        import_files([mixed], "messages", tmp_path / "out", strict=True)
    assert not (tmp_path / "out" / JOURNAL).exists()
    import_files([mixed], "messages", tmp_path / "out")


def test_an_import_is_never_written_over(mixed, tmp_path):
    import_files([mixed], "messages", tmp_path / "out")
    with pytest.raises(InputError, match="holds a journal already"):
        import_files([mixed], "messages", tmp_path / "out")


def test_nothing_but_bad_records_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"nothing to import: .*rejected: 1 no_action"):
        import_files([write(tmp_path / "bad.jsonl", json.dumps(BAD))], "messages", tmp_path / "out")


CALLED = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "search", "arguments": "{}"}}]}
SEEN = {"role": "tool", "tool_call_id": "a", "content": ""}
SOUND = {
    "messages": [GOOD["messages"][0], CALLED, SEEN, GOOD["messages"][1]],
    "tools": [{"name": "search", "description": "Finds.", "parameters": {"type": "object", "properties": {}}}],
    "id": "x", "task": "t", "tags": ["lang:en"], "success": True, "score": 1, "outcome": "answered",
}  # fmt: skip
JUNK = [
    None,
    True,
    "",
    -1,
    {},
    [],
    {"$ref": "#"},
    {"$ref": "http://127.0.0.1:9/x"},
    "\ud800",
    float("nan"),
    {"a": [{}]},
]


def places(value, path=()):
    """Where something stands in a JSON value."""
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_whatever_stands_in_a_record_it_is_imported_and_curated_or_rejected(data):
    broken = []
    for _ in range(6):
        record = json.loads(json.dumps(SOUND))
        *path, last = data.draw(st.sampled_from(list(places(SOUND))))
        at = record
        for key in path:
            at = at[key]
        at[last] = data.draw(st.sampled_from(JUNK) | json_values)
        broken.append(record)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "a.json").write_text(json.dumps([*broken, {**GOOD, "id": "good", "success": True}]))
        counts = import_files([home / "a.json"], "messages", home / "out")
        assert counts.episodes + counts.rejected.total() == 7
        assert curate({"out": home / "out"}, CurationConfig(mask="agent"), home / "mix").kept >= 1


@pytest.mark.parametrize(
    "deep", [{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "\ud800"}]}]
)
def test_text_that_is_no_unicode_is_rejected(tmp_path, deep):
    file = write(tmp_path / "a.jsonl", json.dumps(deep), json.dumps(GOOD))
    assert import_files([file], "messages", tmp_path / "out").rejected == {"record": 1}


def test_two_records_with_one_id_are_not_mixed_up(tmp_path):
    file = write(tmp_path / "a.jsonl", *[json.dumps({**GOOD, "id": "x"})] * 2)
    assert import_files([file], "messages", tmp_path / "out").rejected == {"duplicate_id": 1}


def test_broken_utf8_a_byte_order_mark_and_a_torn_line_harm_no_other_line(tmp_path):
    good = json.dumps(GOOD).encode()
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + good + b"\r\n\xff\xfe\n" + good + b"\n" + good[:-9])
    counts = import_files([tmp_path / "a.jsonl"], "messages", tmp_path / "out")
    assert (counts.episodes, counts.rejected) == (2, {"json": 2})
    assert [one["line"] for one in lines(tmp_path / "out" / "rejected.jsonl")] == [2, 4]


def test_json_lines_by_another_name_are_told_how_to_be_read(tmp_path):
    file = write(tmp_path / "a.json", json.dumps(GOOD), json.dumps(GOOD))
    with pytest.raises(InputError, match=r"a.json:1: json: .*the name of a file of JSON Lines ends in .jsonl"):
        import_files([file], "messages", tmp_path / "out", strict=True)


def test_a_list_in_one_json_file_and_a_folder_of_trajectories_are_read(tmp_path):
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps([GOOD, BAD, GOOD]))
    counts = import_files([listed], "messages", tmp_path / "one")
    assert (counts.episodes, counts.rejected) == (2, {"no_action": 1})
    write_journal(tmp_path / "run", [episode("a"), episode("b")])
    export(tmp_path / "run", "atif", tmp_path / "atif", tools_of)
    assert import_files([tmp_path / "atif"], "atif", tmp_path / "two").episodes == 2


@pytest.mark.parametrize("form", ["messages", "sharegpt", "atif"])
def test_a_journal_comes_back_from_every_format(tmp_path, form):
    made = [episode("a"), episode("b", [called(query="x"), called(query="y"), answered()], success=False)]
    write_journal(tmp_path / "run", made)
    export(tmp_path / "run", form, tmp_path / "file.jsonl", tools_of)
    import_files([tmp_path / "file.jsonl"], form, tmp_path / "back")
    back = episodes_of(tmp_path / "back")
    for one, again in zip(made, back, strict=True):
        assert (again.id, again.cluster, again.template, again.tags) == (one.id, one.cluster, one.template, one.tags)
        assert (again.messages, again.calls(), again.answer) == (one.messages, one.calls(), one.answer)
        assert (again.success, again.scored) == (one.success, one.scored)
    assert imported_toolset(tmp_path / "back", back[0].digests.toolset).digest == TOOLS.digest


def test_sharegpt_has_no_form_for_a_malformed_turn_and_says_so(tmp_path):
    write_journal(tmp_path / "run", [episode("a"), episode("b", [malformed(), answered()])])
    assert export(tmp_path / "run", "sharegpt", tmp_path / "f.jsonl", tools_of).rejected == {"malformed": 1}


def test_an_export_is_never_written_over(tmp_path):
    write_journal(tmp_path / "run", [episode("a")])
    (tmp_path / "f.jsonl").touch()
    with pytest.raises(InputError, match="is there already"):
        export(tmp_path / "run", "messages", tmp_path / "f.jsonl", tools_of)


def test_curated_data_is_exported_window_by_window_with_weights(tmp_path):
    long = [*(called(page=number, query="q") for number in range(19)), answered()]
    write_journal(tmp_path / "run", [episode("a", long)])
    curate({"run": tmp_path / "run"}, CurationConfig(mask="agent"), tmp_path / "mix")
    export(tmp_path / "mix", "messages", tmp_path / "f.jsonl", tools_of)
    records = lines(tmp_path / "f.jsonl")
    weights = [[one["weight"] for one in record["messages"] if "weight" in one] for record in records]
    assert weights == [[1] * 16, [0] * 8 + [1] * 4]
    assert all(record["messages"][0]["role"] == "user" for record in records), "the task stays in view"


def test_an_exported_file_loads_as_a_dataset_and_comes_back_from_it(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    made = [
        episode("a", [called(query="x"), answered()]),
        episode("b", [called("open", title="y", page=None), called("open", error="exception", many=[1, "z"])]),
    ]
    write_journal(tmp_path / "run", made)
    export(tmp_path / "run", "messages", tmp_path / "f.jsonl", tools_of)
    table = datasets.load_dataset("json", data_files=str(tmp_path / "f.jsonl"), split="train")
    assert {"messages", "tools", "id", "success"} <= set(table.column_names)
    write(tmp_path / "again.jsonl", *(json.dumps(row) for row in table))
    import_files([tmp_path / "again.jsonl"], "messages", tmp_path / "back")
    assert [one.calls() for one in episodes_of(tmp_path / "back")] == [one.calls() for one in made]


def test_a_chat_template_renders_an_exported_record_with_its_tools(tmp_path, tokenizer):
    """As TRL hands it to the tokenizer: the columns `messages` and `tools`, nothing else."""
    write_journal(tmp_path / "run", [episode("a", [called(query="x"), answered()])])
    export(tmp_path / "run", "messages", tmp_path / "f.jsonl", tools_of)
    (record,) = lines(tmp_path / "f.jsonl")
    template = (
        "{% for tool in tools %}[{{ tool.function.name }}]{% endfor %}{% for one in messages %}{{ one.role }}:"
        "{{ one.content }}{% for call in one.tool_calls %}{{ call.function.name }}"
        "{{ call.function.arguments | tojson }}{% endfor %};{% endfor %}"
    )
    text = tokenizer.apply_chat_template(
        record["messages"], tools=record["tools"], chat_template=template, tokenize=False
    )
    prompt = record["messages"][0]["content"]
    assert text == f'[search]user:{prompt};assistant:search{{"query": "x"}};tool:found;assistant:42;'


def test_the_commands_say_what_they_did_and_2_is_the_code_of_wrong_input(mixed, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["import", str(mixed), "--out", out, "--verdict", "success"]) == 0
    assert "2 episodes imported; rejected: 1 no_action, 1 json, 1 record" in capsys.readouterr().out
    assert main(["export", out, "--format", "sharegpt", "--out", str(tmp_path / "f.jsonl")]) == 0
    assert "2 records written; left out: none" in capsys.readouterr().out
    assert main(["import", str(mixed), "--out", str(tmp_path / "strict"), "--strict"]) == 2
    assert "mixed.jsonl:2: no_action" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "x")]) == 2
    assert "file not found" in capsys.readouterr().err


def test_harbors_own_model_accepts_what_is_exported(tmp_path):
    trajectories = pytest.importorskip("harbor.models.trajectories", reason="`pip install harbor`, Python 3.12")
    write_journal(tmp_path / "run", [episode("a", [malformed(), called(error="exception"), answered()])])
    export(tmp_path / "run", "atif", tmp_path / "atif", tools_of)
    (path,) = (tmp_path / "atif").iterdir()
    assert trajectories.Trajectory.model_validate_json(path.read_text()).session_id == "a"


def test_curate_works_on_folders_without_a_recipe_and_its_result_can_be_exported(mixed, tmp_path, capsys):
    theirs, mix = str(tmp_path / "theirs"), str(tmp_path / "mix")
    other = {**GOOD, "messages": [{"role": "user", "content": "why?"}, *GOOD["messages"][1:]]}
    write(mixed, json.dumps(GOOD), json.dumps(other), json.dumps(GOOD))
    assert main(["import", str(mixed), "--out", theirs, "--verdict", "success"]) == 0
    assert main(["curate", theirs, "--out", mix, "--set", 'mask="agent"', "--set", "seed=3"]) == 0
    assert "2 of 3 episodes kept, 0% of them failures, 2 examples; left out: 1 exact_dup" in capsys.readouterr().out
    assert main(["export", mix, "--out", str(tmp_path / "f.jsonl")]) == 0
    assert [one["messages"][-1]["weight"] for one in lines(tmp_path / "f.jsonl")] == [1, 1]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("mask=agent", "invalid value"),
        ("failure_share=2", "failure_share: input should be less than 1"),
        ("share=0.2", "share: extra inputs are not permitted"),
    ],
)
def test_a_wrong_setting_is_one_line_with_what_is_allowed(tmp_path, capsys, setting, message):
    assert main(["curate", str(tmp_path), "--out", str(tmp_path / "mix"), "--set", setting]) == 2
    told = capsys.readouterr().err.lower()
    assert message in told
    assert "keys: failure_share, mask, window_turns" in told


CALL = {"id": 0, "function": {"name": "search", "arguments": "{}"}}
"""A call whose id is the number 0."""


def rejection(tmp_path, record, form="messages"):
    """The line that stops a strict import of one record."""
    path = write(tmp_path / "one.jsonl", json.dumps(record))
    with pytest.raises(InputError) as stopped:
        import_files([path], form, tmp_path / "out", strict=True)
    return str(stopped.value).removeprefix(f"{path}:1: ")


def chat(*messages, **columns):
    return {"messages": [{"role": "user", "content": "?"}, *messages], **columns}


def sharegpt(*entries, **columns):
    return {"conversations": [{"from": "human", "value": "?"}, *entries], **columns}


@pytest.mark.parametrize(
    ("form", "record", "reason"),
    [
        ("sharegpt", sharegpt({"from": "gpt", "value": "1"}, messages=[]), "messages: both"),
        ("sharegpt", sharegpt({"from": "gpt", "value": "1", "weight": 0}), "weight: message 1"),
        ("sharegpt", sharegpt({"from": "gpt", "value": "1", "train": False}), "weight: message 1"),
        ("sharegpt", sharegpt({"from": "gpt", "value": "1", "image": "a.png"}), "image: 'image' in entry 1"),
        ("sharegpt", sharegpt({"from": "function_call", "value": "<think>I will</think>[]"}), "call: entry 1"),
        ("sharegpt", sharegpt({"from": "gpt", "value": "1"}, system=[]), "content: 'system' must be text"),
        ("messages", chat({"role": "assistant", "content": "1", "images": ["a"]}), "image: 'images' in message 1"),
        ("messages", chat({"role": "assistant", "content": "1"}, score=0.5), "column: 'score' is 0.5 without"),
        ("messages", chat({"role": "x\ny", "content": "1"}), "role: message 1: role 'x"),
    ],
)
def test_what_would_be_lost_without_a_word_is_rejected_in_one_line(tmp_path, form, record, reason):
    said = rejection(tmp_path, record, form)
    assert said.startswith(reason)
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("mark", [{"is_error": True}, {"status": "error"}, {"error": "boom"}])
def test_a_failed_result_is_failed_however_it_is_marked(tmp_path, mark):
    result = {"role": "tool", "tool_call_id": 0, "content": "boom", **mark}
    record = chat({"role": "assistant", "tool_calls": [CALL]}, result, {"role": "assistant", "content": "1"})
    import_files([write(tmp_path / "one.jsonl", json.dumps(record))], "messages", tmp_path / "out")
    (found,) = episodes_of(tmp_path / "out")
    assert (found.turns[0].action.calls[0].id, found.turns[0].observations[0].error) == ("0", "exception")


def test_files_of_one_name_have_episodes_of_different_ids(tmp_path):
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(write(tmp_path / folder / "x.jsonl", json.dumps(GOOD)))
    assert import_files(paths, "messages", tmp_path / "out").episodes == 2
    assert [one.id for one in episodes_of(tmp_path / "out")] == ["x-1", "x~1-1"]


def test_an_import_of_nothing_names_the_first_place_or_the_file(tmp_path):
    bad = write(tmp_path / "bad.jsonl", json.dumps(BAD), "{")
    with pytest.raises(InputError, match=r"1 no_action.*; the first: .*bad\.jsonl:1: no_action: "):
        import_files([bad], "messages", tmp_path / "one")
    with pytest.raises(InputError, match=r"nothing to import: no record in .*empty\.jsonl"):
        import_files([write(tmp_path / "empty.jsonl")], "messages", tmp_path / "two")
