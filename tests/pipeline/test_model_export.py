"""A trained model as a folder or file that other programs load, and from which they get the same greedy answer."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from quintain.agents.chat import described
from quintain.cli.main import main
from quintain.export.gguf import write_gguf
from quintain.export.licence import Licence, licence_of
from quintain.inference.local import LocalEngine
from quintain.inference.models import load_model
from quintain.interface import dialects
from quintain.interface.dialects.codec import TokenizerCodec
from quintain.interface.dialects.template import chat_template
from quintain.interface.errors import InputError
from quintain.interface.generation import Sampling
from quintain.interface.lock import read_lock
from quintain.interface.messages import message
from quintain.interface.tools import Toolset
from tiny import tiny_tokenizer

TOKENS = 12
SAID = [message("system", "Add."), message("user", "3 + 1?")]
MESSAGES = [{"role": one.role, "content": one.text} for one in SAID]


@pytest.fixture
def export(finished: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Exports the run's model in a format."""

    def write(form: str) -> Path:
        out = tmp_path / f"agent-{form}{'.gguf' if form == 'gguf' else ''}"
        assert main(["export", str(finished / "sft"), "--format", form, "--out", str(out)]) == 0
        return out

    return write


async def greedy(finished: Path) -> tuple[list[int], list[int]]:
    """The prompt's ids and those of the greedy answer, by the dialect and the engine that trained."""
    from counter import Counter

    model, tokenizer = load_model(str(finished / "sft" / "model"))
    dialect = dialects.get("hermes-compact", TokenizerCodec(tokenizer))
    prompt = dialect.prompt(SAID, Toolset.of(Counter))
    engine = LocalEngine(model, sessions=1)
    try:
        sampling = Sampling(temperature=0.0, max_tokens=TOKENS, stop=dialect.stop)
        made = await engine.generate(prompt, session="a", group="a", sampling=sampling)
    finally:
        engine.close()
    return prompt, list(made.ids)


def tools_of(folder: Path) -> Any:
    return json.loads((folder / "tools.json").read_text(encoding="utf-8"))


def answered_by(model: Any, tokenizer: Any, tools: Any) -> tuple[list[int], list[int]]:
    """The same by transformers alone: chat template, `generate`, generation settings."""
    ids = tokenizer.apply_chat_template(MESSAGES, tools=tools, add_generation_prompt=True, return_dict=False)
    with torch.no_grad():
        made = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=TOKENS)
    return ids, made[0, len(ids) :].tolist()


async def test_transformers_gives_the_same_answer_from_the_folder(finished, export):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = export("model")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert answered_by(model, tokenizer, tools_of(folder)) == await greedy(finished)


async def test_peft_gives_the_same_answer_from_the_adapter(finished, export, model_folder):
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoTokenizer

    folder = export("adapter")
    assert not (folder / "model.safetensors").exists()
    model, tokenizer = AutoPeftModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert answered_by(model, tokenizer, tools_of(folder)) == await greedy(finished)


async def test_llama_cpp_gives_the_same_answer_from_the_gguf(finished, export):
    prompt, answer = await greedy(finished)
    with llama_cpp(export("gguf")) as ask:
        made = ask("/completion", prompt=prompt, temperature=0.0, n_predict=TOKENS, return_tokens=True)
    assert made["tokens"] == answer


@pytest.mark.parametrize("dialect", dialects.NAMES)
def test_llama_cpp_renders_and_reads_a_conversation_as_transformers_does(model_folder, tmp_path, dialect):
    from counter import Counter

    tokenizer, file = tiny_tokenizer(), tmp_path / "tiny.gguf"
    template, tools = chat_template(dialect), described(Toolset.of(Counter), {})
    write_gguf(model_folder, file, template=template, stop=(2,), licence=Licence("mit", {}))
    arguments = {"a": 3, "b": "17", "c": ["法", None], "d": "two words"}
    call = {"id": "a", "type": "function", "function": {"name": "add", "arguments": arguments}}
    messages = [
        *MESSAGES,
        {"role": "assistant", "content": "I add.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "4"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "And 4 + 1?"},
    ]
    options = {"tools": tools, "chat_template": template, "add_generation_prompt": True}
    text = tokenizer.apply_chat_template(messages, tokenize=False, **options)
    with llama_cpp(file) as ask:
        assert ask("/apply-template", messages=messages, tools=tools)["prompt"] == text
        read = ask("/tokenize", content=text, add_special=True, parse_special=True)["tokens"]
    assert read == tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("dialect", ["hermes", "hermes-compact", "lines"])
def test_llama_cpp_gives_an_answer_as_content_if_it_looks_for_no_reasoning(model_folder, tmp_path, dialect):
    """Left to itself it takes a text before the mark of an answer for reasoning, and a bare answer has no mark.

    Nor does it hide the token that ends a turn in `lines`, which it takes for a mark of a call.
    """
    file = tmp_path / "tiny.gguf"
    write_gguf(model_folder, file, template=chat_template(dialect), stop=(2,), licence=Licence("mit", {}))
    with llama_cpp(file) as ask:
        body = {"messages": MESSAGES, "grammar": 'root ::= "4"', "temperature": 0.0, "stop": ["<|im_end|>"]}
        made = ask("/v1/chat/completions", reasoning_format="none", max_tokens=TOKENS, **body)
    assert made["choices"][0]["message"]["content"] == "4"


@contextmanager
def llama_cpp(file: Path) -> Iterator[Callable[..., Any]]:
    """llama.cpp's own server with a GGUF file; what it yields posts JSON to a path and returns the reply."""
    xllamacpp = pytest.importorskip("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(file)
    settings.n_ctx, settings.n_parallel, settings.cpuparams.n_threads, settings.warmup = 512, 1, 1, False
    settings.port, settings.endpoint_props = 0, True
    server = xllamacpp.Server(settings)

    def ask(path: str, **body: Any) -> Any:
        request = urllib.request.Request(
            server.listening_address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    yield ask


async def test_vllm_gives_the_same_answer_from_the_folder(finished, export):
    vllm = pytest.importorskip("vllm")
    folder = export("model")
    prompt, answer = await greedy(finished)
    served = vllm.LLM(str(folder), dtype="float32", max_model_len=512, enforce_eager=True)
    (made,) = served.chat(MESSAGES, vllm.SamplingParams(temperature=0.0, max_tokens=TOKENS), tools=tools_of(folder))
    assert (list(made.prompt_token_ids), list(made.outputs[0].token_ids)) == (prompt, answer)


def test_the_folder_says_how_it_was_trained_and_measured(finished, export):
    folder = export("model")
    settings = json.loads((folder / "generation_config.json").read_text())
    assert settings["eos_token_id"] == [2, 0], "the ids that end a turn in the dialect, <|im_end|> first"
    assert settings["max_new_tokens"] == TOKENS, "as the model was measured"
    assert read_lock(folder / "tools.lock") == read_lock(finished / "sft" / "model" / "tools.lock")
    assert [one["function"]["name"] for one in tools_of(folder)] == ["add"]
    assert (folder / "system.txt").read_text(encoding="utf-8") == "Add.", "as its episodes begin"


def test_the_card_states_pass_1_with_its_interval_contamination_and_lineage(finished, export):
    card = (export("model") / "README.md").read_text(encoding="utf-8")
    evaluation = json.loads((finished / "tuned" / "evaluation.json").read_text())["overall"]
    one = evaluation["pass1"]
    assert f"| tuned | sft | `eval` | {one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}] | 4 | 8 / 8 |" in card
    assert "tuned against base: " in card
    assert "tuned: contamination: 0 tasks given away by" in card
    assert "| demos | rollout | 12 of 12 episodes succeed |" in card
    assert card.index("| demos |") < card.index("| sft | sft |")
    assert "pass@2" not in card
    assert str(finished.parent) not in card, "no folder of this machine"
    assert card.startswith("---\nlicense: other\n"), "a base model without a card: its licence is not known"
    assert "look it up" in card


def test_a_base_models_licence_goes_with_what_was_trained_from_it(tmp_path):
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# A model\n")
    (tmp_path / "LICENSE").write_text("Permission is hereby granted")
    found = licence_of(str(tmp_path))
    assert (found.identifier, found.files) == ("mit", {"LICENSE": b"Permission is hereby granted"})
    assert licence_of("smollm2-135m").identifier == "apache-2.0"
    assert b"Apache License" in licence_of("smollm2-135m").files["LICENSE"]


@pytest.mark.parametrize(
    ("stage", "form", "text"),
    [
        ("demos", "model", "demos is no finished training stage; finished: sft"),
        ("base", "model", "base is no finished training stage; finished: sft"),
        ("nowhere", "model", "is no run"),
    ],
)
def test_what_can_not_be_exported_is_one_line(finished, tmp_path, capsys, stage, form, text):
    assert main(["export", str(finished / stage), "--format", form, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_export_never_writes_over_another(finished, export, capsys):
    folder = export("model")
    assert main(["export", str(finished), "--format", "model", "--out", str(folder)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_other_families_are_sent_to_llama_cpps_own_converter(finished, tmp_path):
    shutil.copytree(finished / "sft" / "model", tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "gemma2"}))
    with pytest.raises(InputError, match=r"this is gemma2; llama.cpp's convert_hf_to_gguf.py"):
        write_gguf(tmp_path / "model", tmp_path / "x.gguf", template="", stop=(2,), licence=Licence("mit", {}))
