"""Metrics go to trackers while a run goes on: every row once, whatever happens to run or tracker."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from quintain.cli.main import main
from quintain.interface.errors import InputError
from quintain.pipeline.following import METRICS, Follower, followed
from quintain.pipeline.trackers import tracker


class Notes:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, dict[str, float]]] = []

    def log(self, stage, step, metrics):
        self.rows.append((stage, step, dict(metrics)))

    def close(self) -> None:
        pass


class Full(Notes):
    """A tracker whose disk is full."""

    def log(self, stage, step, metrics):
        raise OSError(28, "No space left on device")


def write_rows(run: Path, stage: str, steps: range, more: str = "") -> None:
    (run / stage).mkdir(exist_ok=True)
    rows = "".join(json.dumps({"step": step, "loss": step / 2, "warnings": ["x"]}) + "\n" for step in steps)
    (run / stage / METRICS).write_text(rows + more)


def test_every_row_is_sent_once_and_a_torn_one_when_it_is_whole(tmp_path):
    notes = Notes()
    follower = Follower(tmp_path, [notes])
    write_rows(tmp_path, "sft", range(1, 3), more='{"step": 3, "lo')
    follower.send()
    follower.send()
    assert notes.rows == [("sft", 1, {"loss": 0.5}), ("sft", 2, {"loss": 1.0})]
    write_rows(tmp_path, "sft", range(1, 4))
    write_rows(tmp_path, "grpo", range(1, 2))
    follower.send()
    assert [(stage, step) for stage, step, _ in notes.rows[2:]] == [("grpo", 1), ("sft", 3)]


def test_steps_that_a_resumed_run_repeats_are_not_sent_again(tmp_path):
    first, second = Notes(), Notes()
    write_rows(tmp_path, "sft", range(1, 6))
    Follower(tmp_path, [first]).send()
    resumed = Follower(tmp_path, [second])
    write_rows(tmp_path, "sft", range(1, 4))  # the checkpoint was of step 3
    resumed.send()
    assert second.rows == []
    write_rows(tmp_path, "sft", range(1, 7))
    resumed.send()
    assert [step for _, step, _ in second.rows] == [6]


def test_a_tracker_that_fails_ends_itself_and_not_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("quintain.pipeline.following.tracker", lambda *_: Full())
    with followed(tmp_path, "r", ["tensorboard"]):
        write_rows(tmp_path, "sft", range(1, 3))
    assert "metrics_to: no more rows are sent: OSError: [Errno 28] No space left on device" in capsys.readouterr().err


def test_tensorboard_reads_what_was_written(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with followed(tmp_path, "r", ["tensorboard"]):
        write_rows(tmp_path, "sft", range(1, 4))
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard" / "sft"))
    events.Reload()
    assert [(one.step, one.value) for one in events.Scalars("loss")] == [(1, 0.5), (2, 1.0), (3, 1.5)]


def test_prometheus_serves_the_newest_values_on_the_loopback_interface(tmp_path):
    pytest.importorskip("prometheus_client")
    port = free_port()
    endpoint = tracker(f"prometheus:{port}", tmp_path, "r")
    with closing(endpoint):
        endpoint.log("grpo", 1, {"success/multi hop": 0.25})
        endpoint.log("grpo", 2, {"success/multi hop": 0.5})
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
            text = reply.read().decode()
        assert 'quintain_success_multi_hop{stage="grpo"} 0.5' in text
        assert 'quintain_step{stage="grpo"} 2.0' in text
        with pytest.raises(InputError, match=f"metrics_to: prometheus:{port}: Address already in use; name another"):
            tracker(f"prometheus:{port}", tmp_path, "r")


def test_trackio_keeps_the_rows(tmp_path):
    pytest.importorskip("trackio")
    (tmp_path / "run").mkdir()
    script = (
        "from pathlib import Path; from quintain.pipeline.trackers import tracker; "
        f"one = tracker('trackio', Path({str(tmp_path / 'run')!r}), 'project'); "
        "one.log('sft', 1, {'loss': 0.5}); one.close()"
    )
    environment = os.environ | {"TRACKIO_DIR": str(tmp_path / "kept")}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120, capture_output=True)
    with closing(sqlite3.connect(tmp_path / "kept" / "project.db")) as kept:
        logged = [json.loads(text) for (text,) in kept.execute("SELECT metrics FROM metrics")]
    assert {"sft/loss": 0.5, "sft/step": 1} in logged


def test_a_resumed_run_is_the_same_one_at_weights_and_biases(tmp_path, monkeypatch):
    """The package stands in for a service that can't be had here: it notes which run it was asked for."""
    asked = []
    stand_in = SimpleNamespace(init=lambda **how: asked.append(how), finish=lambda: None)
    monkeypatch.setitem(sys.modules, "wandb", stand_in)
    for name in ("first", "first", "second"):
        (tmp_path / name).mkdir(exist_ok=True)
        tracker("wandb", tmp_path / name, "project").close()
    first, resumed, second = asked
    assert first == resumed
    assert (first["project"], first["name"], first["resume"]) == ("project", "first", "allow")
    assert first["id"] != second["id"]


def test_a_note_of_what_was_sent_is_whole_wherever_a_run_is_killed(tmp_path, monkeypatch):
    write_rows(tmp_path, "sft", range(1, 3))
    Follower(tmp_path, [Notes()]).send()
    write_rows(tmp_path, "sft", range(1, 5))

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", kill)
        with pytest.raises(KeyboardInterrupt):
            Follower(tmp_path, [Notes()]).send()
    again = Notes()
    Follower(tmp_path, [again]).send()
    assert [step for _, step, _ in again.rows] == [3, 4]


def test_a_missing_package_and_an_unknown_tracker_are_one_line_each(recipe_file, tmp_path, monkeypatch, capsys):
    plain = recipe_file.read_text()
    monkeypatch.setitem(sys.modules, "wandb", None)
    for said, why in (
        ("wandb", "metrics_to: wandb needs its package: pip install 'quintain[wandb]'"),
        ("mlflow", "metrics_to"),
    ):
        recipe_file.write_text(f'metrics_to = ["{said}"]\n' + plain)
        assert main(["run", str(recipe_file), "--out", str(tmp_path / "run")]) == 2
        assert why in capsys.readouterr().err


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
