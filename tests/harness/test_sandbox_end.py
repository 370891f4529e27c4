"""Nothing a program started outlives its call, its sandbox or its host."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from harness.processes import processes_named
from quintain.harness.sandbox import Bubblewrap, Program
from quintain.interface.errors import InfraError


@pytest.fixture
async def sandbox():
    box = Bubblewrap()
    yield box
    await box.close()


async def gone(mark):
    """Waits for the kernel to clear killed processes away; False if one stays for 5 s."""
    for _ in range(500):
        if not processes_named(mark):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_processes_that_leave_their_session_die_with_the_call(sandbox):
    mark = f"quintain-survivor-{os.getpid()}"
    source = f"""
    import os, time
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.execv('/bin/sleep', ['{mark}', '300'])
    time.sleep(0.2)
    """
    result = await sandbox.run(Program(source=textwrap.dedent(source)))
    assert result.ended == "exit"
    assert await gone(mark)


async def test_a_survivor_cannot_write_into_the_next_call(sandbox):
    source = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.2)
        open('late', 'w').write('x')
        os._exit(0)
    """
    await sandbox.run(Program(source=textwrap.dedent(source)))
    result = await sandbox.run(Program(source="import os, time; time.sleep(0.5); print(os.listdir('.'))"))
    assert result.stdout == b"[]\n"


async def test_closing_ends_a_running_program(sandbox):
    mark = f"quintain-closed-{os.getpid()}"
    await sandbox.start()
    running = asyncio.create_task(sandbox.run(Program(source=f"import os; os.execv('/bin/sleep', ['{mark}', '300'])")))
    while not processes_named(mark):
        await asyncio.sleep(0.01)
    await sandbox.close()
    with pytest.raises(InfraError):
        await running
    assert await gone(mark)


async def test_a_cancelled_call_ends_its_program_and_the_sandbox(sandbox):
    mark = f"quintain-cancelled-{os.getpid()}"
    running = asyncio.create_task(sandbox.run(Program(source=f"import os; os.execv('/bin/sleep', ['{mark}', '300'])")))
    while not processes_named(mark):
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await gone(mark)
    with pytest.raises(InfraError, match="open a new one"):
        await sandbox.run(Program(source="pass"))


async def test_a_warden_killed_from_outside_is_an_infra_error(sandbox):
    await sandbox.start()
    os.kill(sandbox._session._process.pid, signal.SIGKILL)
    with pytest.raises(InfraError, match="open a new one"):
        await sandbox.run(Program(source="pass"))


async def test_nothing_survives_a_host_killed_in_the_middle_of_a_call(tmp_path):
    mark = f"quintain-orphan-{os.getpid()}"
    host = f"""
import asyncio
from quintain.harness.sandbox import Bubblewrap, Program
source = "import os; os.execv('/bin/sleep', ['{mark[:9]}' + '{mark[9:]}', '300'])"
asyncio.run(Bubblewrap().run(Program(source=source)))
"""
    process = subprocess.Popen([sys.executable, "-c", host], env=os.environ)
    deadline = time.monotonic() + 30
    while not processes_named(mark) and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert processes_named(mark)
    process.kill()
    process.wait()
    assert await gone(mark)
