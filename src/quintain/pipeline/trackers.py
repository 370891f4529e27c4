"""Where a run's metrics can go besides its report: TensorBoard, Weights & Biases, trackio, a Prometheus endpoint."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from quintain.interface.errors import InputError
from quintain.interface.files import replacing

WANDB_ID = "wandb-id.txt"
"""In the run's folder: what Weights & Biases calls it."""
PORT = 9464
"""Of the Prometheus endpoint, unless the recipe names another: what exporters of OpenTelemetry use."""


class Tracker(Protocol):
    """Takes the rows of `metrics.jsonl`."""

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """One step of one stage."""

    def close(self) -> None:
        """Sends what is left."""


class TensorBoard:
    """Event files in `tensorboard/STAGE` of the run."""

    def __init__(self, run: Path) -> None:
        _need("tensorboard", "tensorboard")
        self._folder = run / "tensorboard"
        self._writers: dict[str, Any] = {}

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Writes one scalar for each metric."""
        if stage not in self._writers:
            from torch.utils.tensorboard import SummaryWriter

            self._writers[stage] = SummaryWriter(str(self._folder / stage))
        for name, value in metrics.items():
            self._writers[stage].add_scalar(name, value, step)
        self._writers[stage].flush()

    def close(self) -> None:
        """Closes the files."""
        for writer in self._writers.values():
            writer.close()


class Project:
    """A run at Weights & Biases, or with trackio, which has the same functions.

    A run that is resumed goes on in the same one there: trackio knows it by its name, Weights & Biases by an id that is
    kept in the run's folder.

    Args:
        package: `wandb` or `trackio`.
        run: the run's folder; its name is the run's.
        name: the recipe's, which is the project's.
    """

    def __init__(self, package: str, run: Path, name: str) -> None:
        self._package = _need(package, package)
        own = {"dir": str(run), "id": kept_id(run / WANDB_ID)} if package == "wandb" else {}
        self._package.init(project=name, name=run.name, resume="allow", **own)

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Logs a row; its step is a metric, as stages count theirs from 1."""
        self._package.log({f"{stage}/{name}": value for name, value in metrics.items()} | {f"{stage}/step": step})

    def close(self) -> None:
        """Sends what is left."""
        self._package.finish()


def kept_id(path: Path) -> str:
    """The id in a file; a new one where there is none."""
    if not path.is_file():
        with replacing(path) as file:
            file.write(uuid.uuid4().hex.encode())
    return path.read_text()


class Prometheus:
    """The newest value of every metric, at `http://127.0.0.1:PORT/metrics` for as long as the run lasts.

    Raises:
        InputError: the port is taken.
    """

    def __init__(self, port: int) -> None:
        package = _need("prometheus_client", "prometheus")
        self._registry = package.CollectorRegistry()
        self._gauges: dict[str, Any] = {}
        self._gauge = package.Gauge
        try:
            self._server, self._thread = package.start_http_server(port, addr="127.0.0.1", registry=self._registry)
        except OSError as error:
            raise InputError(f"metrics_to: prometheus:{port}: {error.strerror}; name another port") from None

    def log(self, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        """Sets the gauges."""
        for name, value in {**metrics, "step": step}.items():
            self._of(name).labels(stage=stage).set(value)

    def close(self) -> None:
        """Frees the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _of(self, name: str) -> Any:
        legal = "quintain_" + re.sub(r"\W", "_", name)
        if legal not in self._gauges:
            self._gauges[legal] = self._gauge(legal, f"{name} of the newest step", ["stage"], registry=self._registry)
        return self._gauges[legal]


def tracker(spec: str, run: Path, name: str) -> Tracker:
    """The tracker that a recipe's `metrics_to` names.

    Raises:
        InputError: its package is missing, or the name is unknown.
    """
    kind, _, port = spec.partition(":")
    kinds: dict[str, Callable[[], Tracker]] = {
        "tensorboard": lambda: TensorBoard(run),
        "wandb": lambda: Project("wandb", run, name),
        "trackio": lambda: Project("trackio", run, name),
        "prometheus": lambda: Prometheus(int(port or PORT)),
    }
    return kinds[kind]()


def _need(package: str, extra: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise InputError(f"metrics_to: {extra} needs its package: pip install 'quintain[{extra}]'") from None
