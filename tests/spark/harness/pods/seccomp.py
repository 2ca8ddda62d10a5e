"""A seccomp filter like the one that containerd gives a container without capabilities.

On x86-64 it refuses every system call that containerd's default list does not allow. Where versions
of that list differ, the stricter one is taken, so what works here works under all of them. A call
that is newer than the list is not known (ENOSYS), as runc has it. clone3 is not known either,
because a filter cannot look at its flags: glibc then takes clone.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

# Not on the list, by number.
REFUSED = """
ptrace=101 syslog=103 uselib=134 ustat=136 sysfs=139 vhangup=153 pivot_root=155 _sysctl=156
adjtimex=159 chroot=161 acct=163 settimeofday=164 mount=165 umount2=166 swapon=167 swapoff=168
reboot=169 sethostname=170 setdomainname=171 iopl=172 ioperm=173 init_module=175
delete_module=176 quotactl=179 lookup_dcookie=212 clock_settime=227 mbind=237 set_mempolicy=238
get_mempolicy=239 kexec_load=246 add_key=248 request_key=249 keyctl=250 migrate_pages=256
unshare=272 move_pages=279 perf_event_open=298 fanotify_init=300 name_to_handle_at=303
open_by_handle_at=304 clock_adjtime=305 setns=308 process_vm_readv=310 process_vm_writev=311
kcmp=312 finit_module=313 kexec_file_load=320 bpf=321 userfaultfd=323 membarrier=324 preadv2=327
pwritev2=328 pkey_mprotect=329 pkey_alloc=330 pkey_free=331 rseq=334 pidfd_send_signal=424
io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429
fsopen=430 fsconfig=431 fsmount=432 fspick=433 pidfd_open=434 close_range=436 pidfd_getfd=438
process_madvise=440
"""
CLONE, PERSONALITY, CLONE3 = 56, 135, 435
# Later than faccessat2, the last call of the list.
FIRST_UNKNOWN = 441
# Of CLONE_NEW*: time, mount, cgroup, uts, ipc, user, pid and network namespaces.
NEW_NAMESPACES = 0x7E020080
PERSONALITIES = (0, 8, 0xFFFFFFFF)

AUDIT_ARCH_X86_64 = 0xC000003E
X32 = 0x40000000
NUMBER, ARCH, FIRST_ARGUMENT = 0, 4, 16
LOAD, EQUAL, AT_LEAST, BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
PR_SET_SECCOMP, FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38


def supported():
    return platform.machine() == "x86_64"


def step(code, value, yes=0, no=0):
    return struct.pack("HBBI", code, yes, no, value)


def answer(code):
    return step(RETURN, ERROR | code if code else ALLOW)


def program():
    """The filter, in the instructions of the kernel's classic BPF."""
    refuse, unknown, allow = answer(errno.EPERM), answer(errno.ENOSYS), answer(0)
    steps = [
        *(step(LOAD, ARCH), step(EQUAL, AUDIT_ARCH_X86_64, 1), refuse),
        *(step(LOAD, NUMBER), step(AT_LEAST, X32, 0, 1), unknown),
        *(step(EQUAL, CLONE3, 0, 1), unknown),
        *(step(AT_LEAST, FIRST_UNKNOWN, 0, 1), unknown),
    ]
    for call in REFUSED.split():
        steps += [step(EQUAL, int(call.partition("=")[2]), 0, 1), refuse]
    steps += [
        *(step(EQUAL, CLONE, 0, 4), step(LOAD, FIRST_ARGUMENT)),
        *(step(BITS, NEW_NAMESPACES, 0, 1), refuse, allow),
        step(EQUAL, PERSONALITY, 0, 2 + len(PERSONALITIES)),
        step(LOAD, FIRST_ARGUMENT),
        *(step(EQUAL, value, len(PERSONALITIES) - at) for at, value in enumerate(PERSONALITIES)),
        *(refuse, allow),
    ]
    return b"".join(steps)


def apply(libc):
    """From now on for this process and all that it starts. It may not gain privileges either."""
    bytes_ = program()
    buffer = ctypes.create_string_buffer(bytes_, len(bytes_))
    # struct sock_fprog
    wanted = struct.pack("HxxxxxxQ", len(bytes_) // 8, ctypes.addressof(buffer))
    held = ctypes.create_string_buffer(wanted, len(wanted))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    if libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(held), 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")
