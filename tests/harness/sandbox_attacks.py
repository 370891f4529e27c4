"""Attempts to reach what is outside a sandbox, to exhaust the machine, to outlive a call, to see other processes."""

from __future__ import annotations

from harness.sandbox_attack import CPU, MIB, SHORT, Attack, aim, reads
from quintain.harness.sandbox import Limits

READING = [
    reads("a file of the host", "w['secret']", control=True),
    reads("a file of the host through the first process's root", "'/proc/1/root' + w['secret']"),
    reads("a file of the host through its own root", "'/proc/self/root/../..' + w['secret']", control=True),
    reads("a file of the host through its working folder", "'/proc/1/cwd' + w['secret']"),
    reads("the source of this test", "w['test']", control=True),
    reads("the users", "'/etc/passwd'", control=True),
    reads("the passwords", "'/etc/shadow'"),
    reads("another process's environment", "f\"/proc/{w['victim']}/environ\"", control=True),
    reads("the first process's environment", "'/proc/1/environ'"),
    reads("the first process's memory", "'/proc/1/mem'"),
    reads("the kernel's memory", "'/proc/kcore'"),
    reads("the kernel's messages", "'/proc/kmsg'"),
    reads("the machine's memory", "'/dev/mem'"),
    reads("a terminal", "'/dev/tty'"),
    reads("a kernel setting that root alone may read", "'/proc/sys/kernel/cad_pid'"),
    aim("list the home of root", "tried(lambda: os.listdir('/root'))"),
    aim("list the homes", "tried(lambda: os.listdir('/home'))", control=True),
    aim("list the kernel's objects", "tried(lambda: os.listdir('/sys'))", control=True),
    aim("list what a folder of the host holds", "tried(lambda: os.listdir(w['folder']))", control=True),
    aim("list the first process's files", "tried(lambda: os.listdir('/proc/1/fd'))"),
    aim("link a file of the host", "tried(lambda: os.link(w['secret'], 'mine'))"),
    aim("read through a link", "os.symlink(w['secret'], 'way')\ntried(lambda: open('way').read())", control=True),
    Attack(
        "find the host's environment",
        "print('none')\nif w['token'] in repr(os.environ): reached('environment')\n"
        "if w['token'] in repr(open('/proc/self/environ').read()): reached('environ')",
        says="none",
    ),
    Attack(
        "inherit an open file",
        "print('none')\nfor fd in range(3, 1024):\n"
        "  try: reached(os.readlink(f'/proc/self/fd/{fd}'))\n  except OSError: pass",
        says="none",
    ),
    aim("make a device of the first disk", "tried(lambda: os.mknod('disk', 0o60600, os.makedev(8, 0)))"),
    aim("open a file by handle", "call(w['calls']['open_by_handle_at'], -100, buffer, 0)"),
]

WRITING = [
    aim(f"write into {place}", f"tried(lambda: open('{place}/planted', 'w').write('x'))")
    for place in ("/", "/usr", "/usr/lib", "/etc", "/dev", "/var", "/proc", "/home", "/root", "/python", "/site")
] + [
    aim("write a file of the host", "tried(lambda: open(w['secret'], 'w').write('x'))"),
    aim(
        "write beside a file of the host", "tried(lambda: open(w['folder'] + '/planted', 'w').write('x'))", control=True
    ),
    aim("plant a module in the interpreter", "tried(lambda: open(os.path.dirname(os.__file__) + '/planted.py', 'w'))"),
    aim("change the interpreter", "tried(lambda: open(sys.executable, 'r+b'))"),
    aim("remove a program", "tried(lambda: os.remove('/bin/sleep'))"),
    aim("change rights of a program", "tried(lambda: os.chmod('/bin/sleep', 0o777))"),
    aim("set the kernel's core pattern", "tried(lambda: open('/proc/sys/kernel/core_pattern', 'w').write('|/x'))"),
    aim("press the system request key", "tried(lambda: open('/proc/sysrq-trigger', 'w').write('s'))"),
    aim("shield itself from the memory killer", "tried(lambda: open('/proc/self/oom_score_adj', 'w').write('-900'))"),
    aim("write the first process's memory", "tried(lambda: open('/proc/1/mem', 'r+b').write(b'x'))"),
    aim(
        "write to the first process's files",
        "[tried(lambda: open(f'/proc/1/fd/{n}', 'wb').write(b'x')) for n in range(9)]",
    ),
]

NETWORK = [
    aim(
        "connect by TCP to this machine",
        "tried(lambda: socket.create_connection(('127.0.0.1', w['tcp']), 1))",
        control=True,
    ),
    aim("connect by TCP over IPv6", "tried(lambda: socket.socket(socket.AF_INET6).connect(('::1', w['tcp'])))"),
    aim("connect by TCP to elsewhere", "tried(lambda: socket.create_connection(('192.0.2.1', 80), 1))"),
    aim("send by UDP", "tried(lambda: socket.socket(2, 2).sendto(b'x', ('127.0.0.1', w['udp'])))", control=True),
    aim("ask a name server", "tried(lambda: socket.socket(2, 2).sendto(b'x', ('127.0.0.53', 53)))"),
    aim("look a name up", "tried(lambda: socket.getaddrinfo('localhost.example', 80))"),
    aim(
        "connect to an abstract socket",
        "tried(lambda: socket.socket(socket.AF_UNIX).connect('\\0' + w['abstract']))",
        control=True,
    ),
    aim(
        "connect to a socket in a folder",
        "tried(lambda: socket.socket(socket.AF_UNIX).connect(w['socket']))",
        control=True,
    ),
    aim("listen", "tried(lambda: socket.create_server(('0.0.0.0', 0)))", control=True),
    aim("send raw packets", "tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))"),
    aim("send an echo request", "tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))"),
    aim("configure the network", "tried(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))"),
    aim("reach the hypervisor", "tried(lambda: socket.socket(40, socket.SOCK_STREAM))"),
    aim("encrypt in the kernel", "tried(lambda: socket.socket(38, socket.SOCK_SEQPACKET))"),
    aim("open a socket by io_uring", "call(w['calls']['io_uring_setup'], 8, buffer)"),
    Attack(
        "connect from a shell",
        "done = subprocess.run(['bash', '-c', f\"echo x > /dev/tcp/127.0.0.1/{w['tcp']} && echo REACHED\"],"
        " text=True, capture_output=True)\nprint('bash', done.stdout, done.stderr)",
        says="bash",
        control=True,
    ),
]

FORK = "while True:\n  try: os.fork()\n  except OSError: pass"
EXHAUSTING = [
    Attack("a fork bomb", FORK, ("timeout", "processes"), SHORT),
    Attack(
        "a fork bomb that leaves its session",
        "if os.fork() == 0: os.setsid()\n" + FORK,
        ("timeout", "processes"),
        SHORT,
    ),
    Attack(
        "threads without end",
        "while True:\n  try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "  except RuntimeError: pass",
        ("timeout", "processes", "memory"),
        SHORT,
    ),
    Attack(
        "memory in large pieces", "x = []\nwhile True: x.append(bytearray(MIB))".replace("MIB", str(MIB)), ("memory",)
    ),
    Attack(
        "memory in small pieces",
        "x = []\nwhile True: x.append([x])",
        ("memory",),
        Limits(seconds=30, memory_bytes=24 * MIB),
    ),
    Attack(
        "memory of several processes",
        f"for _ in range(8):\n  if os.fork() == 0:\n    x = os.urandom(1) * {40 * MIB}\n    time.sleep(60)\n"
        "time.sleep(60)",
        ("memory",),
        Limits(seconds=20, memory_bytes=100 * MIB),
    ),
    Attack(
        "shared memory of no file",
        f"import mmap\nx = [mmap.mmap(-1, {16 * MIB}) for _ in range(64)]\nfor m in x: m.write(bytes({16 * MIB}))",
        ("memory", "exit"),
        says="Cannot allocate memory",
    ),
    Attack(
        "memory of a decompressed file",
        "import zlib\nd = zlib.compress(bytes(1 << 28), 1)\nx = zlib.decompress(d)",
        ("memory",),
    ),
    Attack("a number without end", "x = 9 ** (9 ** 9)", ("timeout", "memory"), SHORT),
    Attack(
        "recursion without end",
        "sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        ("exit", "signal", "memory", "timeout"),
        SHORT,
    ),
    aim("memory in a file of no folder", "call(w['calls']['memfd_create'], b'x', 0)", control=True),
    aim("memory of System V", "call(w['calls']['shmget'], 0, 4096, 0o1600)"),
    aim("a queue of messages", "call(w['calls']['mq_open'], b'/x', 0o102, 0o600, None)"),
    aim("all of the disk", f"tried(lambda: [open(str(n), 'wb').write(bytes({2 * MIB})) for n in range(64)])"),
    aim(
        "all of the file table",
        "tried(lambda: [open(str(n), 'w').close() for n in range(10**6)])",
        limits=Limits(seconds=30),
    ),
    aim(
        "a file without end",
        f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\ntried(lambda: open('f', 'wb').write(bytes({5 * MIB})))",
    ),
    aim("a file of holes", "tried(lambda: os.truncate(os.open('f', 0o102), 1 << 40))"),
    aim("open files without end", "x = []\ntried(lambda: [x.append(os.open('/dev/null', 0)) for _ in range(10**6)])"),
    aim("pipes without end", "x = []\ntried(lambda: [x.append(os.pipe()) for _ in range(10**6)])"),
    Attack("folders without end", "while True:\n  os.mkdir('d'); os.chdir('d')", ("exit", "timeout"), SHORT),
    Attack("printing without end", "while True: print('x' * 999)", ("output",)),
    Attack("errors without end", "while True: sys.stderr.write('x' * 999)", ("output",)),
    Attack("a line without end", "while True: os.write(1, b'x' * 65536)", ("output",)),
    Attack(
        "printing from many processes",
        "[os.fork() for _ in range(3)]\nwhile True: os.write(1, b'x' * 999)",
        ("output",),
    ),
    Attack("the processor", "while True: pass", ("cpu",), CPU),
    Attack(
        "the processor, its signal ignored",
        "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        ("cpu",),
        CPU,
    ),
    Attack("sleep", "time.sleep(600)", ("timeout",), SHORT),
    Attack(
        "sleep, every signal ignored",
        "for n in set(signal.Signals) - {9, 19}: signal.signal(n, signal.SIG_IGN)\ntime.sleep(600)",
        ("timeout",),
        SHORT,
    ),
    Attack("a stop", "os.kill(os.getpid(), signal.SIGSTOP)", ("timeout",), SHORT),
    Attack("input never read, output never ended", "os.close(0)\ntime.sleep(600)", ("timeout",), SHORT),
]

OUTLIVING = [
    Attack("outlive by a child", "if os.fork() == 0: survive()\ntime.sleep(0.1)"),
    Attack(
        "outlive by a session of its own",
        "if os.fork() == 0:\n  os.setsid()\n  survive()\ntime.sleep(0.1)",
        control=True,
    ),
    Attack(
        "outlive by a double fork",
        "if os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  survive()\ntime.sleep(0.1)",
        control=True,
    ),
    Attack(
        "outlive with closed files and no parent's signal",
        "if os.fork() == 0:\n  os.setsid()\n  libc.prctl(1, 0)\n  os.closerange(0, 256)\n  survive()\ntime.sleep(0.1)",
        control=True,
    ),
    Attack(
        "outlive as its parent's subreaper",
        "libc.prctl(36, 1)\nif os.fork() == 0:\n  if os.fork() == 0: survive()\n  os._exit(0)\ntime.sleep(0.1)",
    ),
    Attack(
        "outlive by nohup", "subprocess.Popen(['nohup', 'setsid', 'sh', '-c', 'exec -a ' + w['mark'] + ' sleep 300'])"
    ),
    Attack(
        "outlive the time limit", "if os.fork() == 0:\n  os.setsid()\n  survive()\ntime.sleep(600)", ("timeout",), SHORT
    ),
]

KILL = """
for number in {}:
    try:
        os.kill(1, number)
    except PermissionError:
        pass
time.sleep(0.05)
print('still here')
"""
SEEING = [
    Attack(
        "see other processes",
        "print('own', [n for n in os.listdir('/proc') if n.isdigit()])\n"
        "if os.path.exists(f\"/proc/{w['victim']}/stat\"): reached('victim')",
        says="own ['1', '2']",
        control=True,
    ),
    aim("signal a process of the host", "tried(lambda: os.kill(w['victim'], 0))", control=True),
    aim("signal the keeper's parent", "tried(lambda: os.kill(w['victim'] - 1, 9))"),
    Attack("kill the first process", KILL.format("(9, 15)"), says="still here"),
    Attack("stop the first process", KILL.format("(19, 20)"), says="still here"),
    aim("kill everything", "tried(lambda: os.kill(-1, 9))"),
    aim("hold a process of the host", "tried(lambda: os.pidfd_open(w['victim']))", control=True),
    aim("trace the first process", "call(w['calls']['ptrace'], 16, 1, 0, 0)"),
    aim("read another process's memory", "call(w['calls']['process_vm_readv'], 1, buffer, 1, buffer, 1, 0)"),
    aim("write another process's memory", "call(w['calls']['process_vm_writev'], 1, buffer, 1, buffer, 1, 0)"),
    aim("take another process's file", "call(w['calls']['pidfd_getfd'], os.pidfd_open(1), 0, 0)"),
    aim("limit the first process", "import resource\ntried(lambda: resource.prlimit(1, resource.RLIMIT_CPU, (1, 1)))"),
    aim("slow the first process", "tried(lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))"),
    aim("bind the first process to a core", "tried(lambda: os.sched_setaffinity(1, {0}))"),
    aim("run in real time", "tried(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))"),
]

OUTWARD = READING + WRITING + NETWORK + EXHAUSTING + OUTLIVING + SEEING
