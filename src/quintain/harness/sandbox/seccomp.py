"""The system-call filter of a sandboxed program, as classic BPF.

See Linux, `Documentation/userspace-api/seccomp_filter.rst`. A deny list: what reaches beyond the program's own
processes and scratch folder fails with EPERM. Calls newer than the table fail with ENOSYS, so that a new
kernel opens nothing.
"""

from __future__ import annotations

import struct
from typing import Final

_LOAD, _EQUAL, _GREATER, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data, little endian
_X32_BIT: Final = 0x40000000
_NAMESPACE_FLAGS: Final = 0x7E020000  # CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET
_NEWEST: Final = 462  # mseal, Linux 6.10; the numbers from 424 on are the same on every architecture

_AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE: Final = {"x86_64": 56, "aarch64": 220}
_CLONE3: Final = 435  # its flags lie in memory, out of the filter's reach; libc falls back to clone on ENOSYS

DENIED: Final[dict[str, tuple[int | None, int | None]]] = {
    # name: (x86_64, aarch64)
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # network; socketpair stays allowed, asyncio needs it
    "socket": (41, 198),
    # ways round the filter, and large kernel surfaces
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # memory that no limit counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # the machine
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
}

MACHINES: Final = tuple(_AUDIT)


def seccomp_filter(machine: str) -> bytes:
    """The filter as an array of `struct sock_filter`.

    Args:
        machine: as `os.uname().machine` spells it, one of `MACHINES`.

    Raises:
        KeyError: another machine.
    """
    column = MACHINES.index(machine) if machine in MACHINES else -1
    rules = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, _AUDIT[machine], yes=1),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NUMBER),
    ]
    rules += _fail_if(_AT_LEAST, _X32_BIT, _ENOSYS) + _fail_if(_GREATER, _NEWEST, _ENOSYS)
    rules += _fail_if(_EQUAL, _CLONE3, _ENOSYS)
    for numbers in DENIED.values():
        number = numbers[column]
        if number is not None:
            rules += _fail_if(_EQUAL, number, _EPERM)
    rules += [_op(_EQUAL, _CLONE[machine], no=3), _op(_LOAD, _FIRST_ARGUMENT)]
    rules += _fail_if(_ANY_BIT, _NAMESPACE_FLAGS, _EPERM)
    return b"".join([*rules, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are how many of the next ones a comparison jumps over."""
    return struct.pack("<HBBI", code, yes, no, value)


def _fail_if(comparison: int, value: int, errno: int) -> list[bytes]:
    return [_op(comparison, value, no=1), _op(_RETURN, _ERRNO | errno)]
