"""Evaluating a model behind a server, comparing prompts, and gating a checkpoint, from the command line."""

from __future__ import annotations

import json
import re

import pytest

import loopback
from quintain.cli.main import main


def adds_if(condition):
    """A model that adds where `condition(system message, first number)` holds, and is one off elsewhere."""

    def respond(request):
        system, user = request["messages"][0]["content"], request["messages"][-1]["content"]
        number = int(re.findall(r"\d+", user)[0])
        return {"content": str(number + 1 if condition(system, number) else number)}

    return respond


def evaluate(recipe_file, out, url, *more):
    arguments = ["eval", recipe_file, "--agent", "openai:m", "--base-url", url, "--samples", 1, "--out", out, *more]
    return main(list(map(str, arguments)))


@pytest.fixture
def many(recipe_file):
    """The recipe with 40 tasks to evaluate."""
    recipe_file.write_text(recipe_file.read_text().replace("count = 4\n", "count = 40\n"))
    return recipe_file


def test_an_endpoint_is_measured_with_the_same_statistics_and_its_price(many, tmp_path, capsys):
    with loopback.serve(adds_if(lambda system, number: number % 4)) as server:
        code = evaluate(many, tmp_path / "run", server.url, "--price-out", "1000000", "--json")
    assert code == 0
    assert json.loads(capsys.readouterr().out)["stages"]["eval"]["model"] == "m"
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    (stage,) = report["stages"]
    assert stage["kind"] == "eval"
    assert stage["evaluation"]["overall"]["pass1"]["value"] == 0.75
    assert stage["evaluation"]["cost"]["price_per_success"] == pytest.approx(40 / 30)  # a word each
    assert report["frontier"]["price"] == ["eval"]


def test_prompts_are_compared_task_by_task(many, tmp_path, capsys):
    prompt = tmp_path / "polite.toml"
    prompt.write_text('instructions = "Please add."\n')
    with loopback.serve(adds_if(lambda system, number: number % 2 or "Please" in system)) as server:
        assert evaluate(many, tmp_path / "plain", server.url) == 0
        assert evaluate(many, tmp_path / "polite", server.url, "--prompt", prompt) == 0
    capsys.readouterr()
    runs = [str(tmp_path / name) for name in ("plain", "polite", "plain")]
    assert main(["compare", *runs, "--json"]) == 0
    polite, same = json.loads(capsys.readouterr().out)["to"]
    assert (polite["difference"]["value"], same["difference"]["value"]) == (0.5, 0.0)
    assert polite["p_value"] < polite["p_value_holm"] < 0.01 < same["p_value_holm"]
    assert (polite["tasks"], polite["left_out"]) == (40, 0)


@pytest.mark.parametrize(("right", "code"), [(0.4, 1), (0.9, 0)])
def test_gate_exits_1_where_the_checkpoint_is_worse_and_states_its_test_and_power(many, tmp_path, capsys, right, code):
    with loopback.serve(adds_if(lambda system, number: number - 1000 < 36)) as server:
        assert evaluate(many, tmp_path / "before", server.url) == 0
    with loopback.serve(adds_if(lambda system, number: number - 1000 < 40 * right)) as server:
        assert evaluate(many, tmp_path / "after", server.url) == 0
    capsys.readouterr()
    runs = [str(tmp_path / "after"), "--baseline", str(tmp_path / "before" / "eval"), "--margin", "0.05"]
    assert main(["gate", *runs]) == code
    text = capsys.readouterr().out
    assert "one-sided at 2.5%" in text
    assert "a true loss of" in text
    assert "80% of evaluations of this size" in text
    assert ("worse than the baseline by more than 0.05" in text) == bool(code)


def test_runs_of_different_tasks_under_the_same_ids_are_not_compared(many, tmp_path, capsys):
    with loopback.serve(adds_if(lambda system, number: True)) as server:
        assert evaluate(many, tmp_path / "one", server.url) == 0
        assert evaluate(many, tmp_path / "two", server.url) == 0
    pool = tmp_path / "two" / "pools" / "eval.jsonl"
    pool.write_text(pool.read_text().replace("1003 + 1?", "1004 + 1?"))
    assert main(["compare", str(tmp_path / "one"), str(tmp_path / "two")]) == 2
    assert "task 'eval-1003' is not the same in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "one"], "compare needs two evaluations at least"),
        (["compare", "one", "two"], "one is no run"),
        (["gate", "one", "--baseline", "two"], "two is no run"),
        (["eval", "{recipe}", "--agent", "m"], "--agent 'm' must be spelled openai:MODEL"),
        (["eval", "{recipe}", "--agent", "openai:m", "--model", "x"], "give either --model or --agent"),
        (["eval", "{recipe}", "--prompt", "nowhere.toml"], "nowhere.toml"),
        (["eval", "{recipe}", "--base-url", "http://x"], "--base-url needs --agent"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments, message, recipe_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([one.format(recipe=recipe_file) for one in arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.glob("runs")) == []


def test_a_prompt_for_a_model_of_the_recipe_is_refused(recipe_file, tmp_path, capsys):
    (tmp_path / "prompt.toml").write_text('instructions = "Be brief."\n')
    assert (
        main(["eval", str(recipe_file), "--prompt", str(tmp_path / "prompt.toml"), "--out", str(tmp_path / "r")]) == 2
    )
    assert "`prompt` is told to an `endpoint`" in capsys.readouterr().err


def test_an_unknown_key_of_a_prompt_file_is_named(recipe_file, tmp_path, capsys):
    (tmp_path / "prompt.toml").write_text('instuctions = "Be brief."\n')
    arguments = ["--agent", "openai:m", "--prompt", str(tmp_path / "prompt.toml"), "--out", str(tmp_path / "r")]
    assert main(["eval", str(recipe_file), *arguments]) == 2
    assert "instuctions" in capsys.readouterr().err


def test_an_evaluation_whose_server_was_never_there_has_no_scored_episode(many, tmp_path, capsys):
    recipe = many.read_text().split("[[stages]]")[0]
    endpoint = '[stages.endpoint]\nmodel = "m"\nurl = "http://127.0.0.1:9/v1"\ntries = 1\n'
    many.write_text(f'{recipe}[[stages]]\nkind = "eval"\nname = "gone"\npool = "eval"\nsamples = 1\n{endpoint}')
    assert main(["run", str(many), "--out", str(tmp_path / "run")]) == 2
    *_, said = capsys.readouterr().err.splitlines()
    assert "stage 'gone': no scored episode of 40 planned (40 infra errors), 40 of them: " in said
    assert said.endswith(f"; mend that, remove {tmp_path / 'run' / 'gone'} and run the same command again")
    assert main(["gate", str(tmp_path / "run"), "--baseline", str(tmp_path / "run")]) == 2
    assert "no finished evaluation" in capsys.readouterr().err


def test_half_a_character_in_an_answer_breaks_neither_the_run_nor_its_export(recipe_file, tmp_path):
    with loopback.serve(lambda request: {"content": "12\ud83d"}) as server:
        assert evaluate(recipe_file, tmp_path / "run", server.url) == 0
    assert "12?" in (tmp_path / "run" / "eval" / "sheet.md").read_text(encoding="utf-8")
    assert main(["export", str(tmp_path / "run"), "--format", "inspect", "--out", str(tmp_path / "logs")]) == 0


def test_a_pool_with_a_task_that_nothing_can_verify_is_not_measured(many, tmp_path, capsys):
    (many.parent / "mine.jsonl").write_text('{"id": "a", "world": "counter", "prompt": "1 + 1?"}\n')
    many.write_text(many.read_text().replace('split = "eval"\ncount = 40', 'file = "mine.jsonl"'))
    assert evaluate(many, tmp_path / "run", "http://127.0.0.1:9/v1") == 2
    assert "task 'a' has neither answer nor setup; nothing could be verified" in capsys.readouterr().err
