from quintain.worlds.agentdojo.world import AgentDojo

__all__ = ["AgentDojo"]
