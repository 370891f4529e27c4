from quintain.worlds.bfcl.multi import MultiTurn
from quintain.worlds.bfcl.single import SingleTurn

__all__ = ["MultiTurn", "SingleTurn"]
