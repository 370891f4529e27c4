"""The system-call filter, run by an interpreter of its own, for both machines."""

import struct

import pytest

from quintain.harness.sandbox.seccomp import DENIED, MACHINES, seccomp_filter

ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COMPARISONS = {
    0x15: lambda value, constant: value == constant,
    0x25: lambda value, constant: value > constant,
    0x35: lambda value, constant: value >= constant,
    0x45: lambda value, constant: bool(value & constant),
}


def answer(code: bytes, number: int, architecture: int, *arguments: int) -> int:
    """What the kernel would do, by the definition of classic BPF."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    instructions = list(struct.iter_unpack("<HBBI", code))
    value, at = 0, 0
    while True:
        operation, yes, no, constant = instructions[at]
        at += 1
        if operation == 0x06:
            return constant
        if operation == 0x20:
            value = struct.unpack_from("<I", data, constant)[0]
        else:
            at += yes if COMPARISONS[operation](value, constant) else no


@pytest.mark.parametrize("machine", MACHINES)
def test_exactly_the_table_is_denied(machine):
    code, column = seccomp_filter(machine), MACHINES.index(machine)
    denied = {numbers[column] for numbers in DENIED.values()} - {None}
    found = {number for number in range(463) if answer(code, number, ARCHITECTURE[machine]) == EPERM}
    assert found == denied
    assert {number for number in range(463) if answer(code, number, ARCHITECTURE[machine]) == ENOSYS} == {435}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("number", [463, 511, 512, 0x40000000, 0x40000000 + 59, 0xFFFFFFFF])
def test_calls_newer_than_the_table_do_not_exist(machine, number):
    assert answer(seccomp_filter(machine), number, ARCHITECTURE[machine]) == ENOSYS


@pytest.mark.parametrize(("machine", "clone"), [("x86_64", 56), ("aarch64", 220)])
def test_clone_makes_processes_and_threads_and_no_namespaces(machine, clone):
    code = seccomp_filter(machine)
    thread, process = 0x003D0F00, 0x01200011
    for flags in (thread, process):
        assert answer(code, clone, ARCHITECTURE[machine], flags) == ALLOW
    for bit in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(code, clone, ARCHITECTURE[machine], process | bit) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_kill(machine):
    for architecture in {0x40000003, *ARCHITECTURE.values()} - {ARCHITECTURE[machine]}:
        assert answer(seccomp_filter(machine), 1, architecture) == KILL
