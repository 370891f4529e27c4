"""Progress: a rate and the time left on a terminal, nothing anywhere else."""

from __future__ import annotations

import io
import re

from quintain.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_done_rate_and_time_left(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("TERM", "xterm")
    with progress("rollout", total=4, unit="episodes") as advance:
        for done in range(3):
            advance(1, f"{done} right")
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "rollout" in shown
    assert "3/4" in shown
    assert "2 right" in shown
    assert "episodes/s" in shown
    assert "left" in shown


def test_a_pipe_sees_nothing(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    with progress("rollout", total=4) as advance:
        advance()
    assert pipe.getvalue() == ""
