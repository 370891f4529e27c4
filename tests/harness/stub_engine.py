#!/usr/bin/env python3
"""Stands in for a container engine where there is none: `run` notes its arguments and runs the command in bubblewrap.

It keeps the promises that `Container` builds on (a PID namespace, a scratch folder, the capabilities asked for) and
none of the others: no network namespace, no memory limit. What those options do is the real engine's business.
"""

import json
import os
import sys

from quintain.harness.sandbox import mechanism

arguments = sys.argv[1:]
with open(os.path.join(os.path.dirname(sys.argv[0]), "calls.jsonl"), "a") as file:
    file.write(json.dumps(arguments) + "\n")
if arguments[0] != "run":
    sys.exit(0)
if "missing" in arguments:
    sys.exit(
        "docker: Error response from daemon: No such image: missing\n\nRun 'docker run --help' for more information"
    )
binds, python, _ = mechanism._interpreter(packages=True)
capabilities = [f"CAP_{arguments[at + 1]}" for at, word in enumerate(arguments) if word == "--cap-add"]
command = [
    *(mechanism.find_bubblewrap(), "--unshare-pid", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL"),
    *(word for name in capabilities for word in ("--cap-add", name)),
    *mechanism._system(bare=False),
    *binds,
    *("--perms", "1777", "--tmpfs", mechanism.SCRATCH, "--remount-ro", "/"),
    *("--", python, *arguments[arguments.index("python3") + 1 :]),
]
os.execv(command[0], command)
