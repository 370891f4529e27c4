"""What a stage was made from, as its manifest says it."""

from __future__ import annotations

from quintain.pipeline.lineage import made_from


def test_pools_models_files_and_stages_are_told_apart():
    assert made_from({"pool": "train", "agent": "oracle"}) == [("pool", "train"), ("model", "oracle")]
    assert made_from({"start": "base", "data": ["demos"]}) == [("model", "base"), ("stage", "demos")]
    assert made_from({"start": "sft", "pool": "a", "validation": "b"}) == [
        ("pool", "a"),
        ("pool", "b"),
        ("stage", "sft"),
    ]
    assert made_from({"start": "cpt1", "data": ["cpt1"], "replay": "cpt1", "text": ["notes/a.txt"]}) == [
        ("file", "a.txt"),
        ("stage", "cpt1"),
    ]


def test_an_evaluation_of_a_server_rests_on_the_servers_model_and_not_on_the_base():
    stage = {"pool": "eval", "model": "base", "endpoint": {"model": "big"}}
    assert made_from(stage) == [("pool", "eval"), ("model", "big")]
