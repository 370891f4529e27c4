"""The files of a workspace, kept on the host: what a person does to them by hand, without running anything."""

from __future__ import annotations

import json
import posixpath
import re
import struct
from functools import cache
from pathlib import Path

from quintain.harness.sandbox import Limits, Program, ProgramResult
from quintain.interface.errors import InfraError

FILE_BYTES, TOTAL_BYTES, FILES = 256 << 10, 1 << 20, 64
"""What a workspace keeps: of one file, of all, and how many. It is part of every snapshot."""
PAGE_LINES, PAGE_CHARACTERS = 120, 6000
"""What one look at a file shows."""
OUTPUT_CHARACTERS = 2000
"""What is shown of a program's output: the end, where the error stands."""

Files = dict[str, bytes]

_TEST_TIME = re.compile(r"^(Ran \d+ tests?) in [\d.]+s$", re.MULTILINE)  # episodes that do the same shall see the same


def place(path: str) -> str:
    """A path of the workspace, in its plain form.

    Raises:
        ValueError: it leads out of the workspace, or is no name of a file.
    """
    plain = posixpath.normpath(path)
    if not path or plain.startswith(("/", "..")) or plain == "." or "\0" in plain or len(plain) > 200:
        raise ValueError(f"{path[:60]!r} is no file of the workspace; paths are relative, such as src/main.py")
    return plain


def text_of(files: Files, path: str) -> str:
    """Text of a file; bytes that are no UTF-8 show as U+FFFD.

    Raises:
        ValueError: there is no such file, or it is binary.
    """
    name = place(path)
    if name not in files:
        raise ValueError(f"no file {name!r}; files: {', '.join(sorted(files)[:20]) or 'none'}")
    if b"\0" in files[name]:
        raise ValueError(f"{name!r} is binary ({len(files[name])} bytes)")
    return files[name].decode("utf-8", errors="replace")


def lines_of(text: str, first: int, last: int) -> str:
    """Lines `first` to `last` (0: as far as one page goes), with a note if that is not all of it.

    Raises:
        ValueError: there are no such lines.
    """
    lines = text.splitlines(keepends=True)
    if not lines:
        return "(empty)"
    if not 1 <= first <= len(lines) or (last and last < first):
        raise ValueError(f"the file has lines 1 to {len(lines)}, not {first} to {last or 'its end'}")
    stop = min(last or len(lines), first - 1 + PAGE_LINES, len(lines))
    shown = "".join(lines[first - 1 : stop])
    if len(shown) > PAGE_CHARACTERS:
        shown = shown[:PAGE_CHARACTERS] + "...\n"
    whole = first == 1 and stop == len(lines)
    return shown if whole else f"{shown.rstrip()}\n(lines {first} to {stop} of {len(lines)})"


def patched(text: str, old: str, new: str) -> str:
    """The text with its only occurrence of `old` replaced.

    Raises:
        ValueError: `old` does not occur exactly once.
    """
    if not occurs_once(text, old):
        times = "more than once" if old and old in text else "nowhere"
        raise ValueError(f"the old text occurs {times}, and must occur once; copy it with the lines around it")
    return text.replace(old, new)


def occurs_once(text: str, part: str) -> bool:
    """True if a text holds a part in one place only, places that overlap counted apart."""
    return bool(part) and part in text and text.find(part) == text.rfind(part)


def check_room(files: Files, path: str, data: bytes) -> None:
    """Refuses a file that the workspace has no room for.

    Raises:
        ValueError: says which bound it is over, or that a file and a folder have one name.
    """
    others = {name: held for name, held in files.items() if name != path}
    total = sum(map(len, others.values())) + len(data)
    if len(data) > FILE_BYTES or total > TOTAL_BYTES:
        raise ValueError(f"{len(data)} bytes in a file (at most {FILE_BYTES}), {total} in all (at most {TOTAL_BYTES})")
    if len(others) >= FILES:
        raise ValueError(f"the workspace holds {len(others)} files, and no more than {FILES}")
    if any(name.startswith(path + "/") or path.startswith(name + "/") for name in others):
        raise ValueError(f"{path!r} is a folder, or lies in what is a file")


def listing(files: Files) -> str:
    """One line a file."""
    return "\n".join(f"{name} ({len(files[name])} bytes)" for name in sorted(files)) or "(no files)"


@cache
def _inside() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def run_program(files: Files, path: str, arguments: list[str], stdin: str, limits: Limits) -> Program:
    """A program that lays the files out and runs one of them."""
    data = _frame(files) + stdin.encode("utf-8", errors="replace")
    return Program(source=f"{_inside()}\nrun_file({path!r}, {arguments!r})\n", stdin=data, limits=limits)


def test_program(files: Files, module: str, limits: Limits) -> Program:
    """A program that lays the files out and runs a test module."""
    return Program(source=f"{_inside()}\nrun_tests({module!r})\n", stdin=_frame(files), limits=limits)


def pack_program() -> Program:
    """A program that reports the files there are."""
    limits = Limits(output_bytes=TOTAL_BYTES + (1 << 20))
    return Program(source=f"{_inside()}\npack({FILE_BYTES}, {TOTAL_BYTES}, {FILES})\n", limits=limits)


def _frame(files: Files) -> bytes:
    head = json.dumps([[name, len(data)] for name, data in sorted(files.items())]).encode()
    return struct.pack("!I", len(head)) + head + b"".join(data for _, data in sorted(files.items()))


def unpacked(result: ProgramResult) -> tuple[Files, str]:
    """The files of a pack program's result, and a note on those that are not kept.

    Raises:
        InfraError: it failed.
    """
    if not result.ok:
        raise InfraError(f"workspace: its files can't be read ({result.ended}; {result.stderr[-200:]!r})")
    (length,) = struct.unpack("!I", result.stdout[:4])
    head = json.loads(result.stdout[4 : 4 + length])
    files, at = {}, 4 + length
    for name, size in head["files"]:
        files[name] = result.stdout[at : at + size]
        at += size
    left = ", ".join(head["left"])
    more = f"[not kept, over the workspace's bounds: {head['left_count']} files, such as {left}]" if left else ""
    return files, more


def shown(result: ProgramResult) -> str:
    """What a person sees of a program that ended: output, errors, and how it ended."""
    parts = [_tail(result.stdout), _tail(result.stderr)]
    if result.ended != "exit":
        parts.append(f"[ended: {result.ended}]")
    elif result.exit:
        parts.append(f"[exit status {result.exit}]")
    return "\n".join(part for part in parts if part) or "(no output)"


def _tail(data: bytes) -> str:
    text = _TEST_TIME.sub(r"\1", data.decode("utf-8", errors="replace").strip("\n"))
    return text if len(text) <= OUTPUT_CHARACTERS else "..." + text[-OUTPUT_CHARACTERS:]
