from quintain.worlds.code.tasks import FAMILIES, TEMPLATES, generate
from quintain.worlds.code.world import Code

__all__ = ["FAMILIES", "TEMPLATES", "Code", "generate"]
