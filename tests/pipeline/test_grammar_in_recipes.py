"""`sampling.grammar`: a model that knows nothing breaks the form without it, and can't with it."""

from __future__ import annotations

from collections import Counter

import pytest

from quintain.commands.commands import run
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError

FREE = "sampling = { max_tokens = 12 }"
LOOSE = """
from typing import Any

from counter import Counter
from quintain import tool


class Loose(Counter):
    @tool
    def note(self, text: Any) -> str:
        return "noted"
"""


@pytest.fixture
def only_base(recipe_file):
    """The recipe's first stage alone: an evaluation of the untrained model."""
    head, *_ = recipe_file.read_text().split('[[stages]]\nkind = "rollout"')
    recipe_file.write_text(head)
    return recipe_file


def kinds(folder) -> Counter[str]:
    """Turns by the rule they broke, "" for none."""
    episodes, _ = read_journal(folder / "base" / "journal")
    errors = (turn.action.error for episode in episodes for turn in episode.turns)
    return Counter(error.kind if error else "" for error in errors)


def test_with_a_grammar_turns_are_well_formed_unless_they_are_cut(only_base, tmp_path):
    only_base.write_text(only_base.read_text().replace(FREE, "sampling = { max_tokens = 12, grammar = true }"))
    run(only_base, tmp_path / "run")
    found = kinds(tmp_path / "run")
    assert found
    assert set(found) <= {"", "cut"}


def test_a_tool_that_takes_anything_is_refused_before_anything_is_played(only_base, tmp_path):
    (only_base.parent / "loose.py").write_text(LOOSE)
    text = only_base.read_text().replace(FREE, "sampling = { grammar = true }")
    only_base.write_text(text.replace('world = "counter:Counter"', 'world = "loose:Loose"'))
    with pytest.raises(InputError, match="tool 'note': text may be anything"):
        run(only_base, tmp_path / "run")
    assert not (tmp_path / "run" / "base" / "journal").exists()


def test_a_model_behind_a_server_takes_no_grammar(only_base, tmp_path):
    endpoint = 'endpoint = { model = "m", url = "http://127.0.0.1:9/v1" }\nsampling = { grammar = true }'
    only_base.write_text(only_base.read_text().replace(FREE, endpoint))
    with pytest.raises(InputError, match=r"sampling\.grammar needs a model in this process"):
        run(only_base, tmp_path / "run")
