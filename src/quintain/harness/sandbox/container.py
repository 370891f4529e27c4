"""The sandbox for those who prefer containers: docker, podman, or another program with docker's command line."""

from __future__ import annotations

import asyncio
import os
import random
import shutil

from quintain.harness.sandbox.mechanism import SCRATCH, CannotConfine, check_machine, thread_limits
from quintain.harness.sandbox.program import MEBIBYTE
from quintain.harness.sandbox.seccomp import seccomp_filter
from quintain.harness.sandbox.session import Session, StartError
from quintain.harness.sandbox.warm import WarmSandbox

_CAPABILITIES = ("SETUID", "SETGID", "KILL", "SYS_PTRACE", "CHOWN")  # of the warden; programs hold none
_CLI_ENVIRONMENT = (
    *("PATH", "HOME", "XDG_RUNTIME_DIR"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "CONTAINERS_CONF"),
)


class Container(WarmSandbox):
    """Runs programs in a container, one for each sandbox; starts at the first call.

    Inside is what the image holds, read-only, and the scratch folder. There is no network; programs hold no
    privilege, have a user id of their own and pass the same system-call filter as in `Bubblewrap`. The interpreter is
    warm and each call runs in a fork of it, but calls share the container's PID namespace: what a call leaves behind is
    killed by its user id. A cancelled call ends the sandbox.

    Args:
        image: with `python3` of version 3.11 or later; it must be there already.
        command: the container engine's command line.
        scratch_bytes: size of the scratch folder, held in memory.
        memory_bytes: of the whole container.
        processes: of the whole container.
        imports: modules that the interpreter imports once, before the first call.
    """

    def __init__(
        self,
        image: str = "python:3.11-slim",
        *,
        command: str = "docker",
        scratch_bytes: int = 64 * MEBIBYTE,
        memory_bytes: int = 2048 * MEBIBYTE,
        processes: int = 256,
        imports: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self._image = image
        self._engine = command
        self._scratch_bytes = scratch_bytes
        self._memory_bytes = memory_bytes
        self._processes = processes
        self._imports = imports
        self._uid = random.SystemRandom().randrange(1 << 20, 1 << 30)
        self._name = f"quintain-{random.SystemRandom().getrandbits(64):016x}"

    def arguments(self) -> tuple[str, ...]:
        """The command line that starts the container, up to and including the interpreter."""
        scratch = f"{SCRATCH}:rw,nosuid,nodev,size={self._scratch_bytes},mode=0700"  # its owner podman can't be told
        environment = {"HOME": SCRATCH, "TMPDIR": SCRATCH, "LANG": "C.UTF-8", **thread_limits()}
        return (
            *(self._engine, "run", "--rm", "--interactive", "--pull", "never", "--name", self._name),
            *("--network", "none", "--ipc", "none", "--hostname", "sandbox", "--read-only", "--tmpfs", scratch),
            *("--user", "0:0", "--cap-drop", "ALL"),
            *(word for name in _CAPABILITIES for word in ("--cap-add", name)),
            *("--security-opt", "no-new-privileges"),
            *("--memory", str(self._memory_bytes), "--memory-swap", str(self._memory_bytes)),
            *("--pids-limit", str(self._processes), "--workdir", "/"),
            *(word for name, value in environment.items() for word in ("--env", f"{name}={value}")),
            *(self._image, "python3", "-I", "-B", "-X", "utf8"),
        )

    async def _begin(self) -> Session:
        machine = check_machine()
        if shutil.which(self._engine) is None:
            raise CannotConfine(
                f"sandbox: no {self._engine!r} on the PATH; install it, or use Bubblewrap, which needs no daemon"
            )
        settings = {
            "confined": True,
            "namespaces": False,
            "imports": self._imports,
            "path": [],
            "scratch": SCRATCH,
            "scratch_bytes": self._scratch_bytes,
            "seccomp": seccomp_filter(machine).hex(),
            "uid": self._uid,
            "switch_user": True,
            "count_processes": True,
            "own_processes": 0,
        }
        try:
            return await Session.start(self.arguments(), _environment(), settings)
        except StartError as error:
            raise CannotConfine(
                f"sandbox: {self._engine} can't start {self._image!r} ({error or 'no reason given'}); is its daemon "
                f"running, and the image there (`{self._engine} pull {self._image}`)?"
            ) from None

    async def _ended(self) -> None:
        """Ends the container, should it outlive the command that started it."""
        if self._session is None:
            return
        null = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            self._engine, "kill", self._name, stdout=null, stderr=null, env=_environment()
        )
        await process.wait()


def _environment() -> dict[str, str]:
    """What the engine's command line needs; none of it reaches the container."""
    return {name: os.environ[name] for name in _CLI_ENVIRONMENT if name in os.environ}
