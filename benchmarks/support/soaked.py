"""The run that a soak troubles: a command whose engine can be taken away.

python soaked.py RECIPE FOLDER       # as `quintain run RECIPE --out FOLDER`; SIGUSR1 closes the engine
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from quintain.cli.main import main
from quintain.pipeline import grpo


def run(recipe: str, folder: str) -> int:
    """Runs the recipe; at the signal its engine is gone, as a server that died would be."""
    engines: list[Any] = []
    make = grpo.make_engine

    def kept(*arguments: Any) -> Any:
        engines.append(make(*arguments))
        return engines[-1]

    grpo.make_engine = kept
    signal.signal(signal.SIGUSR1, lambda *_: [engine.close() for engine in engines])
    return main(["run", recipe, "--out", folder])


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
