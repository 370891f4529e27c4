"""What a sandbox promises about programs that do not behave: a typed result within the limit, and no harm."""

import asyncio
import os
import signal
import socket
import textwrap
from pathlib import Path

import pytest

from quintain.harness.sandbox import Bubblewrap, Limits, Program, mechanism

QUICK = Limits(seconds=1.0)
MIB = 1 << 20


@pytest.fixture
async def sandbox():
    box = Bubblewrap(scratch_bytes=8 * MIB)
    yield box
    await box.close()


async def attempt(sandbox, source, limits=QUICK):
    """Runs it, then checks that the sandbox is as good as new."""
    result = await sandbox.run(Program(source=textwrap.dedent(source), limits=limits))
    after = await sandbox.run(Program(source="print('fine')"))
    assert after.stdout == b"fine\n"
    return result


# limits


async def test_an_endless_loop_ends_as_timeout(sandbox):
    result = await attempt(sandbox, "print('begun', flush=True)\nwhile True: pass", Limits(seconds=0.3))
    assert (result.ended, result.exit, result.stdout) == ("timeout", None, b"begun\n")
    assert 0.3 <= result.seconds < 5


async def test_a_program_that_ignores_every_signal_ends_as_timeout(sandbox):
    source = """
    import signal, time
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)
    """
    assert (await attempt(sandbox, source, Limits(seconds=0.3))).ended == "timeout"


async def test_processor_time_has_a_limit_of_its_own(sandbox):
    assert (await attempt(sandbox, "while True: pass", Limits(seconds=30, cpu_seconds=1))).ended == "cpu"


async def test_endless_printing_ends_as_output_and_keeps_what_fits(sandbox):
    result = await attempt(sandbox, "while True: print('x' * 999)", Limits(seconds=20, output_bytes=5000))
    assert (result.ended, result.stdout) == ("output", (b"x" * 999 + b"\n") * 5)


async def test_output_and_errors_share_one_limit(sandbox):
    source = "import sys; sys.stdout.write('o' * 600); sys.stdout.flush(); sys.stderr.write('e' * 600)"
    result = await attempt(sandbox, source, Limits(output_bytes=1000))
    assert (result.ended, len(result.stdout) + len(result.stderr)) == ("output", 1000)


async def test_filling_memory_ends_as_memory(sandbox):
    result = await attempt(sandbox, "x = []\nwhile True: x.append(bytearray(1 << 20))", Limits(memory_bytes=64 * MIB))
    assert result.ended == "memory"
    assert result.stderr.endswith(b"MemoryError\n")


async def test_filling_memory_with_small_objects_ends_as_memory(sandbox):
    limits = Limits(seconds=30, memory_bytes=32 * MIB)
    assert (await attempt(sandbox, "x = []\nwhile True: x.append([x])", limits)).ended == "memory"


async def test_memory_is_counted_over_all_processes(sandbox):
    source = """
    import os, time
    for _ in range(8):
        if os.fork() == 0:
            x = bytearray(os.urandom(1)) * (40 << 20)
            time.sleep(60)
    time.sleep(60)
    """
    assert (await attempt(sandbox, source, Limits(seconds=20, memory_bytes=100 * MIB))).ended == "memory"


async def test_pages_that_processes_share_count_once(sandbox):
    source = """
    import os, time
    x = bytearray(os.urandom(1)) * (60 << 20)
    for _ in range(4):
        if os.fork() == 0:
            time.sleep(0.3)
            os._exit(0)
    for _ in range(4):
        os.wait()
    """
    assert (await attempt(sandbox, source, Limits(seconds=20, memory_bytes=100 * MIB))).ended == "exit"


@pytest.mark.parametrize("preloaded", [(), ("numpy",)])
async def test_numpy_under_the_memory_limit_ends_with_an_error(preloaded):
    box = Bubblewrap(imports=preloaded)
    source = """
    import numpy
    print(int((numpy.ones((300, 300)) @ numpy.ones((300, 300))).sum()))
    kept = [numpy.ones((2000, 2000)) for _ in range(100)]
    print(sum((a @ a).sum() for a in kept))
    """
    try:
        result = await attempt(box, source, Limits(seconds=20, memory_bytes=256 * MIB))
        assert (result.ended, result.stdout) == ("memory", b"27000000\n")
        small = await attempt(box, source, Limits(seconds=3, memory_bytes=8 * MIB))
        assert small.ended in ("memory", "exit", "signal", "timeout")
        assert not small.ok
    finally:
        await box.close()


async def test_a_fork_bomb_meets_the_process_limit(sandbox):
    source = """
    import os
    while True:
        try:
            os.fork()
        except BlockingIOError:
            pass
    """
    result = await attempt(sandbox, source)
    assert result.ended in ("timeout", "processes")


async def test_the_process_limit_is_exact(sandbox):
    source = """
    import os, time
    made = 1
    try:
        while True:
            if os.fork() == 0:
                time.sleep(60)
            made += 1
    except BlockingIOError:
        print(made)
    """
    if not mechanism.find_mechanism().count_processes or (os.geteuid() == 0 and not mechanism._own_user()):
        pytest.skip("this kernel can't count a sandbox's processes apart")
    assert (await attempt(sandbox, source, Limits(processes=5))).stdout == b"5\n"


async def test_one_fork_bomb_leaves_other_sandboxes_unharmed(sandbox):
    bomb = Bubblewrap()
    source = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    try:
        running = asyncio.create_task(bomb.run(Program(source=source, limits=QUICK)))
        await asyncio.sleep(0.3)
        program = Program(source="import subprocess; print(subprocess.check_output(['echo', 'ok']).decode())")
        assert (await sandbox.run(program)).stdout == b"ok\n\n"
        assert (await running).ended in ("timeout", "processes")
    finally:
        await bomb.close()


async def test_filling_the_scratch_folder_fails_inside_and_emptying_it_helps(sandbox):
    source = """
    with open('big', 'wb') as file:
        while True: file.write(bytes(1 << 20))
    """
    result = await attempt(sandbox, source, Limits(seconds=10))
    assert b"No space left on device" in result.stderr
    with pytest.raises(OSError, match="No space left"):
        await sandbox.write("more", bytes(MIB))
    assert (await attempt(sandbox, "import os; os.remove('big'); open('small', 'w').write('1')")).ok


async def test_endless_empty_files_fail_inside(sandbox):
    result = await attempt(sandbox, "n = 0\nwhile True:\n  open(str(n), 'w'); n += 1", Limits(seconds=20))
    assert b"No space left on device" in result.stderr


async def test_a_file_has_its_own_limit(sandbox):
    result = await attempt(sandbox, "open('f', 'wb').write(bytes(2 << 20))", Limits(file_bytes=MIB))
    assert b"File too large" in result.stderr


async def test_temporary_files_and_shared_memory_use_the_scratch_folder(sandbox):
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "/", "/usr", "/python", "/dev", "/etc", "/proc"):
        result = await attempt(sandbox, f"open('{folder}/x', 'wb').write(bytes(9 << 20))")
        expected = b"No space left" if folder in ("/tmp", "/dev/shm") else b"Error"
        assert expected in result.stderr
        assert result.exit == 1


# the host


@pytest.mark.parametrize("path", ["/root", "/home", "/srv", "/etc/passwd", "/etc/shadow", "/sys", "/var"])
async def test_host_files_do_not_exist_inside(sandbox, path):
    source = f"import os; print(os.listdir({path!r}) if os.path.isdir({path!r}) else open({path!r}).read())"
    result = await attempt(sandbox, source)
    assert (result.exit, result.stdout) == (1, b"")


async def test_the_folder_of_this_test_does_not_exist_inside(sandbox, tmp_path):
    (tmp_path / "secret").write_text("s")
    for path in (tmp_path / "secret", Path(__file__)):
        assert b"FileNotFoundError" in (await attempt(sandbox, f"open({str(path)!r})")).stderr


async def test_no_environment_reaches_the_program(sandbox, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "abc123")
    box = Bubblewrap()
    try:
        result = await box.run(Program(argv=("env",)))
        both = await box.run(Program(source="print(open('/proc/self/environ').read())"))
    finally:
        await box.close()
    assert b"abc123" not in result.stdout + both.stdout
    assert b"HOME=/scratch" in result.stdout


async def test_only_its_own_processes_are_visible(sandbox):
    source = "import os; print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()), os.getpid())"
    assert (await attempt(sandbox, source)).stdout == b"[1, 2] 2\n"


async def test_the_program_holds_no_privilege(sandbox):
    lines = dict(
        line.split(":\t")
        for line in (await attempt(sandbox, "print(open('/proc/self/status').read())")).stdout.decode().splitlines()
        if line.startswith(("Cap", "NoNewPrivs", "Seccomp:", "Uid"))
    )
    assert {lines[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert (lines["NoNewPrivs"], lines["Seccomp"]) == ("1", "2")
    assert "0" not in lines["Uid"].split()


@pytest.mark.parametrize(
    "attack",
    [
        "import socket; socket.create_connection(('127.0.0.1', PORT), 1)",
        "import socket; socket.create_connection(('1.1.1.1', 53), 1)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
        "import socket; socket.socket(socket.AF_INET6)",
        "import socket; socket.socket(socket.AF_UNIX).connect('\\0ABSTRACT')",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    ],
)
async def test_no_socket_opens(sandbox, attack):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"quintain-test-{os.getpid()}"
        abstract.bind("\0" + name)
        abstract.listen()
        source = attack.replace("PORT", str(server.getsockname()[1])).replace("ABSTRACT", name)
        assert b"PermissionError" in (await attempt(sandbox, source)).stderr


CALLS = {
    "ptrace": "libc.ptrace(16, 1, 0, 0)",
    "process_vm_readv": "libc.process_vm_readv(1, buffer, 0, buffer, 0, 0)",
    "mount": "libc.mount(b'tmpfs', b'/scratch', b'tmpfs', 0, None)",
    "remount": "libc.mount(None, b'/usr', None, 32 | 4096, None)",
    "umount": "libc.umount2(b'/proc', 2)",
    "chroot": "libc.chroot(b'/scratch')",
    "user namespace": "libc.unshare(0x10000000)",
    "clone into a user namespace": "libc.syscall(CLONE, 0x10000000 | 17, 0, 0, 0, 0)",
    "setns": "libc.setns(os.open('/proc/self/ns/mnt', 0), 0)",
    "bpf": "libc.syscall(BPF, 0, buffer, 64)",
    "memfd": "libc.memfd_create(b'x', 0)",
    "System V memory": "libc.shmget(0, 4096, 0o1600)",
    "host name": "libc.sethostname(b'x', 1)",
    "clock": "libc.clock_settime(0, buffer)",
    "kernel log": "libc.klogctl(3, buffer, 64)",
}


@pytest.mark.parametrize("name", CALLS)
async def test_system_calls_that_reach_beyond_the_program_are_refused(sandbox, name):
    numbers = {"x86_64": ("56", "321"), "aarch64": ("220", "280")}[os.uname().machine]
    call = CALLS[name].replace("CLONE", numbers[0]).replace("BPF", numbers[1])
    source = f"""
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(64)
    print({call}, ctypes.get_errno())
    """
    assert (await attempt(sandbox, source)).stdout == b"-1 1\n"


@pytest.mark.parametrize("number", [425, 435, 463, 500, 1000, 0x40000000])
async def test_io_uring_and_system_calls_unknown_to_the_filter_are_refused(sandbox, number):
    source = f"""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    print(libc.syscall({number}, 0, 0, 0, 0, 0, 0), ctypes.get_errno())
    """
    expected = b"-1 1\n" if number == 425 else b"-1 38\n"
    assert (await attempt(sandbox, source)).stdout == expected


@pytest.mark.parametrize("target", ["1", "os.getppid()", "HOST"])
async def test_no_other_process_can_be_signalled(sandbox, target):
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGSTOP):
        source = f"""
        import os
        try:
            os.kill({target.replace("HOST", str(os.getpid()))}, {int(number)})
        finally:
            print('still here')
        """
        assert (await attempt(sandbox, source)).ended == "exit"
