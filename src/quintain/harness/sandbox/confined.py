"""The sandbox programs run in unless another is asked for by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quintain.harness.sandbox.mechanism import BY_NAME, SCRATCH, CannotConfine, Mechanism, find_mechanism
from quintain.harness.sandbox.program import MEBIBYTE
from quintain.harness.sandbox.session import Session, StartError
from quintain.harness.sandbox.warm import WarmSandbox
from quintain.interface.errors import InfraError

_REMEDIES = (
    # words of bubblewrap, what helps
    ("user namespace", "allow user namespaces (sysctl user.max_user_namespaces=15000)"),
    ("uid map", "allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0)"),
    (
        "loopback",
        "allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0), or in a container "
        "give it CAP_NET_ADMIN (docker: --cap-add NET_ADMIN)",
    ),
    ("proc", "give the surrounding container an unmasked /proc (docker: --security-opt systempaths=unconfined)"),
    (
        "namespace",
        "give the surrounding container CAP_SYS_ADMIN and CAP_NET_ADMIN "
        "(docker: --cap-add SYS_ADMIN --cap-add NET_ADMIN)",
    ),
)

_worked_before = False


class Bubblewrap(WarmSandbox):
    """Confines programs with bubblewrap; starts at the first call, or at `start`.

    Inside there is no network, no host file beyond the read-only system and interpreter, no environment
    and no other process; programs hold no privilege and pass a system-call filter. The interpreter is warm: each
    call runs in a fork of it. Calls share the scratch folder (`/scratch`, also home and /tmp) and nothing else.
    A cancelled call ends the sandbox.

    Args:
        scratch_bytes: size of the scratch folder, held in memory.
        imports: modules that the interpreter imports once, before the first call.
        hidden: modules of the standard library that programs must not find, such as those a task is made from. With
            them go all installed packages and other Pythons, which may hold copies.
        modules: sources of modules of the world's own, by name, which programs may import; they run once, after
            `imports` and with the sandbox's own rights, so no text of an agent belongs in them.
    """

    def __init__(
        self,
        *,
        scratch_bytes: int = 64 * MEBIBYTE,
        imports: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        modules: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._settings = {"scratch_bytes": scratch_bytes, "imports": imports, "modules": dict(modules or {})}
        self._hidden = hidden

    async def _begin(self) -> Session:
        return await _start(find_mechanism(self._hidden), self._settings)


async def _start(mechanism: Mechanism, own: Mapping[str, Any]) -> Session:
    global _worked_before
    settings = {
        **own,
        "confined": True,
        "namespaces": True,
        "path": mechanism.path,
        "scratch": SCRATCH,
        "seccomp": mechanism.seccomp.hex(),
        "uid": mechanism.uid,
        "switch_user": mechanism.switch_user,
        "count_processes": mechanism.count_processes,
        "own_processes": 0 if mechanism.switch_user else 2,
    }
    try:
        session = await Session.start(mechanism.command, {}, settings)
    except StartError as error:
        if _worked_before:
            raise InfraError(f"sandbox: did not start ({error}); it did before in this process") from None
        raise CannotConfine(_explain(str(error))) from None
    _worked_before = True
    return session


def _explain(words: str) -> str:
    remedy = next((help for sign, help in _REMEDIES if sign in words.lower()), "see docs/concepts/sandbox.md")
    return f"sandbox: this machine can't confine programs ({words or 'no reason given'}); {remedy}, {BY_NAME}"
