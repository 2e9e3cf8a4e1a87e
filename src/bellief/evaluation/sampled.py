"""Sampled MDPs of a log, and what policies are worth in them.

MDP number n of a seed is the same in every question about a log. MDPs are drawn again whenever they are needed, a
batch at a time, and only the rows that a question needs; only values and visits are ever held for all of them.

>>> import bellief
>>> from bellief.evaluation.problem import prepare
>>> from bellief.evaluation.sampled import SampledMDPs
>>> data = bellief.Transitions.from_arrays([0, 1] * 20, [0, 0] * 20, [2.0, 0.0] * 20, [1, 0] * 20)
>>> problem = prepare(data, discount=0.5)
>>> mdps = SampledMDPs(problem, seed=0, count=10)
>>> mdps.values(data.behaviour()[None]).shape  # draws, policies, states
(10, 1, 2)
"""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bellief.evaluation import chains, rewards, rows
from bellief.evaluation.blas import one_thread
from bellief.evaluation.problem import Part, Problem
from bellief.evaluation.question_checks import batch_draws
from bellief.processors import cores
from bellief.watch import shared_pause_point

# Random numbers that are drawn at a time: enough that threads seldom wait for one another (see `noise.BLOCK`), and no
# more than memory allows for several arrays of them.
SPAN_NUMBERS = 2_000_000

# Random numbers that are worth a second thread: starting it takes as long as drawing some ten thousand.
LEAST_SHARED = 50_000

# Entries of the tables of a batch.
BATCH_TABLE = 2_000_000


class Explored(NamedTuple):
    """One policy in `N` sampled MDPs: values, discounted visits of states, and values of all actions."""

    values: Float[np.ndarray, "N S"]
    visits: Float[np.ndarray, "N S"]
    action_values: Float[np.ndarray, "N S A"]


class Worlds(NamedTuple):
    """A batch of MDPs, or the needed rows of them.

    `paid` is the mean reward that the probabilities of each row let expect.
    """

    part: Part
    pattern: chains.Pattern
    drawn: rows.Drawn
    reward: Float[np.ndarray, "n R"]
    paid: Float[np.ndarray, "n R"]

    def chain(self, weight: Float[np.ndarray, "R"], states: int) -> chains.Batch:
        """The chains of a policy that takes each row with some probability in its state."""
        drawn, state = self.drawn, self.part.state
        inside = np.flatnonzero((drawn.atom_outcome < states) & (weight[drawn.atom_row] > 0))
        atom_row = drawn.atom_row[inside]
        return chains.Batch(
            self.pattern.cells(drawn.cell_share, weight),
            chains.Entries(
                drawn.atom_draw[inside],
                state[atom_row],
                drawn.atom_outcome[inside],
                drawn.atom_share[inside] * weight[atom_row],
            ),
            by_state(self.reward * weight, state, states),
        )

    def expected(self, values: Float[np.ndarray, "n S"]) -> Float[np.ndarray, "n R"]:
        """Expected value of the next state after every row; the end is worth zero."""
        held, drawn = self.part.held, self.drawn
        padded = np.pad(values, ((0, 0), (0, held.outcomes - values.shape[1])))
        found = rows.sums(drawn.cell_share * padded[:, held.outcome], held.first)
        atoms = drawn.atom_share * padded[drawn.atom_draw, drawn.atom_outcome]
        return found + drawn.atom_sums(atoms, len(held.row))


class SampledMDPs:
    """`count` MDPs from the posterior, from number `begin` of the seed's MDPs on."""

    def __init__(self, problem: Problem, seed: int, count: int, begin: int = 0):
        self.problem, self.seed, self.count, self.begin = problem, seed, count, begin
        self.states, self.actions = problem.log.states, problem.log.actions

    def values(self, policies: Float[np.ndarray, "P S A"], horizon: int | None = None) -> Float[np.ndarray, "N P S"]:
        """What each policy is worth in each MDP; rows that no policy uses are not drawn.

        `horizon` is that of the problem unless another one is given.
        """
        horizon = self.problem.horizon if horizon is None else horizon
        part = self.problem.part((policies > 0).any(0).ravel())
        weights = [policy.ravel()[part.held.row] for policy in policies]
        guides = [None if horizon is not None else self.guide(policy) for policy in policies]
        found = np.empty((self.count, len(policies), self.states))

        def fill(draws: slice, worlds: Worlds) -> None:
            for number, (weight, guide) in enumerate(zip(weights, guides, strict=True)):
                batch = worlds.chain(weight, self.states)
                found[draws, number] = self.chain_values(batch, horizon, guide)

        self.for_each(part, fill)
        return found

    def values_and_visits(
        self, policy: Float[np.ndarray, "S A"]
    ) -> tuple[Float[np.ndarray, "N S"], Float[np.ndarray, "N S"]]:
        """Values of one policy and discounted visits of states in each MDP; for an infinite horizon."""
        part = self.problem.part(policy.ravel() > 0)
        values, visits = np.empty((self.count, self.states)), np.empty((self.count, self.states))
        weight, guide, back = policy.ravel()[part.held.row], *self._guides(policy)

        def fill(draws: slice, worlds: Worlds) -> None:
            batch = worlds.chain(weight, self.states)
            values[draws] = self.chain_values(batch, None, guide)
            visits[draws] = chains.visits(batch, self.problem.discount, self.problem.start, back)

        self.for_each(part, fill)
        return values, visits

    def explore(self, policy: Float[np.ndarray, "S A"]) -> Explored:
        """Values, visits and action values of one policy; for an infinite horizon."""
        part = self.problem.part(np.ones(self.states * self.actions, bool))
        shapes = (self.states,), (self.states,), (self.states, self.actions)
        found = Explored(*(np.empty((self.count, *shape)) for shape in shapes))
        weight, discount, start = policy.ravel(), self.problem.discount, self.problem.start
        guide, back = self._guides(policy)

        def fill(draws: slice, worlds: Worlds) -> None:
            batch = worlds.chain(weight, self.states)
            found.values[draws] = values = self.chain_values(batch, None, guide)
            found.visits[draws] = chains.visits(batch, discount, start, back)
            action_values = worlds.reward + discount * worlds.expected(values)
            found.action_values[draws] = action_values.reshape(-1, self.states, self.actions)

        self.for_each(part, fill)
        return found

    def chain_values(
        self, batch: chains.Batch, horizon: int | None, guide: chains.Guide | None
    ) -> Float[np.ndarray, "n S"]:
        """Values of chains. Where episodes never end, what all rewards share is taken out and added again in closed
        form: a solution of rewards around 10^9 would round away how they differ.
        """
        problem = self.problem
        shared = problem.shared_reward
        if shared == 0.0:
            return chains.values(batch, problem.discount, horizon, guide)
        weights = (
            problem.discount ** np.arange(horizon) if horizon is not None else np.array(1 / (1 - problem.discount))
        )
        total = shared * float(weights.sum())
        guide = None if guide is None else guide._replace(solution=guide.solution - total)
        return total + chains.values(batch._replace(reward=batch.reward - shared), problem.discount, horizon, guide)

    def batches(self, used: np.ndarray) -> Iterator[tuple[slice, Worlds]]:
        """Batches of MDPs one after the other, with the rows that are used."""
        part = self.problem.part(used)
        pattern = self._pattern(part)
        for draws in self._slices(part):
            yield draws, self._draw(part, pattern, draws)

    def _pattern(self, part: Part) -> chains.Pattern:
        row = part.held.row_of_cell()
        return chains.Pattern.of(part.state[row], part.held.outcome, row, self.states)

    def _draw(self, part: Part, pattern: chains.Pattern, draws: slice) -> Worlds:
        index = np.arange(draws.start, draws.stop)
        spans = rows.spans(part.held, SPAN_NUMBERS // max(1, len(index)))
        pieces, drawn = [], []
        for span in spans:
            held, cells = rows.span(part.held, span)
            pieces.append(rows.sample(held, self.seed, index))
            belief = rewards.restrict(part.rewards, span, cells)
            drawn.append(rewards.sample(belief, held, pieces[-1], self.seed, index))
        reward, paid = (np.concatenate(parts, axis=1) for parts in zip(*drawn, strict=True))
        if self.problem.reward_range is not None:
            np.clip(reward, *self.problem.reward_range, out=reward)
        return Worlds(part, pattern, rows.joined(pieces, spans), reward, paid)

    def _slices(self, part: Part) -> list[slice]:
        """The draws in batches; how large they are changes no number."""
        size = batch_draws(part.numbers)
        if chains.is_dense(self.states):
            size = min(size, BATCH_TABLE // self.states**2)
        threads = cores() if self.count * part.numbers > LEAST_SHARED else 1
        size = max(1, min(size, -(-self.count // threads)))
        end = self.begin + self.count
        return [slice(first, min(first + size, end)) for first in range(self.begin, end, size)]

    def for_each(self, part: Part, fill: Callable[[slice, Worlds], None]) -> None:
        """Draw all batches and call `fill` with each, on as many threads as there are cores."""
        slices, pattern = self._slices(part), self._pattern(part)
        pause_point = shared_pause_point(len(slices))

        def one(draws: slice) -> None:
            pause_point()
            fill(draws, self._draw(part, pattern, draws))

        if len(slices) == 1 or cores() == 1:
            for draws in slices:
                one(draws)
            return
        # Small tables never wake BLAS's threads, and looking for them takes time.
        limited = contextlib.nullcontext() if chains.is_dense(self.states) else one_thread()
        with limited, ThreadPoolExecutor(cores()) as pool:
            for _ in pool.map(one, slices):
                pass

    def _guides(self, policy: Float[np.ndarray, "S A"]) -> tuple[chains.Guide | None, chains.Guide | None]:
        """Help for values, and for visits."""
        guide = self.guide(policy)
        if guide is None:
            return None, None
        problem = self.problem
        visits = problem.mean_mdp.visits(policy, problem.discount, problem.start, None)
        return guide, guide._replace(solution=visits)

    def guide(self, policy: Float[np.ndarray, "S A"], discount: float | None = None) -> chains.Guide | None:
        """What helps to solve the policy's chains, where help is needed."""
        if chains.is_dense(self.states):
            return None
        return self.problem.mean_mdp.guide(policy, self.problem.discount if discount is None else discount)


def by_state(values: Float[np.ndarray, "n R"], state: Int[np.ndarray, "R"], states: int) -> Float[np.ndarray, "n S"]:
    """Sums over the rows of each state; rows are sorted by state."""
    return rows.sums(values, np.searchsorted(state, np.arange(states + 1)))
