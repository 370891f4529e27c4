"""The commands that talk with a trained agent: `chat` and `serve`."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any


def add_talking(commands: Any) -> None:
    """Adds them to the command line."""
    one = commands.add_parser(
        "chat",
        help="ask a trained agent; its thoughts, calls and observations are shown",
        description="You ask, the agent works with its tools. An empty line or Ctrl-D ends it.",
    )
    _add_agent(one)
    one.set_defaults(command=_chat)

    one = commands.add_parser(
        "serve",
        help="serve a trained agent, tools included, to any client of the OpenAI API",
        description="Speaks the chat completions protocol. The agent works on each message with its own tools, in its "
        "world; thoughts, calls and observations come as `reasoning_content`. Only this machine reaches it, unless "
        "--host says otherwise and QUINTAIN_API_KEY holds a key.",
    )
    _add_agent(one)
    one.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    one.add_argument("--port", type=int, default=8000, help="0 takes a free one (default: 8000)")
    one.set_defaults(command=_serve)


def _add_agent(one: argparse.ArgumentParser) -> None:
    one.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    one.add_argument("--stage", default=None, help="which trained stage (default: the last; `base` for the base model)")
    one.add_argument("--world", default=None, metavar="NAME", help="which world, where the recipe has several")
    one.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (default)")


def _chat(options: argparse.Namespace) -> int:
    from quintain.commands.chat import chat

    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a person may paste anything
    chat(options.run, options.stage, options.world, options.temperature)
    return 0


def _serve(options: argparse.Namespace) -> int:
    from quintain.serving.server import serve

    serve(options.run, options.stage, options.world, options.host, options.port, options.temperature)
    return 0
