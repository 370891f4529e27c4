"""The world `research`: the five tools of AgentFounder's evaluation, over any search provider."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from quintain.harness.sandbox import Program
from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.errors import InfraError, InputError
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import tool
from quintain.worlds.research.benchmarks import load_benchmark
from quintain.worlds.research.files import text_of
from quintain.worlds.research.grading import right
from quintain.worlds.research.judge import JUDGE, Judge
from quintain.worlds.research.offline import offline_tasks
from quintain.worlds.research.passages import about
from quintain.worlds.research.providers import Hit, Provider, folder_of, provider_of
from quintain.worlds.research.reader import NetworkReader
from quintain.worlds.research.summariser import SUMMARISER, summaries
from quintain.worlds.web.browser import Refused
from quintain.worlds.web.page import NoPage, Page

HITS = 10
"""Hits of one query."""

QUERIES = 5
"""Most queries, addresses or files of one call."""

BLOCKED = ("huggingface.co", "hf.co")
"""Hosts that publish benchmarks with their answers."""

_NUMBER = re.compile(r"\[(\d+)\]")


class Research(World):
    """Search, visit, Python, scholar search and a file parser.

    Args:
        provider: `offline` (a site of the world `web`), `searxng` or `serper`.
        search_url: address of the search server.
        key: name of the environment variable with the search server's key.
        site: the site of the offline provider: `almanac`, or a folder.
        files: folder of the files that tasks name.
        blocked: hosts that are neither shown nor read, with all below them.
        trusted: `host:port` of servers of one's own that may have a private address.
        benchmark: a published benchmark to make tasks from (`benchmarks.BENCHMARKS`).
        benchmark_file: its file.
        judge: a model that marks what the rule rejects (`asked.AskedConfig`); none: the rule alone decides.
        summariser: a model that reads pages for `visit` (the same keys); none: the passages closest to the goal.

    Raises:
        InputError: the provider is unknown or can't be used, a folder is missing, or an option of the judge is wrong.
    """

    name: ClassVar[str] = "research"
    instructions: ClassVar[str] = (
        "Research the question with the tools. Reply with the short answer only, in <answer></answer>. "
        "If it can't be found, reply `Cannot answer: <reason>`."
    )

    def __init__(
        self,
        provider: str = "offline",
        search_url: str = "",
        key: str = "SERPER_API_KEY",
        site: str = "almanac",
        files: str = "",
        blocked: Sequence[str] = BLOCKED,
        trusted: Sequence[str] = (),
        benchmark: str = "",
        benchmark_file: str = "",
        judge: Mapping[str, Any] | None = None,
        summariser: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = {"name": provider, "url": search_url, "key": key, "site": site}
        self.blocked, self.trusted = tuple(blocked), tuple(trusted)
        self.files = files
        self.root = "/"
        self.named: list[str] = []
        self.canary = ""
        self.visited: list[str] = []
        self.flagged: list[str] = []
        self.judge, self.summariser = dict(judge or {}), dict(summariser or {})
        folder_of(files)
        self._provider()
        self._asked()

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """The first `count` tasks of a published benchmark; without one, tasks about the offline site.

        Raises:
            InputError: a benchmark is asked for training, a search server for tasks, a file of a task is missing, or
                there are fewer tasks.
        """
        name, file = options.get("benchmark", ""), options.get("benchmark_file", "")
        if not name and options.get("provider", "offline") == "offline":
            return offline_tasks(split, count, seed, languages, templates, options.get("site", "almanac"))
        if not name:
            raise InputError("research: give [world] options `benchmark` and `benchmark_file`, or the pool a `file`")
        if not file:
            raise InputError(f"research: benchmark = {name!r} needs `benchmark_file`, the path of its file")
        if split != "eval":
            raise InputError("research: benchmarks are for measuring only; give training pools a `file` of your own")
        wanted = {f"lang:{one}" for one in languages}
        fitting = [
            task
            for task in load_benchmark(name, Path(file))
            if wanted & set(task.tags) and (not templates or task.template in templates)
        ]
        fitting = _with_their_files(fitting, folder_of(options.get("files", "")))
        if len(fitting) < count:
            raise InputError(f"research: {file} has {len(fitting)} such tasks of {name}; {count} were asked for")
        return fitting[:count]

    def data_digest(self) -> str:
        """Digest of what is searched (the pages offline, else the server's name and address) and of the models."""
        searched = {"world": self.name, "provider": self.options, "pages": self._provider_digest()}
        return digest({**searched, **self._asked()})

    def reset(self, task: Task) -> None:
        """`setup` may give `files`, `canary`, and `root`, which bounds the offline site."""
        self.root = task.setup.get("root", "/")
        self.named = list(task.setup.get("files", ()))
        self.canary = task.setup.get("canary", "")
        self.visited, self.flagged = [], []

    @tool(read_only=True)
    def search(self, query: list[str]) -> str:
        """Searches the web; the ten best pages of each query.

        Args:
            query: one or several queries.
        """
        return self._ask(query, self._provider().search)

    @tool(read_only=True)
    def scholar(self, query: list[str]) -> str:
        """Searches papers; the ten best of each query.

        Args:
            query: one or several queries.
        """
        return self._ask(query, self._provider().scholar)

    @tool
    def visit(self, url: list[str], goal: str) -> str:
        """Reads pages and returns what they say about a goal.

        Args:
            url: one or several addresses.
            goal: what to look for.
        """
        pages = [self._page(one) for one in _several(url, "url")]
        texts = [page.text for page in pages if isinstance(page, Page)]
        read = summaries(self.summariser, goal, texts) if self.summariser else [about(goal, text) for text in texts]
        self.visited += [page.address for page in pages if isinstance(page, Page)]
        said = iter(read)
        return "\n\n".join(_shown(page, next(said)) if isinstance(page, Page) else page for page in pages)

    @tool
    async def python(self, code: str) -> str:
        """Runs Python and returns what it prints.

        Args:
            code: the program; it has no network.
        """
        result = await self.sandbox.run(Program(source=code))
        printed = (result.stdout + result.stderr).decode("utf-8", "replace").strip()
        ended = "" if result.ended == "exit" and result.exit == 0 else f"\n(ended: {result.ended}, exit {result.exit})"
        return (printed + ended).strip() or "(nothing was printed; use print())"

    @tool(read_only=True)
    def parse_file(self, files: list[str]) -> str:
        """Reads files of the task: PDF, Word, Excel, PowerPoint, CSV, HTML, text.

        Args:
            files: their names.
        """
        return "\n\n".join(f"{name}:\n{self._parsed(name)}" for name in _several(files, "files"))

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the last answer by rule (`grading.right`), and what the rule rejects by the judge, if there is one.

        A task without a gold answer gets no score.

        Raises:
            InfraError: the judge gave no judgement.
        """
        if task.answer is None:
            return Verdict(
                False, reasons=("the benchmark has no gold answer: its reports are judged elsewhere",), infra=True
            )
        answer = (episode.answer or "").strip()
        if not answer:
            return Verdict(False, reasons=("no answer",))
        left = [name for name, done in self.milestones(task).items() if not done]
        if left:
            return Verdict(False, reasons=(f"not {left[0]} in this episode",))
        if right(str(task.answer), answer):
            return Verdict(True)
        if self.judge and not answer.startswith(DECLINE_PREFIXES):
            return await self._judged(task, answer)
        return Verdict(False, reasons=("the answer is not the gold one, by rule",))

    async def _judged(self, task: Task, answer: str) -> Verdict:
        async with Judge(self.judge) as judge:
            reply = await judge.judge(task.prompt, str(task.answer), answer)
        if reply.value is None:
            raise InfraError(f"judge {judge.model}: {reply.problem}")
        said = "right" if reply.value.correct else "wrong"
        return Verdict(reply.value.correct, reasons=(f"{said} by the judge {judge.model}: {reply.value.reason}"[:300],))

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """For each group of pages that hold one piece of evidence, whether one was visited."""
        groups = task.setup.get("evidence", ())
        return {f"visited {' or '.join(group)}": any(one in self.visited for one in group) for group in groups}

    def solution(self, task: Task) -> Solution:
        """Searches for the first page, visits all that hold evidence, answers.

        Raises:
            NotImplementedError: the task was not made here: nobody knows how to solve a benchmark's.
        """
        if "query" not in task.setup:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        yield Action(calls=(Call("c0", "search", {"query": [task.setup["query"]]}),))
        pages = list(dict.fromkeys(one for group in task.setup["evidence"] for one in group))
        for at in range(0, len(pages), QUERIES):
            yield Action(calls=(Call(f"c{at + 1}", "visit", {"url": pages[at : at + QUERIES], "goal": task.prompt}),))
        yield Action(answer=f"<answer>{task.answer}</answer>")

    def _reader(self) -> NetworkReader:
        return NetworkReader(self.blocked, self.trusted)

    def _provider(self) -> Provider:
        return provider_of(**self.options, root=self.root, reader=self._reader())

    def _provider_digest(self) -> str:
        if self.options["name"] != "offline":
            return ""
        from quintain.worlds.web.world import Web

        return str(Web.resources(site=self.options["site"]).digest)

    def _asked(self) -> dict[str, Any]:
        """What there is to know of the models that are asked.

        Raises:
            InputError: an option of one is wrong.
        """
        roles = ((JUDGE, self.judge), (SUMMARISER, self.summariser))
        return {role.name: role.digest(options) for role, options in roles if options}

    def _ask(self, queries: Sequence[str], ask: Callable[[str, int], list[Hit]]) -> str:
        reader = self._reader()
        shown = []
        for query in _several(queries, "query"):
            hits = [hit for hit in ask(query, HITS) if not reader.blocks(hit.url)]
            lines = [f"{number}. {hit.title} ({hit.url}): {hit.snippet}" for number, hit in enumerate(hits, start=1)]
            shown.append("\n".join([f"Results for {query!r}:", *lines] if lines else [f"Nothing found for {query!r}."]))
        return "\n\n".join(shown)

    def _page(self, url: str) -> Page | str:
        """One page; what is wrong with it is a line of its own, so that the other pages are not lost."""
        try:
            page = self._provider().page(url)
        except Refused as error:
            return str(error)
        if self.canary and self.canary in page.text:
            self.flagged.append(url)
            return f"{url!r} holds this benchmark's canary and is not shown"
        return page

    def _parsed(self, name: str) -> str:
        folder = folder_of(self.files)
        if folder is None or name not in self.named:
            raise ValueError(f"the task has no file {name!r}; it has {', '.join(self.named) or 'none'}")
        file = (folder / name).resolve()
        if not file.is_relative_to(folder) or not file.is_file():
            raise InfraError(f"the task's file {name!r} is not in the folder {folder}")
        try:
            return text_of(name, file.read_bytes())
        except NoPage as error:
            raise ValueError(f"{name!r} {error}") from None


def _with_their_files(tasks: Sequence[Task], folder: Path | None) -> list[Task]:
    """Tasks whose files are there; without a folder, those that need none."""
    if folder is None:
        return [task for task in tasks if not task.setup["files"]]
    lost = [(task.id, name) for task in tasks for name in task.setup["files"] if not (folder / name).is_file()]
    if lost:
        task, name = lost[0]
        raise InputError(f"research: {len(lost)} files of tasks are not in {folder}, such as {name!r} of {task}")
    return list(tasks)


def _shown(page: Page, text: str) -> str:
    """What was read of a page, under its title, with the links in it."""
    numbers = set(map(int, _NUMBER.findall(text)))
    links = {link.number: link.address for link in page.links if link.number in numbers}
    listed = [f"[{number}] {address}" for number, address in sorted(links.items())]
    return "\n".join([f"{page.title} ({page.address})", text, *(["Links:", *listed] if listed else [])])


def _several(values: Sequence[str], name: str) -> Sequence[str]:
    if not 1 <= len(values) <= QUERIES or not all(one.strip() for one in values):
        raise ValueError(f"{name}: give 1 to {QUERIES} texts, found {len(values)}")
    return values
