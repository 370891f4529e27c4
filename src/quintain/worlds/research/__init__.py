from quintain.worlds.research.world import Research

__all__ = ["Research"]
