"""What a sandbox promises about programs that behave."""

import asyncio
import os
import subprocess
import sys

import pytest

from quintain.harness.sandbox import Bubblewrap, Limits, Program, Sandbox, Unconfined
from quintain.interface.errors import InfraError, InputError


@pytest.fixture(params=[Bubblewrap, Unconfined])
async def sandbox(request):
    box = request.param()
    yield box
    await box.close()


async def test_a_program_gets_its_input_and_gives_output_and_status(sandbox):
    source = "import sys; print(sys.stdin.read().upper()); print('note', file=sys.stderr); sys.exit(3)"
    result = await sandbox.run(Program(source=source, stdin="héllo 世界".encode()))
    assert (result.stdout.decode(), result.stderr, result.exit, result.ended) == ("HÉLLO 世界\n", b"note\n", 3, "exit")
    assert not result.ok
    assert result.seconds > 0


async def test_the_record_says_whether_it_was_confined(sandbox):
    result = await sandbox.run(Program(source="pass"))
    assert result.confined is isinstance(sandbox, Bubblewrap)


async def test_both_kinds_keep_the_seam(sandbox):
    assert isinstance(sandbox, Sandbox)


@pytest.mark.parametrize(
    "source",
    [
        "print(1); raise SystemExit",
        "import sys; sys.exit('no such file')",
        "exit(5)",
        "import atexit; atexit.register(print, 'bye'); print('hi')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(.05), print('late'))).start()",
        "def f():\n  raise ValueError('é')\nf()",
        "x = (1,\n",
        "import sys; print(__name__, sys.argv[1:], __import__('__main__').__dict__ is globals())",
        "from __future__ import annotations\nx: int = 1\nprint(__annotations__)",
        "import json, decimal; print(json.dumps([str(decimal.Decimal(1) / 3)]))",
        "print('a', end=''); import os; os._exit(4)",
        "import asyncio\nasync def f(): print(await asyncio.sleep(0, 7))\nasyncio.run(f())",
        "import subprocess; print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout)",
        "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))",
    ],
)
async def test_python_source_ends_as_the_bare_interpreter_ends_it(sandbox, source):
    bare = subprocess.run([sys.executable, "-I", "-X", "utf8", "-c", source], capture_output=True, check=False)
    result = await sandbox.run(Program(source=source))
    last = [text.strip().splitlines()[-1:] for text in (bare.stderr, result.stderr)]
    assert (result.stdout, result.exit, result.ended) == (bare.stdout, bare.returncode, "exit")
    assert last[0] == last[1]


async def test_a_traceback_shows_the_program_alone(sandbox):
    result = await sandbox.run(Program(source="def f():\n    return 1 / 0\n\nf()\n"))
    lines = result.stderr.decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "<program>", line 4, in <module>'
    assert "    return 1 / 0" in lines
    assert lines[-1] == "ZeroDivisionError: division by zero"


async def test_an_argv_runs_a_command_of_the_system(sandbox):
    result = await sandbox.run(Program(argv=("sort", "-r"), stdin=b"a\nc\nb\n"))
    assert (result.stdout, result.ok) == (b"c\nb\na\n", True)


async def test_an_argv_that_does_not_exist_ends_with_127(sandbox):
    result = await sandbox.run(Program(argv=("no-such-command",)))
    assert (result.exit, result.stderr) == (127, b"no-such-command: No such file or directory\n")


async def test_a_crash_ends_as_signal(sandbox):
    result = await sandbox.run(Program(source="import os; os.abort()"))
    assert (result.ended, result.signal, result.exit) == ("signal", 6, None)


async def test_calls_share_the_scratch_folder_and_no_interpreter_state(sandbox):
    first = "import json, sys; json.dumps = None; sys.path.clear(); open('a', 'w').write('kept'); import builtins"
    await sandbox.run(Program(source=first + "; builtins.print = None"))
    result = await sandbox.run(Program(source="import json; print(json.dumps([open('a').read()]))"))
    assert result.stdout == b'["kept"]\n'


async def test_each_call_draws_its_own_random_numbers(sandbox):
    source = "import random; print(random.random())"
    outputs = {(await sandbox.run(Program(source=source))).stdout for _ in range(3)}
    assert len(outputs) == 3


async def test_host_and_program_exchange_files(sandbox):
    data = bytes(range(256)) * 5000
    await sandbox.write("in/data.bin", data)
    result = await sandbox.run(Program(source="open('out', 'wb').write(open('in/data.bin', 'rb').read()[::-1])"))
    assert result.ok
    assert await sandbox.read("out") == data[::-1]
    await sandbox.write("out", b"")
    assert await sandbox.read("out") == b""


async def test_a_module_in_the_scratch_folder_can_be_imported(sandbox):
    await sandbox.write("helper.py", b"value = 42\n")
    assert (await sandbox.run(Program(source="import helper; print(helper.value)"))).stdout == b"42\n"


async def test_files_outside_the_scratch_folder_are_refused(sandbox):
    source = (
        "import os; os.symlink('/usr', 'way'); os.symlink('/etc/localtime', 'clock'); os.mkfifo('pipe'); os.mkdir('d')"
    )
    assert (await sandbox.run(Program(source=source))).ok
    for path in ("clock", "/proc/self/stat", "../etc/localtime", "way/bin/env"):
        with pytest.raises(PermissionError):
            await sandbox.read(path)
    for path in ("way/bin/x", "/dev/null", "../x"):
        with pytest.raises(PermissionError):
            await sandbox.write(path, b"x")
    for path in ("d", "pipe"):
        with pytest.raises(OSError, match="sandbox: "):
            await sandbox.read(path)
    with pytest.raises(FileNotFoundError):
        await sandbox.read("missing")


async def test_input_that_nobody_reads_is_dropped(sandbox):
    result = await sandbox.run(Program(source="print('done')", stdin=b"x" * (4 << 20)))
    assert (result.stdout, result.ended) == (b"done\n", "exit")


async def test_large_input_and_output_pass_at_the_same_time(sandbox):
    data = os.urandom(3 << 20)
    program = Program(argv=("cat",), stdin=data, limits=Limits(output_bytes=4 << 20))
    assert (await sandbox.run(program)).stdout == data


async def test_calls_at_once_are_served_one_after_another(sandbox):
    results = await asyncio.gather(*(sandbox.run(Program(source=f"print({n})")) for n in range(4)))
    assert [result.stdout for result in results] == [b"0\n", b"1\n", b"2\n", b"3\n"]


async def test_many_sandboxes_run_at_once():
    boxes = [Bubblewrap() for _ in range(6)]
    try:
        results = await asyncio.gather(*(box.run(Program(source=f"print({n})")) for n, box in enumerate(boxes)))
        assert [result.stdout for result in results] == [f"{n}\n".encode() for n in range(6)]
        await boxes[0].write("mine", b"1")
        with pytest.raises(FileNotFoundError):
            await boxes[1].read("mine")
    finally:
        await asyncio.gather(*(box.close() for box in boxes))


async def test_imports_are_done_once_before_the_first_call():
    box = Bubblewrap(imports=("fractions",))
    try:
        result = await box.run(Program(source="import sys; print('fractions' in sys.modules)"))
        assert result.stdout == b"True\n"
    finally:
        await box.close()


@pytest.mark.parametrize("kind", [Bubblewrap, Unconfined])
async def test_an_import_that_fails_is_the_callers_mistake(kind):
    box = kind(imports=("json", "no_such_module"))
    try:
        with pytest.raises(InputError, match="No module named 'no_such_module'"):
            await box.run(Program(source="pass"))
    finally:
        await box.close()


async def test_a_closed_sandbox_says_so(sandbox):
    await sandbox.run(Program(source="pass"))
    await sandbox.close()
    with pytest.raises(InfraError, match="closed"):
        await sandbox.run(Program(source="pass"))


async def test_a_sandbox_that_never_ran_can_be_closed(sandbox):
    await sandbox.close()


@pytest.mark.parametrize("arguments", [{}, {"source": "1", "argv": ("ls",)}])
def test_a_program_is_source_or_argv(arguments):
    with pytest.raises(InputError, match="exactly one"):
        Program(**arguments)


@pytest.mark.parametrize("name", ["seconds", "cpu_seconds", "memory_bytes", "output_bytes", "processes", "file_bytes"])
def test_a_limit_of_nothing_is_refused(name):
    with pytest.raises(InputError, match=f"sandbox limit {name} is 0; it must be above 0"):
        Limits(**{name: 0})
