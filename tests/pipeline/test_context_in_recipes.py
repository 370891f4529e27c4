"""`context` of a stage: one key that says what happens when the window fills, for models in the built-in loop."""

from __future__ import annotations

import pytest

from quintain.commands.commands import evaluate
from quintain.harness.journal import read_journal
from quintain.interface.errors import InputError
from quintain.recipe import load_recipe
from recipe_edits import edit, set_stages

CONTEXT = 'context = {{ tokens = 180, when_full = "{}" }}\n'
STAGE = '[[stages]]\nkind = "eval"\nname = "base"\npool = "eval"\nsamples = 1\nsampling = {{ max_tokens = 16 }}\n{}'


def test_an_evaluation_goes_on_where_it_would_have_ended(recipe_file, folder):
    """One by hand, which takes the context of the recipe's own evaluation of the pool."""
    set_stages(recipe_file, STAGE.format(CONTEXT.format("discard-all")))
    edit(recipe_file, "turns = 3\ntokens = 60", "turns = 4\ntokens = 90\nformat_errors = 9")
    edit(recipe_file, "count = 4", "count = 1")
    evaluate(recipe_file, None, "eval", 1, folder)
    ((episode,), _) = read_journal(folder / "eval" / "journal")
    assert [one.reason for one in episode.segments][:2] == ["start", "discard"]
    assert max(len(one.ids) for one in episode.segments) <= 181, "and a closing token"
    assert str(episode.outcome) == "limit(turns)"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ('endpoint = { model = "m" }\n', "an `endpoint` minds its own"),
        ('program = "mine"\n', "a `program` minds its own"),
    ],
)
def test_who_minds_its_own_context_takes_none(recipe_file, changes, reason):
    set_stages(recipe_file, STAGE.format(CONTEXT.format("summary") + changes))
    with recipe_file.open("a") as file:
        file.write('[programs.mine]\nfunction = "a:b"\n')
    with pytest.raises(InputError, match=reason):
        load_recipe(recipe_file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('context = { when_full = "summary" }', "missing key 'stages.0.context.tokens'"),
        (
            'context = { tokens = 10, when_full = "forget" }',
            r"context\.when_full: .*'discard-all' or 'summary'",
        ),
        (
            'context = { tokens = 0, when_full = "summary" }',
            r"context\.tokens: .*greater than or equal to 1",
        ),
    ],
)
def test_a_wrong_context_names_its_key(recipe_file, text, reason):
    set_stages(recipe_file, STAGE.format(text + "\n"))
    with pytest.raises(InputError, match=reason):
        load_recipe(recipe_file)
