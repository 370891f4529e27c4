from quintain.worlds.verifiers.world import Verifiers

__all__ = ["Verifiers"]
