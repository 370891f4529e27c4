"""A vLLM server that this process begins, watches, begins again, and ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quintain.endpoint.config import EndpointConfig
from quintain.inference.vllm_start import need_vllm, sizes
from quintain.interface.errors import InfraError
from quintain.progress import say

NAME = "policy"
"""What a server of ours calls its model."""
RESTARTS = 3
"""How often a server that ended is begun again."""
_POLL_SECONDS = 0.5


class OwnServer:
    """The process of a server on the loopback interface.

    Args:
        command: what starts it; `{port}` in it stands for the port.
        folder: removed with it; `server.log` in it takes what it says.

    Attributes:
        port: it listens there.
        restarts: how often it was begun again.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.port = _free_port()
        self.restarts = 0
        self._command = [part.replace("{port}", str(self.port)) for part in command]
        self._folder = folder
        self._log = folder / "server.log"
        self._begin()

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    async def ready(self) -> None:
        """Waits until it listens.

        Raises:
            InfraError: it ended before.
        """
        while not self.ended:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(_POLL_SECONDS)
                continue
            writer.close()
            return
        code = self._process.returncode
        raise InfraError(f"the server ended with code {code}: {self._last_words()}; see {self._log}")

    def restart(self) -> None:
        """Begins it again.

        Raises:
            InfraError: it has ended too often.
        """
        if self.restarts == RESTARTS:
            raise InfraError(f"the server ended {RESTARTS + 1} times, last: {self._last_words()}; see {self._log}")
        self.restarts += 1
        say(f"the server ended ({self._last_words()}); begun again, {self.restarts} of {RESTARTS} times")
        self._begin()

    def close(self) -> None:
        """Ends it with all that it started; what it said stays where it ended by itself."""
        ended = self.ended
        if not ended:
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()
        if not ended:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines() if self._log.is_file() else []
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it said nothing")


def serve_model(
    model: Any, tokenizer: Any, *, kv_tokens: int, sessions: int, options: Mapping[str, Any]
) -> tuple[EndpointConfig, OwnServer]:
    """Begins a vLLM server that holds a model; returns where it is, and its process.

    Args:
        model: a transformers causal LM.
        tokenizer: its tokenizer.
        kv_tokens: most tokens held in the KV cache.
        sessions: most sequences computed at once.
        options: of `vllm serve`, with underscores.

    Raises:
        InputError: vLLM is missing.
    """
    need_vllm()
    folder = Path(tempfile.mkdtemp(prefix="quintain-server."))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    settings = {"served_model_name": NAME, **sizes(model, kv_tokens=kv_tokens, sessions=sessions), **options}
    # not `vllm serve`: in the build for CPUs it ends, looking for a package that has another name there
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), *_flags(settings)]
    server = OwnServer([*command, "--host", "127.0.0.1", "--port", "{port}"], folder)
    return EndpointConfig(model=NAME, url=f"http://127.0.0.1:{server.port}/v1", key=""), server  # type: ignore[call-arg]


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Arguments of a command line."""
    found: list[str] = []
    for key, value in options.items():
        name = key.replace("_", "-")
        found += [f"--{name}" if value else f"--no-{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
    return found


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
