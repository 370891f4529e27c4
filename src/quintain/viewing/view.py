"""`quintain view`: a run's episodes on a local page."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path

from quintain.curation.review import read_review
from quintain.interface.errors import InputError
from quintain.progress import say
from quintain.serving.server import listen, run_app
from quintain.viewing.index import Index, Query

HOST = "127.0.0.1"


def view(run: Path, port: int) -> None:
    """Serves the page until it is interrupted; of the run it changes `review.jsonl` and `corrections.jsonl` alone.

    Args:
        run: a run's folder.
        port: 0 takes a free one.

    Raises:
        InputError: the folder is no run, has no episodes, or the port is in use.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(f"the page needs {' and '.join(missing)}: pip install 'quintain[serve]'")
    listening: socket.socket = listen(HOST, port)
    index = Index(run, {place: one.flag for place, one in read_review(run).items()})
    try:
        from quintain.viewing.app import Viewer, make_app

        address = f"http://{HOST}:{listening.getsockname()[1]}/"
        say(f"{index.count(Query())} episodes of {run} on {address} (this machine only); Ctrl-C ends it")
        run_app(make_app(Viewer(index)), listening)
    finally:
        index.close()
