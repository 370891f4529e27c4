"""Runs programs with this process's own rights. For those who ask for it by this name."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

from quintain.harness.sandbox.mechanism import thread_limits
from quintain.harness.sandbox.program import MEBIBYTE
from quintain.harness.sandbox.session import Session, StartError
from quintain.harness.sandbox.warm import WarmSandbox
from quintain.interface.errors import InfraError


class Unconfined(WarmSandbox):
    """Runs programs as the user runs, and says so in every result (`confined` is False).

    They see the network, the files and the other processes of this user. The limits on seconds, memory of one
    process, output and file size hold; those on processes and the scratch folder don't, and a process that leaves
    the program's session survives it. A cancelled call ends the sandbox.

    Args:
        imports: modules that the interpreter imports once, before the first call.
    """

    def __init__(self, *, imports: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._imports = imports
        self._scratch = ""

    async def _begin(self) -> Session:
        self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="quintain-"))
        return await _start(self._scratch, self._imports)

    async def _ended(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)


async def _start(scratch: str, imports: tuple[str, ...]) -> Session:
    environment = {"PATH": os.defpath, "HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8", **thread_limits()}
    settings = {
        "confined": False,
        "namespaces": False,
        "switch_user": False,
        "imports": imports,
        "path": [],
        "scratch": scratch,
        "scratch_bytes": 64 * MEBIBYTE,
        "count_processes": False,
    }
    try:
        return await Session.start((sys.executable, "-I", "-B", "-X", "utf8"), environment, settings)
    except StartError as error:
        raise InfraError(f"sandbox: the interpreter did not start ({error})") from None
