from quintain.worlds.orders.requests import KINDS
from quintain.worlds.orders.tasks import TEMPLATES, generate
from quintain.worlds.orders.world import Orders

__all__ = ["KINDS", "TEMPLATES", "Orders", "generate"]
