"""The sandbox in a container: its command line, what it says without an engine, and its side of the protocol.

`stub_engine.py` stands in for a container engine. It shows that the warden works in a PID namespace that all calls
share, and nothing about docker.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from quintain.harness.sandbox import CannotConfine, Container, Limits, Program, Sandbox
from quintain.interface.errors import InfraError

STUB = Path(__file__).with_name("stub_engine.py")
SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture
def engine(tmp_path):
    """Path of the stub."""
    path = tmp_path / "stub-engine"
    text = STUB.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1)
    path.write_text(text.replace("import sys\n", f"import sys\n\nsys.path.insert(0, {str(SOURCE)!r})\n", 1))
    path.chmod(0o755)
    return path


@pytest.fixture
async def sandbox(engine):
    if os.geteuid() != 0:
        pytest.skip("the stub needs root, as a container's warden has")
    box = Container(command=str(engine), scratch_bytes=8 << 20)
    yield box
    await box.close()


def option(arguments, name):
    """All values of an option."""
    return [arguments[at + 1] for at, word in enumerate(arguments) if word == name]


def test_the_command_line_confines():
    box = Container("python:3.12-slim", scratch_bytes=1000, memory_bytes=2000, processes=30)
    words = box.arguments()
    assert words[:5] == ("docker", "run", "--rm", "--interactive", "--pull")
    assert words[-6:] == ("python:3.12-slim", "python3", "-I", "-B", "-X", "utf8")
    assert "--read-only" in words
    assert "--privileged" not in words
    assert not [word for word in words if word in ("-v", "--volume", "--mount", "--device", "--publish")]
    expected = {
        "--network": ["none"],
        "--ipc": ["none"],
        "--pull": ["never"],
        "--cap-drop": ["ALL"],
        "--cap-add": ["SETUID", "SETGID", "KILL", "SYS_PTRACE", "CHOWN"],
        "--security-opt": ["no-new-privileges"],
        "--memory": ["2000"],
        "--memory-swap": ["2000"],
        "--pids-limit": ["30"],
        "--user": ["0:0"],
    }
    assert {name: option(words, name) for name in expected} == expected
    (scratch,) = option(words, "--tmpfs")
    assert scratch == "/scratch:rw,nosuid,nodev,size=1000,mode=0700"


def test_two_containers_share_no_name():
    first, second = (Container().arguments() for _ in range(2))
    assert option(first, "--name") != option(second, "--name")


def test_no_variable_of_the_host_is_passed_on(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "abc123")
    assert "abc123" not in " ".join(Container().arguments())


async def test_without_an_engine_it_says_so_in_one_line():
    box = Container(command="no-such-engine")
    with pytest.raises(CannotConfine) as error:
        await box.run(Program(source="pass"))
    assert str(error.value) == (
        "sandbox: no 'no-such-engine' on the PATH; install it, or use Bubblewrap, which needs no daemon"
    )
    await box.close()


async def test_an_image_that_is_not_there_is_one_line_with_the_remedy(engine):
    box = Container("missing", command=str(engine))
    with pytest.raises(CannotConfine, match=r"No such image: missing\); is its daemon running.* pull missing"):
        await box.run(Program(source="pass"))
    await box.close()


async def test_it_keeps_the_seam(sandbox, engine):
    assert isinstance(sandbox, Sandbox)
    await sandbox.write("in/a.txt", b"kept")
    result = await sandbox.run(Program(source="print(open('in/a.txt').read()); import sys; sys.exit(3)"))
    assert (result.stdout, result.exit, result.ended, result.confined) == (b"kept\n", 3, "exit", True)
    assert await sandbox.read("in/a.txt") == b"kept"
    with pytest.raises(PermissionError):
        await sandbox.read("/proc/self/stat")
    await sandbox.close()
    with pytest.raises(InfraError, match="closed"):
        await sandbox.run(Program(source="pass"))
    calls = [json.loads(line) for line in (engine.parent / "calls.jsonl").read_text().splitlines()]
    assert [call[0] for call in calls] == ["run", "kill"]
    assert option(calls[0], "--name") == [calls[1][1]]


async def test_programs_hold_no_privilege_and_cannot_touch_the_warden(sandbox):
    source = """
import os
print([line.split()[1] for line in open('/proc/self/status') if line[:6] in ('CapEff', 'CapPrm', 'CapAmb', 'CapInh')])
print(os.getuid() != 0)
for pid in range(1, os.getpid()):
    try:
        os.kill(pid, 9)
        print('killed', pid)
    except (PermissionError, ProcessLookupError):
        pass
"""
    result = await sandbox.run(Program(source=source))
    assert result.stdout.decode().splitlines() == [str(["0" * 16] * 4), "True"]


async def test_what_a_call_leaves_behind_is_dead_before_the_next(sandbox):
    source = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(0.3)
        open('late', 'w').write('x')
        os._exit(0)
"""
    await sandbox.run(Program(source=source))
    after = """
import os, time
print(len([name for name in os.listdir('/proc') if name.isdigit()]))
time.sleep(0.6)
print(os.listdir('.'))
"""
    assert (await sandbox.run(Program(source=after))).stdout == b"3\n[]\n"


@pytest.mark.parametrize(
    ("source", "ended"),
    [
        ("while True: pass", "timeout"),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "memory"),
        ("while True: print('x' * 999)", "output"),
        ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "timeout"),
    ],
)
async def test_limits_hold_and_the_next_call_is_well(sandbox, source, ended):
    limits = Limits(seconds=1.0, memory_bytes=64 << 20, output_bytes=1000, processes=8)
    result = await sandbox.run(Program(source=source, limits=limits))
    assert result.ended in (ended, "processes") if "fork" in source else result.ended == ended
    assert (await sandbox.run(Program(source="print('well')"))).stdout == b"well\n"
