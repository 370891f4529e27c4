from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from quintain import machine
from quintain.inference import models
from quintain.inference.models import DEFAULT, cache_folder, load_model
from quintain.interface.errors import InputError


def test_a_folder_gives_an_fp32_model_in_eval_mode_and_its_tokenizer(model_folder: Path) -> None:
    model, tokenizer = load_model(str(model_folder))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not model.training
    assert tokenizer.is_fast


def test_a_random_model_has_the_shape_it_is_named_for_and_is_the_same_every_time(model_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    shutil.copytree(model_folder, cache_folder() / "models" / DEFAULT)
    model, tokenizer = load_model("random:3x384")
    config = model.config
    assert (config.num_hidden_layers, config.hidden_size, config.intermediate_size) == (3, 384, 1024)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (6, 2, 64)
    assert config.vocab_size == load_model(str(model_folder))[0].config.vocab_size
    assert tokenizer("3 + 4?").input_ids == load_model(str(model_folder))[1]("3 + 4?").input_ids
    shutil.rmtree(cache_folder() / "models" / "random-3x384")
    again = load_model("random:3x384")[0]
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ("random:0x64", "layers must be at least 1"),
        ("random:2x100", "the width a multiple of 64"),
        ("random:2", "no such folder"),
        ("./nowhere", "no such folder"),
        ("/no/such/model", "no such folder"),
        ("typo", "no such folder"),
        ("a/b/c", "no such folder"),
    ],
)
def test_a_model_that_is_nowhere_is_refused_in_one_line(ref: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_model(ref)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json"):
        load_model(str(tmp_path))


def test_a_hub_id_that_cannot_be_fetched_is_refused_in_one_line() -> None:
    code = (
        "from quintain.inference.models import load_model\n"
        "from quintain.interface.errors import InputError\n"
        "try:\n    load_model('nobody/nothing')\nexcept InputError as error:\n    print(error)"
    )
    settings = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("model 'nobody/nothing' can't be loaded: ")
    assert done.stdout.count("\n") == 1


def test_missing_packages_are_named_with_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "find_spec", lambda name: None if name == "transformers" else object())
    with pytest.raises(InputError, match=r"needs transformers: pip install 'quintain\[train\]'"):
        load_model("anything")


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("QUINTAIN_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "quintain"


class Wheel:
    """Stands in for the download: counts how often the default model is made, from a tiny one."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.made = 0

    def __call__(self, folder: Path, target: Path) -> None:
        self.made += 1
        target.mkdir()
        for file in self.source.iterdir():
            (target / file.name).write_bytes(file.read_bytes())


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model_folder: Path) -> Wheel:
    made = Wheel(model_folder)
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(models, "_from_wheel", made)
    return made


def test_the_default_model_is_made_once_and_then_comes_from_the_cache(wheel: Wheel, tmp_path: Path) -> None:
    first, _ = load_model()
    second, _ = load_model()
    assert wheel.made == 1
    for left, right in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(left, right)
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [DEFAULT, f"{DEFAULT}.lock"]


def test_a_second_one_that_wants_the_default_model_waits_for_the_first(wheel: Wheel) -> None:
    threads = [threading.Thread(target=models._default_folder) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wheel.made == 1


def test_a_failed_attempt_leaves_nothing_that_looks_like_a_model(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path, target: Path) -> None:
        wheel(folder, target)
        raise InputError("out of luck")

    monkeypatch.setattr(models, "_from_wheel", fail)
    with pytest.raises(InputError, match="out of luck"):
        load_model()
    assert [path.name for path in (tmp_path / "models").iterdir()] == [f"{DEFAULT}.lock"]


def test_the_hub_is_left_alone_when_it_is_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(models.subprocess, "run", lambda *_, **__: pytest.fail("the hub was asked"))
    assert not models._from_hub(tmp_path)


@pytest.mark.slow
def test_the_wheel_holds_a_model_that_knows_the_capital_of_france(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    model, tokenizer = load_model()
    ids = tokenizer("<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n").input_ids
    found = model.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False)[0, len(ids) :]
    assert "Paris" in tokenizer.decode(found)
    config = json.loads((tmp_path / "models" / DEFAULT / "config.json").read_text())
    assert "quantization_config" not in config


def test_tuning_the_allocator_lets_memory_of_freed_tensors_be_used_again() -> None:
    # 48 MiB is above the largest threshold that glibc reaches by itself: untuned, every block is new pages for ever.
    # Tuned, the first few blocks still are, until free ones lie side by side.
    code = (
        "import resource, sys, torch\n"
        "torch.set_num_threads(1)\n"
        "from quintain.machine import keep_freed_memory\n"
        "if sys.argv[1] == 'tuned': keep_freed_memory()\n"
        "for _ in range(20): torch.empty(12 << 20).fill_(1)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(10): torch.empty(12 << 20).fill_(1)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
    )

    def faults(mode: str) -> int:
        return int(subprocess.run([sys.executable, "-c", code, mode], capture_output=True, check=True).stdout)

    if not sys.platform.startswith("linux") or os.confstr("CS_GNU_LIBC_VERSION") is None:
        pytest.skip("no glibc here")
    assert faults("tuned") < faults("default") / 5


def test_what_one_model_left_is_given_back_before_the_next() -> None:
    code = (
        "import torch\n"
        "from quintain.machine import free_last_model, tune\n"
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) >> 8\n"  # MiB: pages of 4 KiB
        "tune()\n"
        "before = resident()\n"
        "held = [torch.empty(64 << 20).fill_(1)]\n"
        "held.append(held)\n"  # as optimisers and graphs hold one another
        "del held\n"
        "free_last_model()\n"
        "print(resident() - before)\n"
    )
    if not sys.platform.startswith("linux") or os.confstr("CS_GNU_LIBC_VERSION") is None:
        pytest.skip("no glibc here")
    assert int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) < 128  # of 256


def test_products_of_ever_new_shapes_do_not_fill_the_heap() -> None:
    code = (
        "import ctypes, torch\n"
        "torch.set_num_threads(1)\n"
        "from quintain.machine import tune\n"
        "tune()\n"
        "names = 'arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost'.split()\n"  # <malloc.h>
        "Info = type('Info', (ctypes.Structure,), {'_fields_': [(name, ctypes.c_size_t) for name in names]})\n"
        "used = ctypes.CDLL(None).mallinfo2\n"
        "used.restype = Info\n"
        "weight = torch.randn(1536, 576)\n"
        "for length in range(100, 400):\n"
        "    if length == 200: before = used().uordblks\n"
        "    torch.nn.functional.linear(torch.randn(length, 576), weight)\n"
        "print((used().uordblks - before) >> 20)\n"
    )
    if not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("no glibc with mallinfo2 here")
    unset = {name: value for name, value in os.environ.items() if not name.endswith("CACHE_CAPACITY")}
    grown = subprocess.run([sys.executable, "-c", code], env=unset, capture_output=True, check=True).stdout
    assert int(grown) < 20  # unbounded: more than 100 MiB where products go to oneDNN


def test_fast_products_are_as_exact_as_float32_and_are_refused_where_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    switch = torch.backends.mkldnn.matmul
    machine.use_fast_products()
    left, right = torch.randn(200, 700), torch.randn(700, 300)
    exact = left.double() @ right.double()
    assert (left @ right - exact).norm() / exact.norm() < 1e-6
    monkeypatch.setattr(machine, "_relative_error", lambda: 3e-3)  # what a processor with AMX would show
    switch.fp32_precision = "ieee"
    assert not machine.use_fast_products()
    assert switch.fp32_precision == "ieee"
    monkeypatch.undo()
    switch.fp32_precision = "none"
    machine.use_fast_products()
