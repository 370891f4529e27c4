"""The world `code`: repair a module, analyse a table, write a program, in a sandboxed workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from quintain.harness.sandbox import Bubblewrap, Limits, Sandbox
from quintain.harness.world import Solution, World
from quintain.interface.canonical import digest
from quintain.interface.episode import Episode, Verdict
from quintain.interface.messages import DECLINE_PREFIXES, Action, Call
from quintain.interface.tasks import Task
from quintain.interface.tools import tool
from quintain.worlds.code import workspace
from quintain.worlds.code.judging import SandboxBroken, failed_cases, trial_fault
from quintain.worlds.code.phrases import CLOSING, THOUGHTS
from quintain.worlds.code.sources import HIDDEN
from quintain.worlds.code.tasks import generate

CALL_LIMITS = Limits(seconds=8.0, cpu_seconds=8.0, memory_bytes=256 << 20, output_bytes=256 << 10)
"""What one program may use; its seconds stay below those of a tool call, so that reaching them is an observation."""


class Code(World):
    """A workspace of a few files, and programs run in a sandbox of the episode's own.

    The files live on the host and are laid out anew for every program, so they are part of every snapshot. Protected
    files (the visible tests, the data) can't be changed, whatever a program does to its copies.

    The verdict is on one file, `setup["target"]`. It runs in a fresh sandbox after everything the agent started is
    dead, and what it should give is compared on the host (`judging`).
    """

    name: ClassVar[str] = "code"
    instructions: ClassVar[str] = "Work on the files with the tools. When you are done, reply with one short sentence."

    def __init__(self) -> None:
        self.files: workspace.Files = {}
        self.given: workspace.Files = {}
        self.protected: tuple[str, ...] = ()
        self.target = ""
        self.tests = ""
        self.family = ""

    @classmethod
    def generate(
        cls, split: str, count: int, seed: int, languages: Sequence[str], templates: Sequence[str], **options: Any
    ) -> list[Task]:
        """Tasks of the three families (`tasks.generate`)."""
        return generate(split, count, seed, languages, templates)

    def data_digest(self) -> str:
        """Tasks carry their data; what is hidden from programs belongs to the world."""
        return digest({"world": self.name, "hidden": HIDDEN})

    def make_sandbox(self) -> Sandbox:
        """Repair tasks hide the modules they were cut from."""
        hidden = HIDDEN if self.family == "repair" else ()
        return Bubblewrap(scratch_bytes=32 << 20, imports=("unittest",), hidden=hidden)

    def reset(self, task: Task) -> None:
        """Lays out the task's files."""
        setup = task.setup
        self.given = {name: text.encode() for name, text in setup["files"].items()}
        self.files = dict(self.given)
        self.protected = tuple(setup["protected"])
        self.target, self.tests, self.family = setup["target"], setup["tests"], setup["family"]

    @tool(name="list", read_only=True)
    def list_files(self) -> str:
        """Lists the files."""
        return workspace.listing(self.files)

    @tool(read_only=True)
    def read(self, path: str, first: int = 1, last: int = 0) -> str:
        """Reads a file.

        Args:
            path: its name.
            first: first line.
            last: last line; 0 for as many as a page holds.
        """
        return workspace.lines_of(workspace.text_of(self.files, path), first, last)

    @tool
    def write(self, path: str, text: str) -> str:
        """Writes a whole file.

        Args:
            path: its name.
            text: all of its text.
        """
        return self._put(path, text)

    @tool
    def patch(self, path: str, old: str, new: str) -> str:
        """Replaces text that occurs once in a file.

        Args:
            path: its name.
            old: the text as it stands.
            new: what takes its place.
        """
        return self._put(path, workspace.patched(workspace.text_of(self.files, path), old, new))

    def _put(self, path: str, text: str) -> str:
        name = workspace.place(path)
        if name in self.protected:
            raise ValueError(f"{name!r} can't be changed")
        data = text.encode("utf-8", errors="replace")
        workspace.check_room(self.files, name, data)
        self.files[name] = data
        return f"{name}: {len(text.splitlines())} lines"

    @tool
    async def run(self, path: str, arguments: list[str] = [], stdin: str = "") -> str:  # noqa: B006
        """Runs a Python file and shows what it prints.

        Args:
            path: its name.
            arguments: of the command line.
            stdin: its input.
        """
        workspace.text_of(self.files, path)
        program = workspace.run_program(self.files, workspace.place(path), arguments, stdin, CALL_LIMITS)
        result = await self.sandbox.run(program)
        files, left = workspace.unpacked(await self.sandbox.run(workspace.pack_program()))
        self.files = {**files, **{name: self.given[name] for name in self.protected}}
        return "\n".join(part for part in (workspace.shown(result), left) if part)

    @tool(read_only=True)
    async def test(self) -> str:
        """Runs the visible tests."""
        program = workspace.test_program(self.files, self.tests, CALL_LIMITS)
        return workspace.shown(await self.sandbox.run(program))

    async def verify(self, task: Task, episode: Episode) -> Verdict:
        """Judges the target file, whatever was said; a declined task is no success."""
        try:
            reason = self._obvious_fault(episode) or await self._fault(task)
        except SandboxBroken as error:
            reason = f"{self.target} breaks the sandbox: {error}"
        return Verdict(success=not reason, reasons=(reason,) if reason else ())

    def _obvious_fault(self, episode: Episode) -> str:
        if (episode.answer or "").lstrip().startswith(DECLINE_PREFIXES):
            return "declined"
        if self.target not in self.files:
            return f"no file {self.target}"
        return f"{self.target} is as it was" if self.files[self.target] == self.given.get(self.target) else ""

    async def _fault(self, task: Task) -> str:
        """What is wrong with the target file, each part found in a sandbox of its own."""
        parts = task.answer.get("trials", [None])
        for part in parts:
            try:
                fault = await self._fault_of(task, part)
            except SandboxBroken:
                fault = await self._fault_of(task, part)  # what comes back is the file's doing
            if fault:
                return fault
        return ""

    async def _fault_of(self, task: Task, trial: dict[str, Any] | None) -> str:
        text, sandbox = self.files[self.target], self.make_sandbox()
        try:
            if trial is not None:
                return await trial_fault(sandbox, self.target, text, trial)
            wrong = await failed_cases(sandbox, self.target, text, task.answer)
            return f"{len(wrong)} of {len(task.answer['cases'])} hidden cases fail, such as {wrong[0]}" if wrong else ""
        finally:
            await sandbox.close()

    def milestones(self, task: Task) -> Mapping[str, bool]:
        """Whether the target file has been touched."""
        return {f"changed {self.target}": self.files.get(self.target) != self.given.get(self.target)}

    def solution(self, task: Task) -> Solution:
        """The plan the generator made, with a short thought before each turn.

        Raises:
            NotImplementedError: the task was not made by the generator.
        """
        if "plan" not in task.setup:
            raise NotImplementedError(f"task {task.id!r} has no reference solution")
        language = "zh" if "lang:zh" in task.tags else "en"
        for number, (name, arguments) in enumerate(task.setup["plan"]):
            yield Action(thought=THOUGHTS[language][name], calls=(Call(f"c{number}", name, arguments),))
        yield Action(thought=THOUGHTS[language]["done"], answer=CLOSING[language].format(file=task.setup["target"]))
