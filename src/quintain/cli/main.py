"""The command line. Exit codes: 0 ok, 1 ran and failed a gate, 2 wrong input, 130 interrupted."""

from __future__ import annotations

import argparse
import shlex
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from quintain import __version__
from quintain.cli.completion import add_completion
from quintain.cli.exchange import add_exchange
from quintain.cli.init import add_init
from quintain.cli.judge import add_judging
from quintain.cli.mcp_serve import add_mcp_serve
from quintain.cli.output import add_json, finish, judged, stated
from quintain.cli.pool import add_pool
from quintain.cli.synth import add_synth
from quintain.cli.talk import add_talking
from quintain.cli.worlds import add_worlds
from quintain.interface.errors import InputError, QuintainError
from quintain.launch import by_torchrun
from quintain.progress import say

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; wrong input is one line on standard error and exit code 2."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    try:
        return _on_its_rank(options)
    except QuintainError as error:
        say(f"quintain: {error}")
        return 2
    except BrokenPipeError:
        return 0
    except OSError as error:  # a full disk, missing rights, a file where a folder is needed
        place = error.filename or "writing the run"
        say(f"quintain: {place}: {error.strerror or error}; mend that and run the same command again")
        return 2
    except sqlite3.OperationalError as error:  # the same, of a memory or a cache
        say(f"quintain: a database of the run: {error}; mend that and run the same command again")
        return 2
    except KeyboardInterrupt:
        say(f"quintain: interrupted{_way_back(options, arguments)}")
        return 130


def _on_its_rank(options: argparse.Namespace) -> int:
    """Carries a command out; under `torchrun` rank 0 does, and the other processes help it to train."""
    if not by_torchrun():
        return int(options.command(options))
    from quintain.training import ranks

    if not ranks.join():
        ranks.serve()
        return 0
    code = int(options.command(options))
    ranks.dismiss()
    return code


def _way_back(options: argparse.Namespace, arguments: Sequence[str] | None) -> str:
    """How an interrupted command goes on."""
    if not getattr(options, "resumes", False):
        return ""
    again = shlex.join(["quintain", *(sys.argv[1:] if arguments is None else arguments)])
    return f"; everything finished is kept. To go on: {again}"


def make_parser() -> argparse.ArgumentParser:
    """All commands with their help."""
    parser = argparse.ArgumentParser(
        prog="quintain",
        description="Turn a base language model into an agent on your own tools and tasks, and measure it honestly.",
        epilog="Exit codes: 0 ok, 1 ran and failed a gate, 2 wrong input, 130 interrupted (run again to resume). "
        "Tab completion: quintain completion bash --help. Nothing is ever reported to anyone.",
    )
    parser.add_argument("--version", action="version", version=f"quintain {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run_commands(commands)
    _add_look_commands(commands)
    add_synth(commands, _add_out)
    _add_tools(commands)
    add_exchange(commands)
    add_pool(commands)
    add_mcp_serve(commands)
    add_init(commands)
    add_completion(commands, make_parser)
    add_worlds(commands, _endpoint)
    return parser


def _add_run_commands(commands: Any) -> None:
    one = commands.add_parser(
        "demo",
        help="one episode, played by the reference solution and shown; no model needed",
        description="Plays one task of each world of a recipe by its reference solution: what is thought, called, "
        "observed and answered, and the verdict. Writes nothing.",
    )
    one.add_argument("recipe", type=Path, nargs="?", metavar="RECIPE", help="default: the quickstart's, world desk")
    add_json(one)
    one.set_defaults(command=_demo)

    one = commands.add_parser(
        "quickstart",
        help="the whole line on this machine: measure a base model, train it, measure again, report",
        description="Measures SmolLM2-135M on questions about a collection of documents it never sees in training; "
        "pre-trains it on plans and decisions, fine-tunes it on reference episodes and lets it practise; measures it "
        "after each, and writes a report. At most 20 minutes on 2 cores.",
    )
    one.add_argument(
        "--minutes", type=float, default=None, help="scale data, training and evaluation to this long, 6 or more"
    )
    _add_out(one, "runs/quickstart")
    one.set_defaults(command=_quickstart, resumes=True)

    one = commands.add_parser(
        "run",
        help="run a recipe; run it again to resume",
        description="Runs a recipe's stages in order and writes a report. A second run goes on where the first "
        "stopped; finished stages are skipped unless the recipe changed what they depend on.",
    )
    one.add_argument("recipe", type=Path, metavar="RECIPE", help="a TOML file, see recipes/")
    one.add_argument(
        "--plan", action="store_true", help="print tokens, steps, memory and hours of each stage; run nothing"
    )
    one.add_argument(
        "--minutes", type=float, default=None, help="scale it to about this long, if its targets say how long it takes"
    )
    _add_drift(one)
    _add_out(one, None)
    one.set_defaults(command=_run, resumes=True)


def _add_look_commands(commands: Any) -> None:
    one = commands.add_parser(
        "eval",
        help="measure a model on a recipe's pool",
        description="Plays a recipe's pool with one model and prints pass@1, pass@k and pass^k with 95 % intervals.",
    )
    one.add_argument("recipe", type=Path, metavar="RECIPE", help="names world, budget and pools")
    one.add_argument("--model", default=None, help="path or hub id (default: the recipe's base model)")
    one.add_argument("--agent", default=None, metavar="openai:MODEL", help="a model behind an OpenAI-compatible server")
    one.add_argument(
        "--base-url", default=None, metavar="URL", help="the server's address, such as http://localhost:8000/v1"
    )
    _add_drift(one)
    one.add_argument("--prompt", type=Path, default=None, metavar="FILE", help="TOML: instructions, examples, tools")
    one.add_argument("--program", default=None, metavar="NAME", help="an agent program of the recipe around the model")
    one.add_argument("--price-in", type=float, default=0.0, help="price of a million prompt tokens")
    one.add_argument("--price-out", type=float, default=0.0, help="price of a million generated tokens")
    one.add_argument(
        "--rescore", type=Path, default=None, metavar="RUN/STAGE", help="judge stored episodes again, no model"
    )
    one.add_argument("--pool", default="eval", help="which pool of the recipe (default: eval)")
    one.add_argument("--samples", type=int, default=2, help="episodes per task (default: 2)")
    _add_out(one, "runs/eval")
    one.set_defaults(command=_eval, resumes=True)

    one = commands.add_parser(
        "report",
        help="write a run's report again",
        description="Builds report.json (for programs) and report.html (one page for people, nothing to install, no "
        "network) from what lies in a run's folder: pass@1 of every stage, loss, outcomes, cost, trajectories.",
    )
    one.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    add_json(one)
    one.set_defaults(command=_report)

    one = commands.add_parser(
        "view",
        help="read a run's episodes on a local page: search, compare, keep, flag, correct",
        description="A page for this machine only. It changes nothing but review.jsonl (keep, flag) and "
        "corrections.jsonl (turns rewritten by hand, as a recover stage reads them) in the run's folder.",
    )
    one.add_argument("run", type=Path, metavar="RUN", help="a run's folder")
    one.add_argument("--port", type=int, default=8765, help="0 takes a free one (default: 8765)")
    one.set_defaults(command=_view)

    add_judging(commands)
    _add_study(commands)
    add_talking(commands)


def _add_study(commands: Any) -> None:
    one = commands.add_parser(
        "study",
        help="train and measure a grid of settings, as a table and a plot",
        description="Runs a recipe's last stages once for every setting and seed and sets the results side by side, "
        "with 95 % intervals. Says first what it costs. A second run goes on cell by cell.",
    )
    one.add_argument(
        "study", choices=("cpt", "failures", "recovery"), metavar="STUDY", help="cpt, failures or recovery"
    )
    one.add_argument("--recipe", type=Path, default=None, metavar="RECIPE", help="another one that ends with a cell")
    one.add_argument("--full", action="store_true", help="the full grid of settings")
    one.add_argument("--cost", action="store_true", help="say what it costs and stop")
    one.add_argument("--minutes", type=float, default=None, help="scale tasks and training to about this long")
    one.add_argument(
        "--models",
        type=lambda text: [one for one in text.split(",") if one],
        default=[],
        metavar="A,B",
        help="the whole grid for each of these base models; random:8x256 is an untrained one of 8 layers and width 256",
    )
    one.add_argument("--out", type=Path, default=None, metavar="RUN", help="run's folder (default: runs/study-STUDY)")
    add_json(one)
    one.set_defaults(command=_study, resumes=True)


def _add_tools(commands: Any) -> None:
    one = commands.add_parser(
        "tools",
        help="lock a world's tools, or check them against the lock",
        description="What a model was trained on is one set of tools: `lock` writes their schemas and the shape of "
        "their results to a file, `check` says in words what has changed since.",
    )
    actions = one.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, command, help_text in (
        ("lock", _tools_lock, "record the schemas and the observed shape of results"),
        ("check", _tools_check, "compare the live tools with the lock; exit 1 if they differ"),
    ):
        action = actions.add_parser(name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".")
        action.add_argument("recipe", type=Path, metavar="RECIPE", help="names the world")
        action.add_argument("--lock", type=Path, default=None, help="lock file (default: tools.lock beside the recipe)")
        add_json(action)
        action.set_defaults(command=command)


def _add_drift(parser: argparse.ArgumentParser) -> None:
    text = "go on with a model that was trained on other tools, and say what the change costs it"
    parser.add_argument("--accept-drift", action="store_true", help=text)


def _add_out(parser: argparse.ArgumentParser, default: str | None) -> None:
    shown = default or "runs/NAME"
    parser.add_argument("--out", type=Path, default=default, metavar="RUN", help=f"run's folder (default: {shown})")
    add_json(parser)


def _demo(options: argparse.Namespace) -> int:
    from quintain.commands.demo import demo

    return finish(lambda: demo(options.recipe), options.json)


def _quickstart(options: argparse.Namespace) -> int:
    from quintain.commands.commands import quickstart

    return finish(lambda: quickstart(Path(options.out), options.minutes), options.json)


def _run(options: argparse.Namespace) -> int:
    from quintain.commands.commands import plan_run, run

    if options.plan:
        return finish(lambda: plan_run(options.recipe), options.json)
    return finish(lambda: run(options.recipe, options.out, options.accept_drift, options.minutes), options.json)


def _eval(options: argparse.Namespace) -> int:
    from quintain.commands.commands import evaluate, rescore

    if options.rescore is not None:
        return finish(lambda: rescore(options.recipe, options.rescore, options.pool, Path(options.out)), options.json)
    arguments = (options.recipe, options.model, options.pool, options.samples, Path(options.out))
    named = {"prompt": options.prompt, "program": options.program, "accept_drift": options.accept_drift}
    return finish(lambda: evaluate(*arguments, endpoint=_endpoint(options), **named), options.json)


def _endpoint(options: argparse.Namespace) -> dict[str, Any] | None:
    """Keys of the `endpoint` table that `--agent` stands for."""
    if options.agent is None and options.base_url is not None:
        raise InputError("--base-url needs --agent openai:MODEL: which of the server's models?")
    if options.agent is None:
        return None
    kind, _, model = options.agent.partition(":")
    if kind != "openai" or not model:
        raise InputError(f"--agent {options.agent!r} must be spelled openai:MODEL")
    table = {"model": model, "price_in": options.price_in, "price_out": options.price_out}
    return table if options.base_url is None else {**table, "url": options.base_url}


def _report(options: argparse.Namespace) -> int:
    from quintain.commands.commands import report_of

    return finish(lambda: report_of(options.run), options.json)


def _view(options: argparse.Namespace) -> int:
    from quintain.viewing.view import view

    view(options.run, options.port)
    return 0


def _study(options: argparse.Namespace) -> int:
    from quintain.studies.studies import study

    settings = {"full": options.full, "minutes": options.minutes, "cost_only": options.cost, "models": options.models}
    return finish(lambda: study(options.study, options.recipe, options.out, **settings), options.json)


def _tools_lock(options: argparse.Namespace) -> int:
    from quintain.commands.commands import lock_tools

    return stated(lambda: lock_tools(options.recipe, options.lock), options.json)


def _tools_check(options: argparse.Namespace) -> int:
    from quintain.commands.commands import check_tools

    def check() -> dict[str, Any]:
        differences = check_tools(options.recipe, options.lock)
        return {"passed": not differences, "lines": differences or ["the tools are as locked"]}

    return judged(check, options.json)
