"""What a reader process takes from itself once the file is in its memory: time, memory, and every
way out. A parser that a file has taken over finds no network, no other file and no other process.

Linux only (setrlimit(2), seccomp(2)), and without privileges; elsewhere the limits must do.
"""

import ctypes
import errno
import math
import platform
import resource
import struct
import sys

from antiphon.documents.reader_config import Limits

# Numbers on x86-64 and on arm64, where -1 says that there is no such call.
# fmt: off
_FORBIDDEN = {
    "open": (2, -1), "creat": (85, -1), "openat": (257, 56), "openat2": (437, 437),
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "socketpair": (53, 199),
    "clone": (56, 220), "fork": (57, -1), "vfork": (58, -1), "clone3": (435, 435),
    "execve": (59, 221), "execveat": (322, 281), "io_uring_setup": (425, 425), "kill": (62, 129),
    "tkill": (200, 130), "tgkill": (234, 131), "ptrace": (101, 117), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "truncate": (76, 45), "rename": (82, -1),
    "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, -1), "mkdirat": (258, 34),
    "rmdir": (84, -1), "unlink": (87, -1), "unlinkat": (263, 35), "link": (86, -1),
    "linkat": (265, 37), "symlink": (88, -1), "symlinkat": (266, 36), "mknod": (133, -1),
    "mknodat": (259, 33), "chmod": (90, -1), "fchmodat": (268, 53), "chown": (92, -1),
    "lchown": (94, -1), "fchownat": (260, 54), "bpf": (321, 280), "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
}
# fmt: on
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Which of the numbers, and how seccomp calls the machine (`AUDIT_ARCH_…`)."""
_X32 = 0x40000000
"""On x86-64, numbers from here on are the same calls once more."""

_LOAD, _IS, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _MACHINE_AT = 0, 4
"""In `seccomp_data`."""
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000 | errno.EACCES

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER_MODE = 38, 22, 2


def limit(limits: Limits) -> None:
    """From now on the process ends when it takes more. It writes no file."""
    cpu_s = math.ceil(limits.cpu_s)
    # Beyond the first it is sent SIGXCPU, which tells the server what it died of.
    _set(resource.RLIMIT_CPU, cpu_s, cpu_s + 5)
    _set(resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes)
    _set(resource.RLIMIT_FSIZE, 0, 0)
    _set(resource.RLIMIT_CORE, 0, 0)


def confine() -> bool:
    """Forbid everything but computing and talking on what is open. False where that can't be
    done."""
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return False
    column, name = machine
    numbers = [pair[column] for pair in _FORBIDDEN.values() if pair[column] >= 0]
    program = _filter(numbers, name, has_x32=column == 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    instructions = ctypes.create_string_buffer(program)
    # `struct sock_fprog`: how many there are, and where.
    argument = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    return bool(libc.prctl(_PR_SET_SECCOMP, _FILTER_MODE, argument, 0, 0) == 0)


def _filter(numbers: list[int], machine: int, *, has_x32: bool) -> bytes:
    """The filter's instructions, each `struct sock_filter`: calls of these numbers fail."""
    tests = [(_IS, number) for number in numbers]
    if has_x32:
        tests.insert(0, (_AT_LEAST, _X32))
    instructions = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_IS, 0, len(tests) + 2, machine),  # another machine's calls: to the last line
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for at, (test, number) in enumerate(tests):
        instructions.append((test, len(tests) - at, 0, number))
    instructions += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _set(what: int, soft: int, hard: int) -> None:
    """A limit that is tighter already stays."""
    now = resource.getrlimit(what)[1]
    if now != resource.RLIM_INFINITY:
        soft, hard = min(soft, now), min(hard, now)
    try:
        resource.setrlimit(what, (soft, hard))
    except (OSError, ValueError):
        if sys.platform == "linux":
            raise
        # macOS doesn't bound an address space; what is left is the time.
