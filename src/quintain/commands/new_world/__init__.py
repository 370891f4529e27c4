from quintain.commands.new_world.new_world import new_world

__all__ = ["new_world"]
