from quintain.worlds.tables.world import TableWorld

__all__ = ["TableWorld"]
