"""What the harness costs per turn: an agent that answers at once, four-turn episodes, everything written to disk.

    python benchmarks/harness_overhead.py --peer-python OTHER_VENV/bin/python --out overhead.json

The other side is Inspect AI with its mock model, the same tool and the same number of tool turns, logging as it does
by default; it runs in the interpreter of `--peer-python` (this one, if not given), in turn with Quintain. Each
run plays one warm-up batch first, in a process of its own; the figures are medians over the runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from support.results import write_result

TURNS = 4  # three calls of a tool, then the answer
TOOL = "price"
Row = dict[str, Any]


def quintain_run(episodes: int) -> Row:
    """Seconds for a batch of episodes, all at once under the default concurrency, journal on."""
    from quintain import Harness, Journal, Task, Verdict, World, tool
    from quintain.interface.messages import Action, Call
    from quintain.interface.view import View

    class Till(World):
        name = "till"

        def reset(self, task: Task) -> None:
            self.prices = task.setup["prices"]

        @tool
        def price(self, item: str) -> int:
            """Price of one item, in cents.

            Args:
                item: exact name of the item.
            """
            return self.prices[item]

        def verify(self, task: Task, episode: Any) -> Verdict:
            return Verdict(success=episode.answer == task.answer)

    class Instant:
        name, version = "instant", 0

        async def act(self, view: View) -> Action:
            if len(view.turns) == TURNS - 1:
                return Action(answer="3")
            return Action(calls=(Call("c", TOOL, {"item": "tea"}),))

        async def release(self, episode: str) -> None:
            return None

    def play(count: int) -> float:
        tasks = [
            Task(id=str(n), world="till", prompt="How much is tea?", setup={"prices": {"tea": 3}}, answer="3")
            for n in range(count)
        ]
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(Path(folder))
            harness = Harness(Till, journal=journal)
            begun = time.perf_counter()
            played = asyncio.run(harness.rollout(tasks, Instant()))
            seconds = time.perf_counter() - begun
            journal.close()
        assert all(one.success and len(one.turns) == TURNS for one in played)
        return seconds

    play(20)
    return {"seconds": play(episodes), "episodes": episodes, "version": metadata.version("quintain")}


def inspect_run(episodes: int) -> Row:
    """The same with Inspect AI."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import tool

    @tool
    def price() -> Any:
        async def execute(item: str) -> int:
            """Price of one item, in cents.

            Args:
                item: exact name of the item.
            """
            return {"tea": 3}[item]

        return execute

    def act(messages: list[Any], *_: Any) -> ModelOutput:
        if sum(one.role == "tool" for one in messages) == TURNS - 1:
            output = ModelOutput.from_content("mockllm/model", "3")
        else:
            output = ModelOutput.for_tool_call("mockllm/model", TOOL, {"item": "tea"})
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else it counts with tiktoken
        return output

    def play(count: int) -> float:
        samples = [Sample(id=str(n), input="How much is tea?", target="3") for n in range(count)]
        task = Task(dataset=samples, solver=[use_tools(price()), generate()], scorer=match())
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            (log,) = eval(task, model=get_model("mockllm/model", custom_outputs=act), log_dir=folder, display="none")
            seconds = time.perf_counter() - begun
        assert log.status == "success", log.error
        assert log.results is not None
        assert log.results.scores[0].metrics["accuracy"].value == 1.0
        return seconds

    play(20)
    return {"seconds": play(episodes), "episodes": episodes, "version": metadata.version("inspect_ai")}


SIDES = {"quintain": quintain_run, "inspect_ai": inspect_run}


def measure(python: str, side: str, episodes: int) -> Row:
    """Runs one side in a process of its own."""
    command = [python, __file__, "--side", side, "--episodes", str(episodes)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{side} failed:\n{done.stderr[-2000:]}")
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def importable(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def summary(rows: list[Row]) -> Row | None:
    if not rows:
        return None
    per_turn = [1000 * row["seconds"] / (row["episodes"] * TURNS) for row in rows]
    return {
        "version": rows[0]["version"],
        "episodes": rows[0]["episodes"],
        "ms_per_turn": statistics.median(per_turn),
        "lowest": min(per_turn),
        "highest": max(per_turn),
        "episodes_per_second": 1000 / (statistics.median(per_turn) * TURNS),
    }


def show(table: dict[str, Row | None]) -> None:
    print(f"{'':14}{'version':>10}{'ms per turn':>14}{'lowest':>9}{'highest':>9}{'episodes/s':>13}")
    for side, row in table.items():
        if row is None:
            print(f"{side:14}{'not installed':>14}")
            continue
        figures = f"{row['ms_per_turn']:>14.3f}{row['lowest']:>9.3f}{row['highest']:>9.3f}"
        print(f"{side:14}{row['version']:>10}{figures}{row['episodes_per_second']:>13.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--episodes", type=int, help="episodes of one run (default: 500, and 50 of the other side)")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has inspect_ai")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side is not None:
        print(json.dumps(SIDES[options.side](options.episodes)))
        return
    if shutil.which(options.peer_python) is None:
        parser.error(f"--peer-python {options.peer_python}: no such program")
    pythons = {"quintain": sys.executable}
    if importable(options.peer_python, "inspect_ai"):
        pythons["inspect_ai"] = options.peer_python
    counts = {"quintain": options.episodes or 500, "inspect_ai": options.episodes or 50}
    rows: dict[str, list[Row]] = {side: [] for side in SIDES}
    for _ in range(options.runs):
        for side, python in pythons.items():
            rows[side].append(measure(python, side, counts[side]))
    table = {side: summary(found) for side, found in rows.items()}
    show(table)
    if options.out is not None:
        write_result(options.out, {"runs": options.runs, "turns": TURNS, "rows": table})


if __name__ == "__main__":
    main()
