"""The benchmark for one GPU: its code runs here on a tiny shape, and where there is no GPU one line says so."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import torch

from benchmark_scripts import load_benchmark


def benchmark() -> Any:
    """The script, as a module."""
    return load_benchmark("gpu")


def test_a_tiny_shape_is_trained_and_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())
    lengths = ["--groups", "1", "--prompt", "12", "--completion", "4"]
    out = tmp_path / "gpu.json"
    benchmark().main(["--shape", "tiny", "--device", "cpu", *lengths, "--out", str(out)])
    rows = json.loads(out.read_text())["rows"]
    assert list(rows) == ["tiny training", "tiny decoding"]
    assert all(row["tokens_per_second"] > 0 for row in rows.values())
    assert rows["tiny training"]["how"].startswith("all weights, ")


def test_operations_of_a_forward_pass_by_hand():
    module = benchmark()
    bench = module.Bench(module.SHAPES["tiny"], torch.device("cpu"), None, 1, 4, 2)
    # A layer of width 64: attention 2 * 64 * (4 + 2) * 16, feed-forward 3 * 64 * 128; a head 512 * 64.
    layers = 2 * (12_288 + 24_576)
    assert bench._forward(10, 3, 55) == 2 * layers * 10 + 2 * 32_768 * 3 + 4 * 2 * 4 * 16 * 55


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        benchmark().main(["--out", str(tmp_path / "gpu.json")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
