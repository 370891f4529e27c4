from quintain.worlds.reasoning_gym.world import ReasoningGym

__all__ = ["ReasoningGym"]
