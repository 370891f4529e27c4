from quintain.worlds.desk.atlas import EVAL_SHARE
from quintain.worlds.desk.tasks import generate
from quintain.worlds.desk.templates import TEMPLATES
from quintain.worlds.desk.world import Desk

__all__ = ["EVAL_SHARE", "TEMPLATES", "Desk", "generate"]
