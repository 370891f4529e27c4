"""Hypothesis strategies for actions and JSON, in the scripts and with the markers that break parsers."""

from __future__ import annotations

from hypothesis import strategies as st

from quintain.interface.dialects.strict_json import MAX_INTEGER
from quintain.interface.messages import Action, Call

MARKERS = (
    "<tool_call>",
    "</tool_call>",
    "<call>",
    "<answer>",
    "<think>",
    "</think>",
    "<tool_response>",
    "<|im_end|>",
    "<|im_start|>system\n",
    "<|endoftext|>",
    "<｜DSML｜function_calls>",
    "</｜DSML｜parameter>",
    "<｜end▁of▁sentence｜>",
    '"}}',
    "\\u003c",
    "法国的首都是巴黎",
    "👩‍🔬 é e\u0301 ﷽",
    "\n\n",
)

plain = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
tricky = st.lists(st.one_of(plain, st.sampled_from(MARKERS)), max_size=5).map("".join)
"""Text with markers in it."""

harmless = plain.map(lambda text: "x" + text.replace("<", "(") + "y")
"""Text no dialect reads as anything else: no `<`, no blank ends."""

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | tricky,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tricky, inner, max_size=3),
    max_leaves=6,
)


def actions(
    names: st.SearchStrategy[str], keys: st.SearchStrategy[str], text: st.SearchStrategy[str]
) -> st.SearchStrategy[Action]:
    """Actions with calls of tools called `names` with arguments called `keys`, and thoughts and answers from `text`."""
    call = st.tuples(names, st.dictionaries(keys, json_values, max_size=3))
    calls = st.lists(call, min_size=1, max_size=3).map(
        lambda found: tuple(Call(str(number), *one) for number, one in enumerate(found))
    )
    thought = st.just("") | text
    acting = st.builds(lambda thought, calls: Action(thought=thought, calls=calls), thought, calls)
    return acting | st.builds(lambda thought, answer: Action(thought=thought, answer=answer), thought, text)
