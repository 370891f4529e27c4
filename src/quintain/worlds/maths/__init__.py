from quintain.worlds.maths.tasks import generate
from quintain.worlds.maths.wordings import LANGUAGES
from quintain.worlds.maths.world import Maths

__all__ = ["LANGUAGES", "Maths", "generate"]
