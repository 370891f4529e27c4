"""A real server with a real model: `transformers serve` and SmolLM2, through the command line."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from quintain.cli.main import main
from quintain.commands.commands import recipes_folder
from quintain.inference.models import cache_folder, inspect_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def server():
    """Address and model name of a server on a free port of this machine."""
    pytest.importorskip("fastapi", reason="transformers serve needs `pip install transformers[serving]`")
    inspect_model()  # fetches the default model if it is not there
    folder = cache_folder() / "models" / "smollm2-135m"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", code, "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        process.terminate()
        process.wait()


def _wait(address: str, process: subprocess.Popen) -> None:
    while process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            time.sleep(1)
    pytest.fail(f"the server ended: {process.stderr.read().decode()[-500:]}")


def test_a_served_model_is_measured_at_the_desk_and_its_prompts_compared(server, tmp_path, capsys):
    url, model = server
    recipe = tmp_path / "recipe.toml"
    text = (recipes_folder() / "quickstart.toml").read_text()
    head = text.split("[[targets]]")[0].replace("count = 104", "count = 4")
    head = head.replace("turns = 10", "turns = 2").replace("tokens = 600", "tokens = 40")
    stage = '[[stages]]\nkind = "eval"\nname = "unused"\npool = "eval"\n'
    recipe.write_text(head.replace("concurrency = 64", "concurrency = 1") + stage)
    (tmp_path / "brief.toml").write_text('instructions = "Answer in one word."\n')
    common = ["eval", str(recipe), "--agent", f"openai:{model}", "--base-url", url, "--samples", "1"]
    prices = ["--price-in", "1", "--price-out", "2"]
    assert main([*common, *prices, "--out", str(tmp_path / "plain")]) == 0
    assert main([*common, "--prompt", str(tmp_path / "brief.toml"), "--out", str(tmp_path / "brief")]) == 0
    (stage,) = json.loads((tmp_path / "plain" / "report.json").read_text())["stages"]
    counts = stage["evaluation"]["overall"]["counts"]
    assert (counts["scored"], counts["infra"]) == (4, 0)
    assert stage["evaluation"]["cost"]["mean_tokens"] > 0
    assert stage["evaluation"]["cost"]["mean_price"] > 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "plain"), str(tmp_path / "brief"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["to"][0]["tasks"] == 4
