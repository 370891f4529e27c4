"""Continual pre-training: whole documents, none sees another, targets by source, exact resume, flat memory."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from training_models import VOCABULARY, example, tiny

from quintain.interface.dialects import get
from quintain.interface.errors import InputError
from quintain.interface.sample import Sample
from quintain.interface.tools import Toolset
from quintain.training.config import CPTConfig
from quintain.training.corpus import Corpus, build_corpus
from quintain.training.cpt import CORPUS, plan_mix, read_schedule, run_cpt
from quintain.training.documents import Document, Reader
from quintain.training.forward import prepare, tree_logprobs
from quintain.training.loop import train
from quintain.training.mixture import interleave, shuffled_index, token_goals, write_schedule
from quintain.training.packing import best_fit
from quintain.training.store import Store, StoreWriter
from tiny import tiny_codec, tiny_model, tiny_tokenizer

SMALL = {"context": 40, "microbatch_tokens": 64, "batch_tokens": 100, "learning_rate": 1e-3}
TIMING = ("seconds", "step_seconds", "tokens_per_second")


def documents(count: int, source: str = "planning", seed: int = 0, longest: int = 30) -> list[Document]:
    draw = random.Random(f"{seed}/{source}")
    lengths = [draw.randrange(5, longest) for _ in range(count)]
    return [Document(source, [draw.randrange(3, VOCABULARY) for _ in range(n)], [1] * n) for n in lengths]


def metrics(out: Path) -> list[dict]:
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMING} for row in rows]


# Packing


@given(st.lists(st.integers(2, 50), min_size=1, max_size=40))
def test_best_fit_keeps_every_document_whole_and_every_tree_within_the_budget(lengths):
    given_ones = [example([3 + number] * length) for number, length in enumerate(lengths)]
    trees = best_fit(given_ones, 50, share=False)
    assert all(len(tree) <= 50 for tree in trees)
    assert sum(len(tree) for tree in trees) == sum(lengths)
    assert sum(tree.examples for tree in trees) == len(lengths)


def test_best_fit_puts_a_document_where_the_least_room_is_left():
    # Longest first: 6 and 5 open trees of 10; 4 fits both and goes to the fuller one, beside 6; 5 takes 3 and 2.
    given_ones = [example(list(range(10 * length, 11 * length))) for length in (2, 3, 4, 5, 6)]
    assert sorted(len(tree) for tree in best_fit(given_ones, 10)) == [10, 10]


def test_a_document_beyond_the_budget_is_named():
    with pytest.raises(InputError, match=r"^cpt:has: 12 tokens do not fit microbatch_tokens = 10"):
        best_fit([example([5] * 12, source="cpt:has")], 10)


# No leakage


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3", "qwen3_next"])
def test_packed_documents_are_predicted_as_if_each_were_alone(family):
    model = tiny(family)
    prepare(model)
    alone = [example(one.ids) for one in documents(6)]
    (tree,) = best_fit(alone, 1000, share=family != "qwen3_next")
    with torch.no_grad(), tree_logprobs(model, tree) as packed:
        pass
    expected = []
    for one in alone:
        ids = torch.tensor([one.ids])
        logprobs = model(input_ids=ids).logits[0, :-1].log_softmax(-1)
        expected.append(logprobs.gather(1, ids[0, 1:, None])[:, 0].sum().item())
    members = tree.predictions
    found = torch.zeros(len(alone)).index_add(
        0, members.member_examples, packed.values[members.member_predictions] * members.member_weights
    )
    assert sorted(found.tolist()) == pytest.approx(sorted(expected), rel=1e-4)


def test_the_loss_of_one_document_has_no_gradient_at_another_in_the_same_pack():
    model = tiny()
    prepare(model)
    first, second = [5, 6, 7, 8, 9], [15, 16, 17, 18]
    (tree,) = best_fit([example(first), example(second)], 100)
    inputs = []
    model.get_input_embeddings().register_forward_hook(lambda module, given, made: inputs.append(made))
    with tree_logprobs(model, tree) as logprobs:
        inputs[0].retain_grad()
        logprobs.values[tree.predictions.targets > 14].sum().backward()
    touched = inputs[0].grad[0].abs().sum(1)
    assert tree.ids.tolist() == first + second
    assert touched[:5].tolist() == [0.0] * 5
    assert (touched[5:8] > 0).all()


def test_another_neighbour_changes_no_prediction():
    model = tiny()
    prepare(model)
    found = []
    for neighbour in ([20, 21, 22, 23], [80, 3, 44, 9]):
        (tree,) = best_fit([example([50, 51, 52, 53]), example(neighbour)], 100)
        with torch.no_grad(), tree_logprobs(model, tree) as logprobs:
            mine = [place for place, source in enumerate(tree.predictions.sources) if 50 <= tree.ids[source] <= 53]
            found.append(logprobs.values[mine])
    assert torch.equal(*found)


# The corpus


def test_what_is_too_long_waits_whole_and_only_general_text_is_cut(tmp_path):
    long_plan, long_text = Document("has", list(range(3, 53)), [1] * 50), Document("general", [7] * 90, [1] * 90)
    corpus = build_corpus([long_plan, long_text, *documents(4)], 40, tmp_path / "corpus")
    assert [one.ids.tolist() for one in corpus.waiting()] == [long_plan.ids]
    assert [corpus.sources["general"].length(number) for number in range(3)] == [40, 40, 10]
    assert set(corpus.sources) == {"general", "planning"}
    assert corpus.report["truncated_tokens"] == {"has": 0, "general": 0, "planning": 0}
    assert corpus.report["cut"] == {"general": 1}
    assert corpus.report["too_long"] == {"has": {"documents": 1, "tokens": 50}}


def test_what_came_before_token_for_token_is_left_out_and_counted(tmp_path):
    once, other = Document("general", [7, 8, 9], [1] * 3), Document("has", [7, 8, 9], [1] * 3)
    corpus = build_corpus([once, other, once, *documents(2), once], 40, tmp_path / "corpus")
    assert corpus.report["sources"]["general"] == {"documents": 1, "tokens": 3}
    assert corpus.report["sources"]["has"] == {"documents": 1, "tokens": 3}
    assert corpus.report["duplicates"] == {"general": 2}


def test_an_interrupted_reading_leaves_no_corpus(tmp_path):
    def breaks():
        yield from documents(3)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        build_corpus(breaks(), 40, tmp_path / "corpus")
    assert list(tmp_path.iterdir()) == []


def test_a_store_gives_back_what_was_written(tmp_path):
    with StoreWriter(tmp_path) as writer:
        writer.add([5, 70_000, 9], [1, 0, 1])
        writer.add([8], [1])
    store = Store(tmp_path)
    assert (len(store), store.tokens, store.length(0), store.length(1)) == (2, 4, 3, 1)
    assert [part.tolist() for part in store.read(0)] == [[5, 70_000, 9], [1, 0, 1]]


# The mix


@given(st.integers(1, 100), st.text(max_size=3))
def test_the_shuffle_visits_every_place_once(size, key):
    assert sorted(shuffled_index(place, size, key) for place in range(size)) == list(range(size))


def test_the_shuffle_differs_by_key():
    orders = {tuple(shuffled_index(place, 50, key) for place in range(50)) for key in "abcdef"}
    assert len(orders) == 6


def test_sources_reach_their_targets_and_keep_their_shares_all_along(tmp_path):
    corpus = build_corpus([*documents(300, "planning"), *documents(200, "general")], 40, tmp_path / "corpus")
    goals = token_goals(corpus.sources, {"planning": 3000, "general": 1000}, 4)
    used = Counter()
    shares = []
    for name, number in interleave(corpus.sources, goals, seed=1):
        used[name] += corpus.sources[name].length(number)
        shares.append(used["planning"] / sum(used.values()))
    assert 3000 <= used["planning"] < 3030
    assert 1000 <= used["general"] < 1030
    # From 400 tokens on, one document of at most 29 moves the share by less than 0.08 from 3 of 4.
    assert all(0.67 < share < 0.83 for share in shares[20:])


def test_a_target_beyond_the_data_is_met_by_at_most_so_many_passes(tmp_path):
    corpus = build_corpus(documents(10), 40, tmp_path / "corpus")
    goals = token_goals(corpus.sources, {"planning": 10**9}, 3)
    seen = Counter(number for _, number in interleave(corpus.sources, goals, seed=0))
    assert seen == dict.fromkeys(range(10), 3)


def test_a_target_without_a_source_names_the_sources(tmp_path):
    corpus = build_corpus(documents(3), 40, tmp_path / "corpus")
    with pytest.raises(InputError, match=r"^tokens: no source named 'has'; found: planning$"):
        token_goals(corpus.sources, {"has": 5}, 4)


def test_every_step_holds_as_many_documents_as_fit(tmp_path):
    corpus = build_corpus(documents(60), 40, tmp_path / CORPUS)
    plan_mix(CPTConfig(**SMALL), tmp_path, targets={}, replay=None, replay_share=0)
    schedule = read_schedule(tmp_path, None)
    batches = [schedule.batch(step) for step in range(schedule.steps)]
    sizes = [sum(len(one.ids) for one in batch) for batch in batches]
    assert max(sizes) <= 100
    # The first document of the next step would not have fitted.
    assert all(size + len(after[0].ids) > 100 for size, after in zip(sizes, batches[1:], strict=False))
    ids = sorted(one.ids for batch in batches for one in batch)
    assert ids == sorted(tuple(corpus.sources["planning"].read(number)[0].tolist()) for number in range(60))
    assert all(one.weights == (0.0, *[1.0] * (len(one.ids) - 1)) for batch in batches for one in batch)


# Runs


class Interrupted(Exception):
    pass


def test_an_interrupted_and_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path, monkeypatch):
    config = CPTConfig(**SMALL, checkpoint_seconds=0.0)
    whole = run_cpt(config, documents(30), tiny(), tmp_path / "whole", targets={})

    def dies(model, batches, *rest, **more):
        def batch_of(step):
            if step == 2:
                raise Interrupted
            return batches(step)

        return train(model, batch_of, *rest, **more)

    monkeypatch.setattr("quintain.training.cpt.train", dies)
    with pytest.raises(Interrupted):
        run_cpt(config, documents(30), tiny(), tmp_path / "broken", targets={})
    monkeypatch.undo()
    resumed = run_cpt(config, iter([]), tiny(), tmp_path / "broken", targets={})  # the corpus is not read again
    assert whole.steps == resumed.steps > 3
    assert metrics(tmp_path / "broken") == metrics(tmp_path / "whole")
    found = dict(resumed.model.named_parameters())
    assert all(torch.equal(found[name], value) for name, value in whole.model.named_parameters())


def test_stage_two_learns_from_what_was_too_long_and_from_a_share_of_stage_one(tmp_path):
    long_ones = documents(8, "has", longest=30)
    long_ones = [Document("has", list(one.ids) + [9] * 40, [1] * (len(one.ids) + 40)) for one in long_ones]
    first = run_cpt(CPTConfig(**SMALL), [*documents(20), *long_ones], tiny(), tmp_path / "one", targets={})
    assert set(first.tokens) == {"planning"}
    wide = CPTConfig(context=80, microbatch_tokens=100, batch_tokens=200)
    folder = tmp_path / "one"
    second = run_cpt(
        wide, [], first.model, tmp_path / "two", targets={}, earlier=[folder], replay=folder, replay_share=0.25
    )
    assert second.tokens["has"] == sum(len(one.ids) for one in long_ones)
    wanted = second.tokens["has"] / 3  # a quarter of all
    assert wanted <= second.tokens["replay"] < wanted + 30
    assert second.report["truncated_tokens"] == {"has": 0}


def test_masked_parts_carry_no_loss(tmp_path):
    masked = Document("has", [5, 6, 7, 8, 9], [1, 1, 0, 0, 1])
    run_cpt(CPTConfig(**SMALL), [masked], tiny(), tmp_path, targets={})
    assert metrics(tmp_path)[0]["loss_weight"] == 2  # tokens 6 and 9; nothing predicts the first


def test_recomputing_activations_changes_no_loss(tmp_path):
    for name, recompute in (("kept", False), ("again", True)):
        run_cpt(CPTConfig(**SMALL, recompute=recompute), documents(12), tiny(), tmp_path / name, targets={})
    kept, again = metrics(tmp_path / "kept"), metrics(tmp_path / "again")
    assert [row["loss"] for row in again] == pytest.approx([row["loss"] for row in kept], rel=1e-5)


def test_nothing_that_fits_is_one_line(tmp_path):
    too_long = Document("has", [5] * 50, [1] * 50)
    with pytest.raises(InputError, match="there are 1 documents longer than context = 40, and no other"):
        run_cpt(CPTConfig(**SMALL), [too_long], tiny(), tmp_path, targets={})


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    def peak(count: int) -> int:
        def stream():
            for number in range(count):
                yield Document("planning", [3 + number % 90] * 50, [1] * 50)

        folder = tmp_path / str(count)
        tracemalloc.start()
        build_corpus(stream(), 64, folder / CORPUS)
        plan_mix(CPTConfig(context=64, batch_tokens=500), folder, targets={}, replay=None, replay_share=0)
        schedule = read_schedule(folder, None)
        tokens = sum(len(one.ids) for step in range(0, schedule.steps, 50) for one in schedule.batch(step))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert tokens
        return found

    peak(100)  # what is imported and cached at the first use
    assert peak(4000) - peak(500) < 50_000  # bytes; the corpus has 175,000 tokens more


# A longer context


@pytest.mark.parametrize("rope", [{"theta": 500_000.0}, {"yarn": 4.0}])
def test_an_extended_context_is_saved_with_the_model(tmp_path, rope):
    from transformers import AutoModelForCausalLM

    config = CPTConfig(context=96, microbatch_tokens=96, batch_tokens=200, rope=rope)
    model = tiny_model(context=32)
    before = model.model.rotary_emb.inv_freq.clone()
    done = run_cpt(config, [Document("has", [5] * 90, [1] * 90)], model, tmp_path, targets={})
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert loaded.config.max_position_embeddings == 96
    assert torch.equal(loaded.model.rotary_emb.inv_freq, done.model.model.rotary_emb.inv_freq)
    changed = done.model.model.rotary_emb.inv_freq
    assert changed[0] == before[0]  # the fastest rotation stays
    assert changed[-1] < before[-1]  # the slowest gets slower, so that far positions stay within what was seen


def test_a_context_beyond_the_models_needs_an_extension(tmp_path):
    with pytest.raises(InputError, match=r"context 96 tokens > the model's 32 positions"):
        run_cpt(CPTConfig(context=96, microbatch_tokens=96), documents(1), tiny_model(context=32), tmp_path, targets={})


def test_a_factor_of_yarn_that_does_not_reach_the_context_says_which_would(tmp_path):
    config = CPTConfig(context=96, microbatch_tokens=96, rope={"yarn": 2.0})
    with pytest.raises(InputError, match=r"context 96 tokens > 32 positions x yarn = 2; set yarn = 3"):
        run_cpt(config, documents(1), tiny_model(context=32), tmp_path, targets={})


def test_a_document_is_never_wider_than_a_microbatch():
    with pytest.raises(ValueError, match="microbatch_tokens = 50 < context = 60"):
        CPTConfig(context=60, microbatch_tokens=50)


# From samples to documents


def reader(skipped: Counter | None = None) -> Reader:
    dialect = get("hermes-compact", tiny_codec())
    return Reader(tiny_tokenizer(), dialect, [Toolset([])], Counter() if skipped is None else skipped)


def test_a_text_keeps_its_words_and_its_unlearnt_parts_have_no_weight():
    tokenizer = tiny_tokenizer()
    text = "Paris is the capital."
    (made,) = reader().documents([Sample("1", "has", "en", "c", text=text, unlearnt=((6, 12),))])
    assert tokenizer.decode(made.ids) == text + "<|endoftext|>"
    masked = [index for index, weight in zip(made.ids, made.weights, strict=True) if not weight]
    assert tokenizer.decode(masked) == "is the"


def test_a_sample_of_another_toolset_is_refused():
    from quintain.interface.messages import message

    sample = Sample("7", "planning", "en", "c", "sha256:" + "0" * 64, (message("user", "Hi"),))
    with pytest.raises(InputError, match="sample '7' was made for toolset"):
        list(reader().documents([sample]))


def test_the_report_keeps_what_was_skipped(tmp_path):
    skipped: Counter = Counter({"empty": 2})
    build_corpus(documents(2), 40, tmp_path / "corpus", skipped)
    assert Corpus(tmp_path / "corpus").report["skipped"] == {"empty": 2}


def test_a_schedule_is_the_same_for_the_same_seed_and_another_for_another(tmp_path):
    corpus = build_corpus(documents(30), 40, tmp_path / "corpus")
    goals = token_goals(corpus.sources, {}, 1)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_schedule(tmp_path / name, corpus.sources, goals, 100, seed)
    a, b, c = ((tmp_path / name / "rows.bin").read_bytes() for name in "abc")
    assert a == b != c
