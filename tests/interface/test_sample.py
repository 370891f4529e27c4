"""Samples: conversations or texts, one JSON line each, streamed."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.interface.errors import InputError
from quintain.interface.messages import Action, Call, Observation, message
from quintain.interface.sample import Sample, read_samples, write_samples

ASK = message("user", "What is the capital of Chad?")
LOOK = Action("I look it up.", (Call("c0", "search", {"query": "Chad"}),))
SEEN = Observation("c0", "search", "Chad: Country.")
SAY = Action("Found it.", answer="N'Djamena")
PLAN = Sample("1", "planning", "en", "country:TD", "sha256:00", (ASK, LOOK), tags=("style:factual",))
WHOLE = Sample("2", "has", "en", "country:TD", "sha256:00", (ASK, LOOK, SEEN, SAY))
PLAIN = Sample("3", "general", "zh", "notes", text="乍得的首都是恩贾梅纳。\u2028第二行")


def test_a_file_gives_back_what_was_written(tmp_path):
    path = tmp_path / "deep" / "samples.jsonl"
    assert write_samples(path, iter([PLAN, WHOLE, PLAIN])) == 3
    assert list(read_samples(path)) == [PLAN, WHOLE, PLAIN]


def test_every_sample_is_one_line_of_plain_utf8(tmp_path):
    path = tmp_path / "samples.jsonl"
    write_samples(path, [PLAN, PLAIN])
    first, second = path.read_bytes().decode("utf-8").strip("\n").split("\n")
    assert json.loads(first)["messages"][1] == {
        "role": "assistant",
        "thought": "I look it up.",
        "calls": [{"id": "c0", "tool": "search", "arguments": '{"query": "Chad"}'}],
        "answer": None,
    }
    assert "乍得" in second


@given(st.text(min_size=1), st.text(min_size=1), st.text())
def test_any_text_survives(tmp_path_factory, name, text, thought):
    path = tmp_path_factory.mktemp("samples") / "samples.jsonl"
    samples = [
        Sample(name, "general", "en", "c", text=text),
        Sample(name, "planning", "en", "c", messages=(ASK, Action(thought, answer=text))),
    ]
    write_samples(path, samples)
    assert list(read_samples(path)) == samples


def test_unlearnt_parts_survive_and_must_lie_in_the_text_in_order(tmp_path):
    path = tmp_path / "samples.jsonl"
    sample = Sample("1", "has", "en", "c", text="Observation: 4\nNext", unlearnt=((0, 3), (13, 14)))
    write_samples(path, [sample])
    assert list(read_samples(path)) == [sample]
    for parts in (((2, 1),), ((0, 20),), ((3, 5), (1, 2))):
        with pytest.raises(ValueError, match="are no parts of a text of 19 characters in order"):
            Sample("1", "has", "en", "c", text="Observation: 4\nNext", unlearnt=parts)


def test_half_a_character_becomes_a_question_mark(tmp_path):
    path = tmp_path / "samples.jsonl"
    write_samples(path, [Sample("1", "general", "en", "c", text="a\ud800b")])
    assert next(read_samples(path)).text == "a?b"


def test_reading_stops_where_the_reader_stops(tmp_path):
    path = tmp_path / "samples.jsonl"
    write_samples(path, [PLAN])
    with path.open("ab") as file:
        file.write(b"{broken\n")
    assert list(islice(read_samples(path), 1)) == [PLAN]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{broken", "not valid JSON"),
        ("[1]", "a sample is a JSON object, found list"),
        ('{"id": "1", "source": "x", "language": "en", "cluster": "c", "txt": "a"}', "unknown key 'txt'"),
        ('{"id": 1, "source": "x", "language": "en", "cluster": "c", "text": "a"}', "'id' must be text, found 1"),
        ('{"id": "1", "source": "", "language": "en", "cluster": "c", "text": "a"}', "'source' must not be empty"),
        ('{"id": "1", "source": "x", "language": "en", "cluster": "c"}', "either messages or a text"),
        ('{"id": "1", "source": "x", "language": "en", "cluster": "c", "messages": [{"role": "user"}]}', "'content'"),
        (
            '{"id": "1", "source": "x", "language": "en", "cluster": "c", '
            '"messages": [{"role": "user", "content": [{"type": "image"}]}]}',
            "version 1 accepts text only",
        ),
        (
            '{"id": "1", "source": "x", "language": "en", "cluster": "c", "messages": [{"role": "robot"}]}',
            "role 'robot'",
        ),
    ],
)
def test_a_bad_line_is_one_error_that_names_it(tmp_path, line, complaint):
    path = tmp_path / "samples.jsonl"
    write_samples(path, [PLAN])
    with path.open("a") as file:
        file.write("\n" + line + "\n")
    with pytest.raises(InputError) as error:
        list(read_samples(path))
    assert str(error.value).startswith(f"{path}:3: ")
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "messages",
    [
        (LOOK,),
        (ASK, SEEN),
        (ASK, LOOK, ASK),
        (ASK, LOOK, SEEN, SEEN),
        (ASK, Action(calls=(Call("a", "t", {}), Call("b", "t", {}))), Observation("b", "t", "")),
        (ASK, Action(calls=(Call("a", "t", {}), Call("b", "t", {}))), Observation("a", "t", "")),
    ],
)
def test_actions_and_observations_alternate(messages):
    with pytest.raises(ValueError, match=r"begin with|observation"):
        Sample("1", "planning", "en", "c", messages=messages)


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "samples.jsonl"
    write_samples(path, [PLAN])

    def breaks():
        yield WHOLE
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_samples(path, breaks())
    assert list(read_samples(path)) == [PLAN]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="sample file not found"):
        list(read_samples(tmp_path / "none.jsonl"))
