"""The workspace's side of a call: lays files out, runs one, and reports what is there. Runs inside the sandbox.

Standard library only, and only modules that the warm interpreter holds already: the scratch folder comes first on the
path, so any other import could be one that an agent planted.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import sys
import traceback

DEEPEST = 16  # folders within folders; what lies deeper is not kept


def read_exactly(count: int) -> bytes:
    """The next bytes of standard input, unbuffered: the rest belongs to the program."""
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            break
        data += part
    return data


def clear() -> None:
    """Empties the working folder, whatever rights its entries have and however deep they lie."""
    waiting, count = ["."], 0
    while waiting:
        folder = waiting.pop()
        os.chmod(folder, 0o700)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)
                continue
            os.chmod(path, 0o700)
            while os.path.lexists(f".{count}"):
                count += 1
            os.rename(path, f".{count}")  # to the top, so that no path grows too long
            waiting.append(f".{count}")
        if folder != ".":
            os.rmdir(folder)


def unpack() -> None:
    """Makes the scratch folder hold exactly the files on standard input."""
    clear()
    for path, size in json.loads(read_exactly(struct.unpack("!I", read_exactly(4))[0])):
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "wb") as file:
            file.write(read_exactly(size))


def run_file(path: str, arguments: list[str]) -> None:
    """Runs a Python file as the interpreter would run a script."""
    unpack()
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    module = sys.modules["__main__"] = type(sys)("__main__")
    module.__file__ = path
    with open(path, "rb") as file:
        source = file.read()
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except (SystemExit, MemoryError):
        raise
    except BaseException as error:
        traceback.print_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
        sys.exit(1)


def run_tests(module: str) -> None:
    """Runs a `unittest` module."""
    import unittest

    unpack()
    unittest.main(module=module, argv=["test"])


def pack(file_bytes: int, total_bytes: int, count: int) -> None:
    """Writes the regular files to standard output, as far as they fit: lengths, then contents."""
    kept: list[tuple[str, int]] = []
    left: list[str] = []
    total = 0
    os.chmod(".", 0o700)
    for path, size in sorted(_regular_files(".")):
        if size > file_bytes or total + size > total_bytes or len(kept) == count:
            left.append(path)
            continue
        kept.append((path, size))
        total += size
    head = json.dumps({"files": kept, "left": left[:5], "left_count": len(left)}).encode()
    write_all(struct.pack("!I", len(head)) + head)
    for path, size in kept:
        with open(path, "rb") as file:
            write_all(file.read(size))


def _regular_files(top: str) -> list[tuple[str, int]]:
    found = []
    for folder, folders, names in os.walk(top):
        if folder.count(os.sep) >= DEEPEST:
            folders.clear()
        folders[:] = [
            name for name in folders if name != "__pycache__" and _readable(os.path.join(folder, name), 0o700)
        ]
        for name in names:
            path = os.path.join(folder, name)
            about = os.lstat(path)
            if stat.S_ISREG(about.st_mode) and _spells(path) and _readable(path, 0o600):
                found.append((os.path.relpath(path, top), about.st_size))
    return found


def _readable(path: str, mode: int) -> bool:
    """Gives itself the right to read what is no link."""
    if os.path.islink(path):
        return False
    os.chmod(path, mode)
    return True


def _spells(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_all(data: bytes) -> None:
    """Writes to standard output, unbuffered."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
