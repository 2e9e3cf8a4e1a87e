"""Known models: what an MDP is, how to step it, how to solve it. No beliefs, no agents."""
