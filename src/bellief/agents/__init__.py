"""Agents, one algorithm a file.

Every module exports `Config` (frozen, hashable), `State` and `Info` (NamedTuples) and five pure, unbatched functions:

- `init(key, config, spaces) -> State`
- `plan(key, config, spaces, state) -> (State, Info)`: the costly part, called on a schedule
- `act(key, config, state, observation) -> action`
- `update(config, state, transition) -> State`: learn from one step
- `policy(config, state) -> [S, A]`: action probabilities, for saving and for exact evaluation

Two more functions are optional: `plan_steps(steps)`, where an agent plans at other steps than the paper's, and
`informed(config, mdp)`, for an agent that knows the true model. An agent that never learns says `LEARNS = False`.
An agent whose `Config` has a field `schedule` may plan when something has happened: see `bellief.agents.agenda`.
"""
