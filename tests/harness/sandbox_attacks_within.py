"""Attempts to gain privileges, to forge a result, to spoil the next call of the same sandbox."""

from __future__ import annotations

import os

from harness.sandbox_attack import Attack, aim

PRIVILEGES = [
    aim("become root", "tried(lambda: os.setuid(0))"),
    aim("become root's group", "tried(lambda: os.setgid(0))"),
    aim("join groups", "tried(lambda: os.setgroups([0]))"),
    aim("take every user id", "tried(lambda: os.setresuid(0, 0, 0))"),
    aim(
        "take capabilities",
        "header = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
        "reached('caps') if libc.capset(header, b'\\xff' * 24) == 0 else refused(ctypes.get_errno())",
    ),
    aim(
        "take back new privileges", "reached('yes') if libc.prctl(38, 0, 0, 0, 0) == 0 else refused(ctypes.get_errno())"
    ),
    Attack(
        "run a set-user-id program",
        "import shutil\nfor name in ('su', 'mount', 'passwd', 'sudo', 'newgrp', 'chsh'):\n"
        "  path = shutil.which(name)\n  if path:\n"
        "    out = subprocess.run([path, '--help'], capture_output=True, stdin=-3, timeout=4)\n"
        "print('id', subprocess.run(['id', '-u'], capture_output=True, text=True).stdout.strip())\n"
        "if os.geteuid() == 0 or os.getuid() == 0: reached('root')",
        says="id ",
    ),
    aim(
        "make its own set-user-id program",
        "import shutil\nshutil.copy('/bin/sleep', 's')\nos.chmod('s', 0o4755)\ntried(lambda: os.chown('s', 0, 0))",
    ),
    aim("make a user namespace", "reached('ns') if libc.unshare(0x10000000) == 0 else refused(ctypes.get_errno())"),
    aim("clone into a user namespace", "call(w['clone'], 0x10000000 | 17, 0, 0, 0, 0)"),
    aim("clone by the newer call", "call(435, buffer, 88)"),
    aim(
        "enter a namespace",
        "reached('ns') if libc.setns(os.open('/proc/self/ns/mnt', 0), 0) == 0 else refused(ctypes.get_errno())",
    ),
    aim(
        "mount memory",
        "reached('m') if libc.mount(b'x', b'/scratch', b'tmpfs', 0, None) == 0 else refused(ctypes.get_errno())",
    ),
    aim(
        "make the system writable",
        "reached('m') if libc.mount(None, b'/usr', None, 32, None) == 0 else refused(ctypes.get_errno())",
    ),
    aim("unmount", "reached('u') if libc.umount2(b'/proc', 2) == 0 else refused(ctypes.get_errno())"),
    aim("mount by the newer calls", "call(w['calls']['fsopen'], b'tmpfs', 0)"),
    aim("change the root", "tried(lambda: os.chroot('/scratch'))"),
    aim("turn the root over", "call(w['calls']['pivot_root'], b'/scratch', b'/scratch')"),
    aim("read the keys", "call(w['calls']['keyctl'], 0, -3, 0)"),
    aim("add a key", "call(w['calls']['add_key'], b'user', b'x', b'y', 1, -3)"),
    aim("load a program into the kernel", "call(w['calls']['bpf'], 5, buffer, 64)"),
    aim("measure the machine", "call(w['calls']['perf_event_open'], buffer, 0, -1, -1, 0)"),
    aim("handle page faults", "call(w['calls']['userfaultfd'], 1)"),
    aim("watch all files", "call(w['calls']['fanotify_init'], 0, 0)"),
    aim("load a module", "call(w['calls']['init_module'], buffer, 0, b'')"),
    aim("load another kernel", "call(w['calls']['kexec_load'], 0, 0, 0, 0)"),
    aim("restart the machine", "call(w['calls']['reboot'], 0, 0, 0, 0)"),
    aim("set the clock", "tried(lambda: time.clock_settime(time.CLOCK_REALTIME, 0))"),
    aim("rename the machine", "tried(lambda: socket.sethostname('x'))"),
    aim("read the kernel's log", "call(w['calls']['syslog'], 3, buffer, 64)"),
    aim("swap", "call(w['calls']['swapon'], b'/scratch/f', 0)"),
    aim("change its personality", "call(w['calls']['personality'], 0x0040000)"),
    aim("replace the filter", "reached('f') if libc.prctl(22, 0, 0, 0, 0) == 0 else refused(ctypes.get_errno())"),
    Attack(
        "any system call of the filter's table",
        "bad = []\nfor name, number in w['calls'].items():\n"
        "  if libc.syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM: bad.append(name)\n"
        "print('refused all') if not bad else reached(bad)",
        says="refused all",
    ),
    Attack(
        "any system call newer than the table",
        "bad = []\nfor number in [*range(463, 600), 0x40000000, 0x40000001]:\n"
        "  if libc.syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.ENOSYS: bad.append(number)\n"
        "print('refused all') if not bad else reached(bad)",
        says="refused all",
    ),
]
if os.uname().machine == "x86_64":
    PRIVILEGES.append(
        Attack(
            "a system call of the 32-bit architecture",
            "import mmap\npage = mmap.mmap(-1, 4096, prot=7)\npage.write(bytes.fromhex('b814000000cd80c3'))\n"  # getpid
            "at = ctypes.addressof(ctypes.c_char.from_buffer(page))\nreached(ctypes.CFUNCTYPE(ctypes.c_int)(at)())",
            ("signal",),
        )
    )

FORGING = [
    Attack(
        "send a verdict on every file",
        "import struct\n"
        "text = json.dumps({'ended': 'exit', 'exit': 0, 'signal': 0, 'seconds': 0, 'stdout': 7}).encode()\n"
        "frame = struct.pack('!II', len(text), 7) + text + b'REACHED'\n"
        "for fd in [0, *range(3, 256)]:\n  try: os.write(fd, frame)\n  except OSError: pass\nos._exit(7)",
    ),
    Attack(
        "print a verdict",
        "print(json.dumps({'ended': 'exit', 'exit': 0, 'success': True}))\nsys.stdout.flush()\nos._exit(7)",
    ),
    Attack(
        "leave a verdict in a file",
        "for name in ('verdict.json', 'result.json', 'reward.txt'): open(name, 'w').write('{\"success\": true}')\n"
        "os._exit(7)",
    ),
    Attack(
        "say it ran out of memory",
        "import glob\nfor line in open('/proc/self/maps'):\n"
        "  if ' rw-s ' in line:\n    start = int(line.split('-')[0], 16)\n    ctypes.memset(start, 1, 1)\nos._exit(7)",
        ("exit", "memory"),  # about itself alone, and to no advantage: neither is a success
    ),
]

TAMPERING = [
    Attack("change the modules of the next call", "json.dumps = None\nsys.modules['os'] = None\nsys.path.clear()"),
    Attack("change the functions of the next call", "import builtins\nbuiltins.print = builtins.open = None"),
    Attack("close the files of the next call", "for fd in range(256):\n  try: os.close(fd)\n  except OSError: pass"),
    Attack(
        "plant modules for the next call",
        "names = ('json', 'os', 'site', 'sitecustomize', 'usercustomize', 'encodings', 'linecache', 'traceback')\n"
        "for name in names: open(f'{name}.py', 'w').write('raise SystemExit(9)')",
    ),
    Attack("take the scratch folder away", "os.chmod('/scratch', 0)"),
    Attack("make the scratch folder read-only", "os.chmod('/scratch', 0o555)"),
    Attack("move the scratch folder", "try: os.rename('/scratch', '/elsewhere')\nexcept OSError: pass"),
    Attack(
        "fill the scratch folder with names",
        "os.makedirs('a/b'); os.chmod('a', 0)\nos.mkfifo('p'); os.symlink('/', 'r')",
    ),
    Attack("lock the scratch folder", "import fcntl\nfcntl.flock(os.open('.', 0), fcntl.LOCK_EX)\nos._exit(0)"),
    Attack(
        "set limits for the next call",
        "import resource\nfor n in range(16):\n  try: resource.setrlimit(n, (0, 0))\n"
        "  except (OSError, ValueError): pass",
        ("exit", "signal", "memory"),
    ),
    Attack("set an alarm for the next call", "signal.signal(signal.SIGALRM, signal.SIG_IGN)\nsignal.alarm(1)"),
    Attack("set the mask and the folder of the next call", "os.umask(0o777)\nos.chdir('/')"),
    Attack("leave a stopped child", "if os.fork() == 0:\n  os.setsid()\n  os.kill(os.getpid(), 19)"),
]  # fmt: skip

INWARD = PRIVILEGES + FORGING + TAMPERING
