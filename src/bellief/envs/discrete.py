"""Any Gymnasium environment whose observations and actions can be counted, seen as states 0..S-1 and actions 0..A-1."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from bellief.envs.base import Environment
from bellief.errors import UserError, require
from bellief.mdp.tabular_mdp import make_outcomes
from bellief.types import Spaces

# More states than this make a dense belief of more memory than machines have.
LARGEST_TABLE = 20_000


class Index:
    """A one-to-one map between the elements of a countable space and 0..size-1."""

    def __init__(self, size: int, encode: Callable[[Any], int], decode: Callable[[int], Any]):
        self.size, self.encode, self.decode = size, encode, decode

    @classmethod
    def of(cls, space: gymnasium.Space, subject: str) -> "Index":
        """The map for a space made of Discrete, MultiDiscrete, MultiBinary, Tuple and Dict parts."""
        if isinstance(space, spaces.Discrete):
            start = int(space.start)
            return cls(int(space.n), lambda element: int(element) - start, lambda index: index + start)
        if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
            shape = space.shape
            sizes = np.full(shape, 2) if isinstance(space, spaces.MultiBinary) else np.asarray(space.nvec)
            start_of = np.zeros(shape, int) if isinstance(space, spaces.MultiBinary) else np.asarray(space.start)
            flat = tuple(int(size) for size in sizes.ravel())
            return cls(
                math.prod(flat),
                lambda element: int(np.ravel_multi_index(tuple((np.asarray(element) - start_of).ravel()), flat)),
                lambda index: (np.array(np.unravel_index(index, flat)).reshape(shape) + start_of).astype(space.dtype),
            )
        if isinstance(space, spaces.Tuple | spaces.Dict):
            inner: Any = space.spaces
            names = list(inner) if isinstance(space, spaces.Dict) else list(range(len(inner)))
            return cls._of_parts(
                names, [cls.of(inner[name], subject) for name in names], isinstance(space, spaces.Dict)
            )
        raise UserError(
            f"{subject} are a {type(space).__name__} space, which cannot be counted; only Discrete, MultiDiscrete and "
            "MultiBinary spaces and Tuples and Dicts of them can."
        )

    @classmethod
    def _of_parts(cls, names: list, parts: list["Index"], named: bool) -> "Index":
        """The map for a Tuple or Dict: mixed-radix numbers, the first part the most significant."""
        radix = tuple(part.size for part in parts)

        def encode(element: Any) -> int:
            digits = [part.encode(element[name]) for part, name in zip(parts, names, strict=True)]
            return int(np.ravel_multi_index(digits, radix))

        def decode(index: int) -> Any:
            digits = np.unravel_index(index, radix)
            elements = [part.decode(int(digit)) for part, digit in zip(parts, digits, strict=True)]
            return dict(zip(names, elements, strict=True)) if named else tuple(elements)

        return cls(math.prod(radix), encode, decode)


class DiscretiseObservation(gymnasium.ObservationWrapper):
    """Cuts every dimension of a Box observation into equal bins, so that agents for discrete states can be used.

    Dimensions without finite bounds are cut between `low` and `high`; what lies outside falls in the outermost bins.
    A binned observation is in general not Markov, and a fine grid learns slowly: this is a way in, not a solution.

    >>> import gymnasium
    >>> from bellief.envs.discrete import DiscretiseObservation
    >>> cart = DiscretiseObservation(gymnasium.make("CartPole-v1"), bins=4)
    >>> cart.observation_space, len(cart.reset(seed=0)[0])
    (MultiDiscrete([4 4 4 4]), 4)
    >>> cart.close()
    """

    def __init__(self, env: gymnasium.Env, bins: int = 10, low: Any = -5.0, high: Any = 5.0):
        super().__init__(env)
        box = env.observation_space
        if not isinstance(box, spaces.Box):
            raise UserError(f"Only Box observations can be cut into bins, not {type(box).__name__}.")
        require(bins >= 2, f"bins must be at least 2, not {bins}.")
        # Some environments declare the largest float as a bound, which is no bound.
        bounded = (np.abs(box.low) < 1e6) & (np.abs(box.high) < 1e6)
        self.low = np.where(bounded, box.low, np.broadcast_to(low, box.shape)).ravel()
        self.high = np.where(bounded, box.high, np.broadcast_to(high, box.shape)).ravel()
        self.bins = bins
        self.observation_space = spaces.MultiDiscrete([bins] * self.low.size)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """The bin of each dimension."""
        share = (np.asarray(observation, dtype=np.float64).ravel() - self.low) / (self.high - self.low)
        # Clipped first: what is too large for an integer would wrap around to the other end.
        return np.clip(share * self.bins, 0, self.bins - 1).astype(int)


def make_gymnasium(name: str, bins: int | None = None, **parameters: Any) -> gymnasium.Env:
    """`gymnasium.make` with its many ways to fail turned into one sentence; `bins` cuts Box observations."""
    try:
        env = gymnasium.make(name, **parameters)
    except UserError:
        raise
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, LookupError, AssertionError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        # A failed look-up says no more than the key.
        detail = f"there is no {lines[0]}" if isinstance(error, KeyError) else lines[0].rstrip(".?")
        raise UserError(f"Gymnasium cannot make '{name}': {detail}.") from None
    return env if bins is None else DiscretiseObservation(env, bins)


def indices(env: gymnasium.Env, name: str) -> tuple[Index, Index]:
    """How the environment's observations and actions are counted."""
    if isinstance(env.observation_space, spaces.Box):
        raise UserError(
            f"The observations of {name} are a Box space, which cannot be counted; wrap the environment in "
            "bellief.envs.discrete.DiscretiseObservation (on the command line: --bins N)."
        )
    observation = Index.of(env.observation_space, f"The observations of {name}")
    action = Index.of(env.action_space, f"The actions of {name}")
    if observation.size > LARGEST_TABLE:
        raise UserError(
            f"{name} has {observation.size:,} different observations; tables hold at most {LARGEST_TABLE:,}."
        )
    return observation, action


def gymnasium_spaces(env: gymnasium.Env, name: str) -> Spaces:
    """What an agent may know of a real environment: its sizes. Whether episodes end and what they pay is unknown."""
    observation, action = indices(env, name)
    return Spaces(observation.size, action.size, terminates=True, reward_low=None, reward_high=None)


def read_table(name: str, **parameters: Any) -> Environment:
    """The exact model of a Gymnasium environment that offers its transition table (`P`), such as FrozenLake.

    The time limit that `gymnasium.make` puts around it is kept: an episode cut short by it is not an end of the MDP.

    >>> from bellief.envs.discrete import read_table
    >>> lake = read_table("FrozenLake-v1", is_slippery=False)
    >>> lake.states, lake.actions, lake.time_limit
    (16, 4, 100)
    """
    env = make_gymnasium(name, **parameters)
    table = getattr(env.unwrapped, "P", None)
    if not isinstance(table, dict):
        raise UserError(f"{name} offers no transition table; leave out 'table' to step the environment itself.")
    states, actions = len(table), len(table[0])
    width = max(len(table[state][action]) for state in range(states) for action in range(actions))
    probability, reward = np.zeros((states, actions, width)), np.zeros((states, actions, width))
    next_state, ended = np.zeros((states, actions, width), int), np.zeros((states, actions, width), bool)
    for state in range(states):
        for action in range(actions):
            for number, (chance, following, paid, terminated) in enumerate(table[state][action]):
                probability[state, action, number] = chance
                next_state[state, action, number] = following
                reward[state, action, number] = paid
                ended[state, action, number] = terminated
    start = np.asarray(getattr(env.unwrapped, "initial_state_distrib", np.eye(states)[0]), dtype=np.float64)
    limit = env.spec.max_episode_steps if env.spec is not None else None
    env.close()
    return Environment(
        name=name,
        outcomes=make_outcomes(probability, next_state, reward, start / start.sum(), ended),
        action_names=tuple(str(action) for action in range(actions)),
        parameters=dict(parameters),
        view=_PlainView(),
        time_limit=limit,
    )


class _PlainView:
    """States that have numbers only."""

    layout = None

    def describe(self, state: int) -> str:
        """Its number."""
        return f"state {state}"

    def render_text(self, state: int) -> str:
        """Its number."""
        return f"[{state}]"

    def render_image(self, state: int) -> None:
        """There is no picture."""
        return None
