from quintain.worlds.web.world import Web

__all__ = ["Web"]
