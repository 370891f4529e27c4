from quintain.worlds.maths.tasks import generate
from quintain.worlds.maths.world import Maths

__all__ = ["Maths", "generate"]
