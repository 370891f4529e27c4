"""Attempts to break out: none succeeds, each ends as a typed result, nothing outside is harmed, the next call works."""

import contextlib
import inspect
import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
import pytest_asyncio

from harness.processes import processes_named
from harness.sandbox_attack import MIB, PRELUDE
from harness.sandbox_attacks import OUTWARD
from harness.sandbox_attacks_within import INWARD
from quintain.harness.sandbox import Bubblewrap, Program, Unconfined
from quintain.harness.sandbox.seccomp import DENIED, MACHINES
from quintain.worlds.code import inside

ATTACKS = OUTWARD + INWARD
shared_loop = pytest.mark.asyncio(loop_scope="module")

TOKEN = "quintain-attack-token"
NEXT_CALL = """
import json, os, subprocess
open('next', 'w').write('1')
print(json.dumps([open('next').read(), os.getcwd(), subprocess.check_output(['echo', 'well'], text=True)]))
"""
CLEAR = inspect.getsource(inside) + "\nclear()\n"
WELL = b'["1", "/scratch", "well\\n"]\n'


class Host:
    """What there is to reach: a file, sockets, a process; and whether anybody did."""

    def __init__(self, folder):
        self.folder = folder
        self.secret = folder / "secret"
        self.secret.write_text("secret of the host")
        self.visits = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.named, self.abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self.named.bind(str(folder / "socket"))
        self.name = f"quintain-{os.getpid()}-{id(self)}"
        self.abstract.bind("\0" + self.name)
        for listener in (self.tcp, self.named, self.abstract):
            listener.listen()
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        self.victim = subprocess.Popen(["sleep", "600"], env={"TOKEN": TOKEN})

    def _accept(self, listener):
        try:
            while True:
                self.visits.append(listener.accept()[0])
        except OSError:
            return

    def described(self, mark):
        """What an attack is told."""
        column = MACHINES.index(os.uname().machine)
        return {
            "secret": str(self.secret),
            "folder": str(self.folder),
            "test": str(Path(__file__)),
            "victim": self.victim.pid,
            "token": TOKEN,
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "socket": str(self.folder / "socket"),
            "abstract": self.name,
            "mark": mark,
            "clone": (56, 220)[column],
            "calls": {name: numbers[column] for name, numbers in DENIED.items() if numbers[column] is not None},
        }

    def unharmed(self):
        """True if the file is as it was, its folder holds nothing new, and the process lives."""
        names = sorted(path.name for path in self.folder.iterdir())
        return (self.secret.read_text(), names, self.victim.poll()) == (
            "secret of the host",
            ["secret", "socket"],
            None,
        )

    def close(self):
        for one in (self.tcp, self.udp, self.named, self.abstract):
            one.close()
        self.victim.kill()
        self.victim.wait()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    os.environ["TOKEN"] = TOKEN
    one = Host(tmp_path_factory.mktemp("host"))
    yield one
    one.close()
    del os.environ["TOKEN"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def boxes():
    """The sandbox under attack, the same for all of them, and the one of another episode."""
    pair = Bubblewrap(scratch_bytes=8 * MIB), Bubblewrap()
    yield pair
    for box in pair:
        await box.close()


def program(attack, host, mark):
    return Program(
        source=PRELUDE + attack.source, stdin=json.dumps(host.described(mark)).encode(), limits=attack.limits
    )


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 60


async def attempt(attack, host, boxes):
    """Runs it: nothing outside may be harmed, and the sandbox must be well after it.

    Returns its result, its output, and what clearing the scratch folder came to.
    """
    attacked, neighbour = boxes
    mark = f"quintain-{os.getpid()}-{ATTACKS.index(attack)}"
    await neighbour.write("kept", b"kept")
    result = await attacked.run(program(attack, host, mark))
    assert result.confined
    assert processes_named(mark) == []
    assert host.unharmed()
    assert (await neighbour.read("kept"), (await neighbour.run(Program(source=NEXT_CALL))).stdout) == (b"kept", WELL)
    cleared = await attacked.run(Program(source=CLEAR))
    after = await attacked.run(Program(source=NEXT_CALL))
    assert after.stdout == WELL, after.stderr[-500:]
    assert host.visits == []
    return result, (result.stdout + result.stderr).decode(errors="replace"), cleared


@shared_loop
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_ends_as_a_typed_result_and_harms_nothing(attack, host, boxes):
    result, output, cleared = await attempt(attack, host, boxes)
    assert result.ended in attack.ended, output[-500:]
    assert "REACHED" not in output
    assert attack.says in output
    assert cleared.ok


@pytest.mark.parametrize("attack", [one for one in ATTACKS if one.control], ids=lambda attack: attack.name)
async def test_without_confinement_the_same_program_reaches_its_aim(attack, tmp_path):
    host, box, mark = Host(tmp_path), Unconfined(), f"quintain-{os.getpid()}-control"
    try:
        result = await box.run(program(attack, host, mark))
        assert b"REACHED" in result.stdout or processes_named(mark), result.stdout + result.stderr
    finally:
        for pid in processes_named(mark):
            os.kill(pid, signal.SIGKILL)
        await box.close()
        host.close()


@shared_loop
async def test_the_host_follows_no_link_out_of_the_scratch_folder(host, boxes):
    source = f"import os; os.symlink({str(host.secret)!r}, 'way'); os.symlink({str(host.folder)!r}, 'to')"
    await boxes[0].run(Program(source=source))
    paths = ("way", "to/secret", str(host.secret), "../" * 9 + str(host.secret))
    for path in paths:
        with pytest.raises(OSError, match="sandbox: "):
            await boxes[0].read(path)
    for path in paths:
        with contextlib.suppress(OSError):  # what lies in /tmp has a namesake inside
            await boxes[0].write(path, b"x")
    assert host.unharmed()
