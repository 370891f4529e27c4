"""Formats of others: what is written reads back the same, and what can't be read is rejected with its reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interface.strategies import json_values, plain, tricky
from quintain.curation.formats.atif import from_atif, to_atif
from quintain.curation.formats.chat import read_chat, write_chat
from quintain.curation.formats.columns import Origin, Rejected
from quintain.curation.formats.sharegpt import from_sharegpt, to_sharegpt
from quintain.interface.episode import Episode, Outcome, Usage, Verdict
from quintain.interface.errors import FormatError
from quintain.interface.lesson import Lesson
from quintain.interface.messages import FORMAT_CALL_ID, Action, Call, Observation, Turn, message
from quintain.interface.tools import Tool, Toolset

TOOLS = Toolset(
    [
        Tool("search", "Finds pages.", {"type": "object", "properties": {}}),
        Tool("open", "Opens a page.", {"type": "object", "additionalProperties": True}),
    ]
)
ORIGIN = Origin("file", 1)

MARKS = [
    ("", "", False),
    ("exception", "", False),
    ("", "stale", False),
    ("timeout", "timeout", False),
    ("exception", "tool_gone", True),
]
"""Error and injected fault of a result."""

texts = tricky.map(lambda text: text.replace("<think>", "").replace("</think>", "").replace("<tool_call>", "")) | plain


@st.composite
def turns(draw, number, malformed=True):
    """Turn `number`: calls with results, some of them errors, or an answer, or a text nobody could read."""
    kind = draw(st.sampled_from(["calls", "answer", *(["malformed", "summary"] if malformed else [])]))
    if kind == "summary":
        return Turn(Action(thought=draw(texts), summary=draw(texts)))
    if kind == "answer":
        return Turn(Action(thought=draw(texts), answer=draw(texts)))
    if kind == "malformed":
        seen = Observation(FORMAT_CALL_ID, "", "Format error (json): bad", error="format", format_kind="json")
        return Turn(Action(error=FormatError("json", "bad"), text=draw(plain)), (seen,))
    calls, seen = [], []
    for index in range(draw(st.integers(1, 3))):
        call = Call(f"{number}.{index}", draw(st.sampled_from(TOOLS.names)), draw(st.dictionaries(plain, json_values)))
        calls.append(call)
        error, fault, permanent = draw(st.sampled_from(MARKS))
        seen.append(Observation(call.id, call.tool, draw(texts), error=error, fault=fault, permanent=permanent))
    return Turn(Action(thought=draw(texts), calls=tuple(calls)), tuple(seen))


@st.composite
def episodes(draw, malformed=True):
    made = [draw(turns(number, malformed)) for number in range(draw(st.integers(1, 5)))]
    said = {
        number: message("user", draw(texts))
        for number, turn in enumerate(made[:-1], start=1)
        if turn.action.answer is not None
    }
    opening = [message("system", "You have tools.")] if draw(st.booleans()) else []
    return Episode(
        id="e1",
        task_id="t1",
        cluster="c1",
        world="w",
        agent="a",
        template=draw(plain),
        tags=("lang:en",),
        messages=(*opening, message("user", draw(texts))),
        turns=tuple(made),
        outcome=Outcome("limit", "turns") if made[-1].action.answer is None else Outcome("answered"),
        verdict=draw(st.sampled_from([None, Verdict(True), Verdict(False, 0.5)])),
        usage=Usage(),
        user_messages=said,
    )


def content(episode: Episode, marks: bool = True):
    """All that an exchange keeps."""
    seen = [[(one.call_id, one.content) for one in turn.observations] for turn in episode.turns]
    told = [(one.error, one.fault, one.permanent) for turn in episode.turns for one in turn.observations if marks]
    where = (episode.id, episode.task_id, episode.cluster, episode.world, episode.template, episode.tags)
    judged = (str(episode.outcome), episode.success, episode.verdict.score if episode.verdict else None)
    actions = [turn.action for turn in episode.turns]
    return where, episode.messages, actions, seen, told, judged, dict(episode.user_messages)


def through_json(record):
    return json.loads(json.dumps(record))


@given(episodes())
@settings(max_examples=60)
def test_messages_read_back_as_they_were_written(episode):
    back, toolset = read_chat(through_json(write_chat(episode, TOOLS)), ORIGIN)
    assert content(back) == content(episode)
    assert toolset.digest == TOOLS.digest


@given(episodes())
@settings(max_examples=60)
def test_atif_reads_back_as_it_was_written(episode):
    written = through_json(to_atif(write_chat(episode, TOOLS), episode))
    back, toolset = read_chat(from_atif(written), ORIGIN)
    assert content(back) == content(episode)
    assert toolset.digest == TOOLS.digest


@given(episodes(malformed=False))
@settings(max_examples=60)
def test_sharegpt_reads_back_as_it_was_written_but_for_the_marks_of_errors(episode):
    written = through_json(to_sharegpt(write_chat(episode, TOOLS)))
    back, toolset = read_chat(from_sharegpt(written), ORIGIN)
    assert content(back, marks=False) == content(episode, marks=False)
    assert toolset.digest == TOOLS.digest


def test_the_example_of_trls_documentation_is_read():
    """Dataset formats, section Tool Calling: no ids of calls, results by name, arguments as an object."""
    record = {
        "messages": [
            {"role": "user", "content": "Turn on the living room lights."},
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "type": "function",
                        "function": {"name": "control_light", "arguments": {"room": "living room", "state": "on"}},
                    }
                ],
            },
            {"role": "tool", "name": "control_light", "content": "The lights in the living room are now on."},
            {"role": "assistant", "content": "Done!"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "control_light",
                    "description": "Controls the lights in a room.",
                    "parameters": {
                        "type": "object",
                        "properties": {"room": {"type": "string"}, "state": {"type": "string"}},
                        "required": ["room", "state"],
                    },
                    "return": {"type": "string"},
                },
            }
        ],
    }
    episode, toolset = read_chat(record, ORIGIN)
    assert episode.calls() == [("control_light", {"room": "living room", "state": "on"})]
    assert episode.turns[0].observations[0].content == "The lights in the living room are now on."
    assert (episode.answer, str(episode.outcome), episode.verdict) == ("Done!", "answered", None)
    assert toolset.names == ["control_light"]


def test_the_example_of_sharegpt_with_a_call_is_read():
    record = {
        "conversations": [
            {"from": "human", "value": "How old am I?"},
            {"from": "function_call", "value": '{"name": "age", "arguments": {"born": 1990}}'},
            {"from": "observation", "value": '{"age": 31}'},
            {"from": "gpt", "value": "You are 31."},
        ],
        "system": "Be brief.",
        "tools": '[{"name": "age", "description": "Computes.", "parameters": {"type": "object"}}]',
    }
    episode, _ = read_chat(from_sharegpt(record), ORIGIN)
    assert [one.role for one in episode.messages] == ["system", "user"]
    assert episode.calls() == [("age", {"born": 1990})]
    assert episode.answer == "You are 31."


CALL = {"id": "a", "function": {"name": "search", "arguments": {}}}
OTHER = {"id": "b", "function": {"name": "open", "arguments": "{}"}}
ASKED = {"role": "user", "content": "?"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
SEEN = {"role": "tool", "tool_call_id": "a", "content": "found"}
ANSWERED = {"role": "assistant", "content": "42"}


def read(*messages, **more):
    return read_chat({"messages": list(messages), **more}, ORIGIN)[0]


@pytest.mark.parametrize(
    ("messages", "reason", "detail"),
    [
        ([ASKED, CALLED, ANSWERED], "missing_result", "message 1: 1 calls, 0 results"),
        ([ASKED, {**CALLED, "tool_calls": [CALL, OTHER]}, SEEN, ANSWERED], "missing_result", "2 calls, 1 results"),
        ([ASKED, CALLED, {**SEEN, "tool_call_id": "z"}], "missing_result", "message 1: results of z, calls a"),
        ([ASKED, SEEN, ANSWERED], "orphan_result", "message 1: a tool's result without a call"),
        ([ASKED, CALLED, SEEN, SEEN, ANSWERED], "orphan_result", "1 calls, 2 results"),
        (
            [ASKED, CALLED, SEEN, {"role": "system", "content": "Hurry."}, ANSWERED],
            "interruption",
            "message 3: the system",
        ),
        ([ASKED, CALLED, SEEN, ASKED, ANSWERED], "interruption", "message 3: the user speaks before"),
        ([ASKED, ANSWERED, ANSWERED], "several_answers", "message 2: another answer"),
        ([ASKED, ANSWERED, ASKED, ASKED, ANSWERED], "two_messages", "message 3"),
        ([ASKED, {"role": "assistant", "content": None}], "null_content", "message 1: assistant without content"),
        ([{"role": "user", "content": None}, ANSWERED], "null_content", "message 0: user without content"),
        (
            [{"role": "user", "content": [{"type": "image_url"}]}, ANSWERED],
            "image",
            "message 0: part of type 'image_url'",
        ),
        ([ANSWERED], "no_task", "message 0: the agent acts before a user message"),
        ([ASKED], "no_action", "no assistant message"),
        ([ASKED, ANSWERED, ASKED], "no_reply", "the last message is the user's"),
        ([ASKED, {**CALLED, "tool_calls": [CALL, CALL]}, SEEN, SEEN], "call", "two calls share an id: a, a"),
        (
            [ASKED, {"role": "assistant", "content": '<tool_call>{"name": "x"}</tool_call>'}],
            "call_in_text",
            "message 1",
        ),
        ([ASKED, {"role": "critic", "content": "no"}], "role", "role 'critic'"),
        ([ASKED, {**CALLED, "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}, SEEN], "call", "no JSON"),
        ([ASKED, {**CALLED, "tool_calls": [{"name": "f", "arguments": '{"a": NaN}'}]}, SEEN], "call", "no JSON"),
        ([ASKED, {**CALLED, "tool_calls": [{"name": "f", "arguments": "[" * 9**6}]}, SEEN], "call", "no JSON"),
        ([ASKED, {"role": "assistant", "content": "", "function_call": {"name": "f"}}], "call", "'function_call'"),
        ([ASKED, {**ANSWERED, "weight": 0}, ASKED, ANSWERED], "weight", "message 1: weight 0 can't be kept"),
        ([ASKED, {**ANSWERED, "reasoning": {"text": "hm"}}], "content", "reasoning must be text, found dict"),
        ([ASKED, CALLED, {**SEEN, "error": {"code": 1}}, ANSWERED], "mark", "marked {'code': 1}"),
        ([ASKED, CALLED, {**SEEN, "fault": "flood"}, ANSWERED], "mark", "marked 'flood'; known: timeout"),
        ([ASKED, ANSWERED, {"role": "user", "name": "format_error-odd", "content": ""}], "mark", "'odd' is no kind"),
        (
            [
                ASKED,
                {"role": "assistant", "tool_calls": [{"name": "f"}, {"name": "g"}]},
                {"role": "tool", "name": "g", "content": ""},
                {"role": "tool", "name": "f", "content": ""},
            ],
            "orphan_result",
            "message 1: results of g, f, calls of f, g, and no ids",
        ),
    ],
)
def test_what_breaks_the_alternation_or_is_no_text_is_rejected_with_its_reason(messages, reason, detail):
    with pytest.raises(Rejected) as caught:
        read(*messages)
    assert caught.value.reason == reason
    assert detail in caught.value.detail


def test_parallel_calls_are_one_turn_and_results_are_paired_by_id_in_any_order():
    one = {**CALLED, "tool_calls": [CALL, OTHER]}
    other = {"role": "tool", "tool_call_id": "b", "content": "opened"}
    episode = read(ASKED, one, other, SEEN, ANSWERED)
    assert [(seen.tool, seen.content) for seen in episode.turns[0].observations] == [
        ("search", "found"),
        ("open", "opened"),
    ]


def test_ids_that_are_numbers_pair_as_well():
    calls = [{**CALL, "id": 1}, {**OTHER, "id": 2}]
    results = [{"role": "tool", "tool_call_id": number, "content": f"{number}"} for number in (2, 1)]
    episode = read(ASKED, {**CALLED, "tool_calls": calls}, *results, ANSWERED)
    assert [seen.content for seen in episode.turns[0].observations] == ["1", "2"]


@pytest.mark.parametrize("told", [True, "File not found"])
def test_an_error_told_in_other_words_is_an_exception(told):
    assert read(ASKED, CALLED, {**SEEN, "error": told}, ANSWERED).turns[0].observations[0].error == "exception"


@pytest.mark.parametrize(
    ("column", "detail"),
    [
        ({"outcome": "limit(patience)"}, "limit(turns|"),
        ({"success": True, "score": 7}, "'score' must be from 0 to 1, found 7"),
        ({"success": True, "score": float("nan")}, "'score' must be from 0 to 1, found nan"),
        ({"success": True, "outcome": "infra_error"}, "an infra error has no verdict"),
        ({"id": True}, "'id' must be text, found True"),
        ({"videos": ["a.mp4"]}, "'videos' beside the messages; only text is accepted"),
        ({"image": "a.png"}, "'image' beside the messages; only text is accepted"),
        ({"tools": [{"name": "f", "description": 5}]}, "f: 'description' must be text, found int"),
    ],
)
def test_a_column_that_can_not_be_is_rejected(column, detail):
    with pytest.raises(Rejected) as caught:
        read(ASKED, ANSWERED, **column)
    assert detail in caught.value.detail


def test_an_infra_error_gets_no_verdict_from_what_is_assumed():
    record = {"messages": [ASKED, ANSWERED], "outcome": "infra_error"}
    assert read_chat(record, Origin("file", 1, success=True))[0].verdict is None


def test_several_answers_with_the_users_words_between_them_are_one_episode():
    episode = read(ASKED, ANSWERED, {"role": "user", "content": "sure?"}, {"role": "assistant", "content": "43"})
    assert [turn.action.answer for turn in episode.turns] == ["42", "43"]
    assert episode.user_messages[1].text == "sure?"


def test_a_system_message_after_an_answer_is_kept_as_one():
    episode = read(ASKED, ANSWERED, {"role": "system", "content": "Be brief."}, ANSWERED)
    assert episode.user_messages[1].role == "system"


def test_reasoning_and_text_beside_calls_are_the_thought():
    one = {**CALLED, "content": "I search.", "reasoning_content": "Where is it?"}
    assert read(ASKED, one, SEEN, ANSWERED).turns[0].action.thought == "Where is it?\n\nI search."


def test_a_call_that_does_not_fit_its_schema_is_marked_so_that_it_never_carries_loss():
    tools = [{"name": "search", "parameters": {"type": "object", "required": ["query"]}}]
    episode = read(ASKED, CALLED, SEEN, ANSWERED, tools=tools)
    assert episode.turns[0].malformed
    assert episode.turns[0].observations[0].format_kind == "arguments"


def test_nulls_a_table_filled_in_are_dropped_where_the_schema_refuses_them():
    tools = [{"name": "search", "parameters": {"type": "object", "properties": {"limit": {"type": "integer"}}}}]
    call = {"id": "a", "function": {"name": "search", "arguments": {"limit": None}}}
    assert read(ASKED, {**CALLED, "tool_calls": [call]}, SEEN, tools=tools).calls() == [("search", {})]
    tools[0]["parameters"]["properties"]["limit"] = {"type": ["integer", "null"]}
    assert read(ASKED, {**CALLED, "tool_calls": [call]}, SEEN, tools=tools).calls() == [("search", {"limit": None})]


def test_episodes_with_the_same_prompt_share_task_and_cluster():
    one, two = (read_chat({"messages": [ASKED, ANSWERED]}, Origin("f", number))[0] for number in (1, 2))
    assert one.id != two.id
    assert one.task_id == two.task_id == one.cluster


def test_a_lesson_is_written_as_its_window_with_weights_condition_and_judgement():
    turns = tuple(
        Turn(Action(calls=(Call(str(n), "search", {}),)), (Observation(str(n), "search", "x"),)) for n in "012"
    )
    episode = Episode("e", "t", "c", "w", "a", (message("user", "?"),), (*turns, Turn(Action(answer="no"))),
                      Outcome("answered"), Verdict(False), Usage())  # fmt: skip
    lesson = Lesson(
        "s", "e", 2, 4, (2,), condition="It fails.", question="Right?", judgement="My decision is Incorrect."
    )
    record = write_chat(episode, TOOLS, lesson)
    assert [(one["role"], one.get("weight")) for one in record["messages"]] == [
        ("system", None),
        ("user", None),
        ("assistant", 1),
        ("tool", None),
        ("assistant", 0),
        ("user", None),
        ("assistant", 1),
    ]
    assert record["id"] == "e/2-4"
    with pytest.raises(Rejected, match="masked: a turn that carries no loss has no form here"):
        to_sharegpt(record)
    with pytest.raises(Rejected, match=r"weight: message \d: weight 0 can't be kept"):
        read_chat(from_atif(through_json(to_atif(record, episode, 2))), ORIGIN)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"source": "agent", "message": "", "is_copied_context": True}, "copied_context"),
        ({"source": "agent", "message": "", "llm_call_count": 0}, "no_model"),
        ({"source": "system", "message": "", "observation": {"results": [{"content": "x"}]}}, "observation"),
        (
            {"source": "agent", "message": "", "observation": {"results": [{"subagent_trajectory_ref": [{}]}]}},
            "subagent",
        ),
        ({"source": "tool", "message": ""}, "role"),
    ],
)
def test_steps_of_atif_that_are_no_exchange_of_one_agent_with_its_tools_are_rejected(step, reason):
    with pytest.raises(Rejected) as caught:
        from_atif({"schema_version": "ATIF-v1.7", "agent": {}, "steps": [step]})
    assert caught.value.reason == reason


def test_an_unknown_version_of_atif_is_rejected():
    with pytest.raises(Rejected, match=r"known: ATIF-v1.0 to ATIF-v1.8"):
        from_atif({"schema_version": "ATIF-v2.0", "steps": []})
