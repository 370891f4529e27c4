"""What the world `code` promises of its workspace, its programs and its snapshots."""

import dataclasses

import pytest

from quintain.doctor.world import WorldExam
from quintain.harness.faults import FaultPlan
from quintain.harness.journal import Journal
from quintain.harness.loop import Harness
from quintain.interface.episode import Budget
from quintain.interface.errors import InputError
from quintain.worlds.code import TEMPLATES, Code, generate, workspace
from quintain.worlds.code.world import CALL_LIMITS
from worlds.code_episodes import DONE, Script, do, one, play, said

TASK = one("program_top")


def write(path, text):
    return do("write", path=path, text=text)


async def test_a_file_is_listed_read_in_parts_patched_and_run():
    text = "".join(f"print({number})\n" for number in range(1, 6))
    episode = await play(
        TASK,
        write("a/five.py", text),
        do("list"),
        do("read", path="a/five.py", first=2, last=3),
        do("patch", path="a/five.py", old="print(4)", new="print(40)"),
        do("run", path="a/five.py"),
        do("read", path="a/five.py"),
    )
    seen = said(episode)
    assert seen[1].startswith("a/five.py (45 bytes)\ntest_solution.py (")
    assert seen[2] == "print(2)\nprint(3)\n(lines 2 to 3 of 5)"
    assert seen[4] == "1\n2\n3\n40\n5"
    assert seen[5] == text.replace("4", "40")


async def test_a_program_gets_arguments_and_input_and_its_files_stay():
    source = "import sys\nopen('out/made.txt', 'w').write(sys.argv[1] + sys.stdin.read())\n"
    episode = await play(
        TASK,
        write("make.py", "import os\nos.makedirs('out', exist_ok=True)\n" + source),
        do("run", path="make.py", arguments=["é"], stdin="世界"),
        do("read", path="out/made.txt"),
    )
    assert said(episode)[1:] == ["(no output)", "é世界"]


async def test_a_program_that_fails_shows_its_own_traceback():
    episode = await play(TASK, write("bad.py", "def f():\n    return 1 / 0\n\nf()\n"), do("run", path="bad.py"))
    lines = said(episode)[1].splitlines()
    assert lines[1] == '  File "bad.py", line 4, in <module>'
    assert lines[-2:] == ["ZeroDivisionError: division by zero", "[exit status 1]"]


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("while True: pass", "[ended: cpu]"),
        ("x = []\nwhile True: x.append(bytearray(1 << 24))", "[ended: memory]"),
        ("while True: print('x' * 9999)", "[ended: output]"),
        ("import os; os.abort()", "[ended: signal]"),
        ("import sys; sys.exit('no')", "[exit status 1]"),
    ],
)
async def test_a_program_that_ends_badly_is_an_observation_and_the_files_stay(source, word, monkeypatch):
    quick = dataclasses.replace(CALL_LIMITS, cpu_seconds=1)
    monkeypatch.setattr("quintain.worlds.code.world.CALL_LIMITS", quick)
    episode = await play(TASK, write("bad.py", source), do("run", path="bad.py"), do("list"))
    assert said(episode)[1].endswith(word)
    assert "bad.py" in said(episode)[2]
    assert [seen.error for turn in episode.turns for seen in turn.observations] == ["", "", ""]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "..", ".", "a\0b", "x" * 300])
async def test_paths_outside_the_workspace_are_refused_in_one_line(path):
    episode = await play(TASK, write(path, "x"), do("read", path=path), do("run", path=path))
    assert all("is no file of the workspace" in text for text in said(episode))


async def test_what_cannot_be_done_says_why():
    episode = await play(
        TASK,
        do("read", path="missing.py"),
        write("a.py", "x = 1\nx = 1\n"),
        do("patch", path="a.py", old="x = 1", new="x = 2"),
        do("patch", path="a.py", old="y", new="z"),
        do("read", path="a.py", first=3),
        write("a.py/b.py", "x"),
        write("big.txt", "x" * (workspace.FILE_BYTES + 1)),
    )
    seen = said(episode)
    assert "no file 'missing.py'; files: test_solution.py" in seen[0]
    assert "occurs more than once, and must occur once" in seen[2]
    assert "occurs nowhere, and must occur once" in seen[3]
    assert "lines 1 to 2, not 3 to its end" in seen[4]
    assert "lies in what is a file" in seen[5]
    assert f"{workspace.FILE_BYTES + 1} bytes in a file (at most {workspace.FILE_BYTES})" in seen[6]


async def test_binary_files_and_other_encodings_are_handled():
    source = "open('b', 'wb').write(bytes(range(256)))\nopen('l', 'wb').write('café'.encode('latin-1'))\n"
    episode = await play(
        TASK, write("make.py", source), do("run", path="make.py"), do("read", path="b"), do("read", path="l")
    )
    assert "'b' is binary (256 bytes)" in said(episode)[2]
    assert said(episode)[3] == "caf\ufffd"


async def test_a_workspace_keeps_what_fits_and_says_what_it_left():
    source = "open('big', 'wb').write(bytes(10**6))\nfor n in range(100): open(f's{n:03}', 'w').write('x')\n"
    episode = await play(TASK, write("make.py", source), do("run", path="make.py"), do("list"))
    assert "not kept, over the workspace's bounds: 39 files, such as big, " in said(episode)[1]
    assert len(said(episode)[2].splitlines()) == workspace.FILES + 1  # a protected file is there whatever happens


async def test_files_without_rights_links_and_pipes_are_cleared_away():
    source = """
import os
os.mkdir('locked'); open('locked/in', 'w').write('kept'); os.chmod('locked', 0)
os.symlink('/', 'root'); os.mkfifo('pipe'); open('mute', 'w').write('kept'); os.chmod('mute', 0)
"""
    again = "import os\nprint(sorted(os.listdir('.')))\n"
    episode = await play(
        TASK,
        write("make.py", source),
        write("look.py", again),
        do("run", path="make.py"),
        do("read", path="locked/in"),
        do("read", path="mute"),
        do("run", path="look.py"),
    )
    assert said(episode)[3:] == ["kept", "kept", "['locked', 'look.py', 'make.py', 'mute', 'test_solution.py']"]


async def test_folders_nested_without_end_are_cleared_away():
    nest = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\nopen('deep', 'w').write('x')\n"
    look = "import os\nprint(sorted(os.listdir('.')))\n"
    episode = await play(
        TASK, write("nest.py", nest), write("look.py", look), do("run", path="nest.py"), do("run", path="look.py")
    )
    assert said(episode)[2:] == ["(no output)", "['look.py', 'nest.py', 'test_solution.py']"]


async def test_rewinding_goes_back_to_the_files_of_that_turn(tmp_path):
    journal = Journal(tmp_path)
    harness = Harness(Code, journal=journal)
    count = "open('n', 'a').write('x')\nprint(len(open('n').read()))\n"
    script = [write("count.py", count), do("run", path="count.py"), do("run", path="count.py"), DONE]
    episode = await harness.run(TASK, Script(script))
    assert said(episode)[1:] == ["1", "2"]
    branch = await harness.branch(episode, 2, TASK, Script(script), state=journal.state_at(episode.id, 2), name="again")
    journal.close()
    assert said(branch)[1:] == ["1", "2"]


async def test_an_injected_fault_damages_a_call_and_the_episode_goes_on():
    plan = FaultPlan(episodes=1.0, rate=1.0, kinds={"server_error": 1.0})
    episode = await play(TASK, do("list"), faults=plan)
    assert episode.turns[0].observations[0].fault == "server_error"


async def test_a_declined_task_is_no_success():
    plan = [do(tool, **arguments) for tool, arguments in TASK.setup["plan"]]
    declined = dataclasses.replace(DONE, answer="Cannot answer: too hard")
    harness = Harness(Code, budget=Budget())
    episode = await harness.run(TASK, Script([*plan, declined]))
    assert episode.verdict.reasons == ("declined",)


@pytest.mark.parametrize("family", ["repair", "data", "program"])
def test_doctor_finds_nothing_wrong(family):
    tasks = generate("eval", 1, 4, ("zh",), (family,))
    exam = WorldExam(lambda journal: Harness(Code, journal=journal), Code().solution, tasks)
    checks = (
        exam.gold_passes, exam.silence_fails, exam.chance_fails, exam.shortcut_fails, exam.repeats_agree,
        exam.order_does_not_matter, exam.forgery_fails,
    )  # fmt: skip
    assert [(check.__name__, found) for check in checks if (found := check()).state != "ok"] == []


def test_unknown_templates_and_languages_are_refused():
    with pytest.raises(InputError, match="code template 'program_top': allowed for 'train' are repair, data, program"):
        generate("train", 1, 1, ("en",), ("program_top",))
    with pytest.raises(InputError, match="allowed are en, zh"):
        generate("train", 1, 1, ("fr",))
    with pytest.raises(InputError, match="allowed are 'train' and 'eval'"):
        generate("test", 1, 1)
    assert set(TEMPLATES) >= {"repair_one", "data_mean", "program_top"}
