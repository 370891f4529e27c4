from quintain.worlds.bfcl.single import SingleTurn

__all__ = ["SingleTurn"]
