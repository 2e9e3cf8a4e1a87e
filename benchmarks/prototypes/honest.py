"""Posterior of a policy's value from a log: two-level Dirichlet rows with a departure tilt (NumPy prototype).

The model
---------
An outcome is (next state, terminated). Outcomes o of a pair (s, a) follow a row P(. | s, a):

    row(s, a)  ~ Dirichlet process, weight w, base  m_s(o) exp(x(s, a) * lambda . f(o)) / normaliser
    m_s        ~ Dirichlet process, weight v, base  g          (where the whole log goes)
    lambda     ~ N(0, tau^2 / average covariance of f)         (two numbers, shared by all pairs)
    x(s, a)    = policy(a | s) - behaviour(a | s)

f(o) = (r + discount V(o), 1 + discount L(o)) with V the values and L the remaining lengths of the mean model. Without
lambda a policy that was chosen for being better is shrunk towards the actions that it avoids. The log says by how much
its actions are better than others in the same states; lambda is that, with its uncertainty. For the behaviour policy
x = 0. Adding a constant to rewards leaves the span of f, hence the prior and posterior of the tilt, unchanged.

`prepare` is the part that knows no policy, `depart` fits lambda for one, `sample` draws MDPs and solves them.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse, special

ROW_WEIGHT, STATE_WEIGHT, LOG_WEIGHT = 1.0, 0.1, 1.0
TILT_SCALE = 1.0
ATOMS = 8
LOG_ATOMS = 3
PASSES = 2


class Tally(NamedTuple):
    """Counts of distinct (state, action, next state, terminated, reward) rows, and of first states."""

    states: int
    actions: int
    state: np.ndarray
    action: np.ndarray
    next_state: np.ndarray
    terminated: np.ndarray
    reward: np.ndarray
    times: np.ndarray
    starts: np.ndarray


class Rewards(NamedTuple):
    """Predictor of the mean reward of a cell, by stratum (0: goes on, 1: ends); see `fit_rewards`."""

    mean: np.ndarray
    chain: tuple
    tables: dict
    residuals: tuple
    noise: np.ndarray


class Model(NamedTuple):
    """What the log says, without a policy. Cells are seen (pair, outcome); places are seen (state, outcome)."""

    states: int
    actions: int
    outcomes: int
    cell_pair: np.ndarray
    cell_outcome: np.ndarray
    cell_count: np.ndarray
    cell_reward: np.ndarray
    cell_place: np.ndarray
    place_state: np.ndarray
    place_outcome: np.ndarray
    place_count: np.ndarray
    place_tables: np.ndarray
    first_place: np.ndarray
    pair_count: np.ndarray
    state_count: np.ndarray
    log_base: np.ndarray
    rewards: Rewards
    starts: np.ndarray
    row_weight: float
    state_weight: float


def prepare(tally: Tally, row_weight: float = ROW_WEIGHT, state_weight: float = STATE_WEIGHT) -> Model:
    """Fold a tally into cells and places, and fit the rewards."""
    states, actions = tally.states, tally.actions
    ends = np.unique(tally.next_state[tally.terminated])
    outcome = np.where(tally.terminated, states + np.searchsorted(ends, tally.next_state), tally.next_state)
    outcomes = states + len(ends)
    keys = (tally.state * actions + tally.action).astype(np.int64) * outcomes + outcome
    key, inverse = np.unique(keys, return_inverse=True)
    count = np.bincount(inverse, tally.times).astype(float)
    reward = np.bincount(inverse, tally.times * tally.reward) / count
    reward += np.bincount(inverse, tally.times * (tally.reward - reward[inverse])) / count
    squares = np.bincount(inverse, tally.times * (tally.reward - reward[inverse]) ** 2)
    pair, cell_outcome = np.divmod(key, outcomes)
    place, cell_place = np.unique((pair // actions) * outcomes + cell_outcome, return_inverse=True)
    place_state, place_outcome = np.divmod(place, outcomes)
    place_count = np.bincount(cell_place, count)
    state_count = np.bincount(place_state, place_count, states)
    pooled = np.bincount(cell_outcome, count, outcomes) + LOG_WEIGHT / outcomes
    log_base = pooled / pooled.sum()
    # Expected number of tables: how often a row's base, and not the row itself, was drawn from.
    base = (place_count + state_weight * log_base[place_outcome]) / (state_count[place_state] + state_weight)
    share = row_weight * base[cell_place]
    tables = np.bincount(cell_place, share * (special.digamma(share + count) - special.digamma(share)))
    return Model(
        states, actions, outcomes, pair, cell_outcome, count, reward, cell_place, place_state, place_outcome,
        place_count, tables, np.searchsorted(place_state, np.arange(states + 1)),
        np.bincount(pair, count, states * actions), state_count, log_base,
        fit_rewards(states, actions, outcomes, pair, cell_outcome, count, reward, squares), tally.starts,
        row_weight, state_weight,
    )  # fmt: skip


CHAINS = ((), ("outcome",), ("place", "outcome"), ("pair",), ("pair", "place", "outcome"))


def fit_rewards(states, actions, outcomes, pair, outcome, count, reward, squares) -> Rewards:
    """How the mean reward of an unseen cell is predicted: from its pair, place, outcome or none of them.

    Every candidate is a chain of predictors (the first that has a seen cell counts, the stratum's mean comes last); the
    one with the least leave-one-cell-out error wins. Its residuals are what an unseen cell may differ by, so that a log
    in which a stratum always pays the same predicts exactly that.
    """
    keys = {"outcome": outcome.astype(np.int64), "pair": pair.astype(np.int64)}
    keys["place"] = (pair // actions) * np.int64(outcomes) + outcome
    mean, chains, residuals, tables = np.zeros(2), [(), ()], [np.zeros(1), np.zeros(1)], {}
    for stratum in (0, 1):
        cells = np.flatnonzero((outcome >= states) == stratum)
        if len(cells) == 0:
            continue
        target = reward[cells]
        mean[stratum] = target[0] if np.ptp(target) == 0 else target.mean()
        if np.ptp(target) == 0:
            continue
        others = {}
        for name, key in keys.items():
            known, inverse = np.unique(key[cells], return_inverse=True)
            total, number = np.bincount(inverse, target), np.bincount(inverse)
            tables[stratum, name] = (known, total / number)
            others[name] = ((total[inverse] - target) / np.maximum(number[inverse] - 1, 1), number[inverse] > 1)
        best = np.inf
        for chain in CHAINS:
            predicted = (target.sum() - target) / max(len(target) - 1, 1)
            for name in chain[::-1]:
                predicted = np.where(others[name][1], others[name][0], predicted)
            error = np.mean((target - predicted) ** 2)
            if error < best * (1 - 1e-9):
                best, chains[stratum] = error, chain
                exact = error <= 1e-18 * np.mean(target**2)
                residuals[stratum] = np.zeros(1) if exact else target - predicted
    repeated = count >= 2
    noisy = repeated & (squares > 1e-20 * max(float((reward**2).max()), 1e-300))
    own = np.where(noisy, squares / np.maximum(count - 1, 1), 0.0)
    typical = own[noisy].mean() * noisy.sum() / repeated.sum() if noisy.any() else 0.0
    return Rewards(mean, tuple(chains), tables, tuple(residuals), np.where(repeated, own, typical))


def predict_rewards(model: Model, pair: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """Predicted mean rewards of cells, without their residuals."""
    shape = np.broadcast(pair, outcome).shape
    pair = np.broadcast_to(pair, shape).ravel().astype(np.int64)
    outcome = np.broadcast_to(outcome, shape).ravel().astype(np.int64)
    rewards = model.rewards
    stratum = (outcome >= model.states).astype(int)
    found = rewards.mean[stratum]
    for number in (0, 1):
        for name in rewards.chain[number][::-1]:
            chosen = np.flatnonzero(stratum == number)
            known, mean = rewards.tables[number, name]
            key = {"pair": pair, "outcome": outcome, "place": (pair // model.actions) * model.outcomes + outcome}[name]
            where = np.searchsorted(known, key[chosen]).clip(0, len(known) - 1)
            hit = known[where] == key[chosen]
            found[chosen[hit]] = mean[where[hit]]
    return found.reshape(shape)


class Spread(NamedTuple):
    """Some pairs times all places of their states, flattened, and one entry per pair for what the log's base adds."""

    pair: np.ndarray
    owner: np.ndarray
    place: np.ndarray
    count: np.ndarray
    reward: np.ndarray
    rest: np.ndarray
    rest_reward: np.ndarray


def spread(model: Model, pairs: np.ndarray, leave_out: bool) -> Spread:
    """Base weights (not normalised) of pairs; with `leave_out` what the pair itself was seen to do is taken out."""
    state = pairs // model.actions
    number = np.diff(model.first_place)[state]
    owner = np.repeat(np.arange(len(pairs)), number)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number) + model.first_place[state][owner]
    outcome = model.place_outcome[place]
    count = model.place_count[place] + model.state_weight * model.log_base[outcome]
    reward = predict_rewards(model, pairs[owner], outcome)
    key = model.cell_pair * model.outcomes + model.cell_outcome
    mine = pairs[owner] * model.outcomes + outcome
    where = np.searchsorted(key, mine).clip(0, len(key) - 1)
    hit = key[where] == mine
    reward[hit] = model.cell_reward[where[hit]]
    if leave_out:
        count = count - np.where(hit, model.cell_count[where], 0)
    covered = np.bincount(owner, model.log_base[outcome], len(pairs))
    rest_reward = log_reward(model, pairs)
    return Spread(pairs, owner, place, count, reward, model.state_weight * (1 - covered), rest_reward)


def log_reward(model: Model, pairs: np.ndarray) -> np.ndarray:
    """Mean reward of outcomes that pairs take from the log's base: by pair where rewards go with pairs."""
    every = np.arange(model.outcomes)
    by_outcome = model.log_base * predict_rewards(model, np.full(model.outcomes, -1), every)
    found = np.zeros(len(pairs))
    for stratum in (0, 1):
        inside = (every >= model.states) == stratum
        found += by_outcome[inside].sum()
        if "pair" in model.rewards.chain[stratum]:
            known, mean = model.rewards.tables[stratum, "pair"]
            where = np.searchsorted(known, pairs).clip(0, len(known) - 1)
            own = model.log_base[inside].sum() * mean[where] - by_outcome[inside].sum()
            found += np.where(known[where] == pairs, own, 0)
    return found


class Departure(NamedTuple):
    """A policy, its mean values, and the posterior of the tilt: location and a square root of the covariance."""

    policy: np.ndarray
    discount: float
    pairs: np.ndarray
    departs: np.ndarray
    values: np.ndarray
    lengths: np.ndarray
    inverse: np.ndarray
    tilt: np.ndarray
    tilt_root: np.ndarray
    centre: np.ndarray


def features(model: Model, base: Spread, values, lengths, discount) -> tuple[np.ndarray, np.ndarray]:
    """f of every entry of a spread, and of what the log's base adds to each pair."""
    following = np.append(values, 0), np.append(lengths, 0)
    step = np.minimum(np.arange(model.outcomes), model.states)
    outcome = model.place_outcome[base.place]
    mine = np.stack(
        [base.reward + discount * following[0][step][outcome], 1 + discount * following[1][step][outcome]], 1
    )
    log = [base.rest_reward + discount * model.log_base @ following[0][step],
           np.full(len(base.pair), 1 + discount * model.log_base @ following[1][step])]  # fmt: skip
    return mine, np.stack(log, 1)


def tilted(base: Spread, feature, rest_feature, strength: np.ndarray, tilt: np.ndarray):
    """Normalised weights of a tilted base: of every entry, of the rest, and the tilted mean of f by pair."""
    size = len(base.pair)
    total = np.bincount(base.owner, base.count, size) + base.rest
    plain = np.stack([np.bincount(base.owner, base.count * column, size) for column in feature.T], 1)
    centre = (plain + base.rest[:, None] * rest_feature) / total[:, None]
    exponent = strength[base.owner] * ((feature - centre[base.owner]) @ tilt)
    weight = base.count * np.exp(np.clip(exponent, -30, 30))
    # What only the log's base holds is not tilted: one rare outcome with a large reward would take the whole row.
    rest = base.rest
    total = np.maximum(np.bincount(base.owner, weight, size) + rest, 1e-300)
    weight, rest = weight / total[base.owner], rest / total
    mean = np.stack([np.bincount(base.owner, weight * column, size) for column in feature.T], 1)
    return weight, rest, mean + rest[:, None] * rest_feature, centre


def whitening(covariance: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Directions [2, k] of f with variance one and no correlation, lengths first.

    Values come second, less what lengths explain of them, so that a constant added to rewards changes no direction.
    """
    found = []
    if covariance[1, 1] > 1e-10 * largest[1]:
        found.append(np.array([0.0, 1.0]) / np.sqrt(covariance[1, 1]))
        slope = covariance[0, 1] / covariance[1, 1]
    else:
        slope = 0.0
    left = covariance[0, 0] - slope * covariance[0, 1]
    if left > 1e-8 * max(covariance[0, 0], 1e-2 * largest[0]):
        found.append(np.array([1.0, -slope]) / np.sqrt(left))
    return np.stack(found, 1) if found else np.zeros((2, 0))


def fit_tilt(model: Model, base: Spread, strength, relevance, values, lengths, discount):
    """Posterior of lambda by Newton's method, in the directions of f in which outcomes differ at all."""
    feature, rest_feature = features(model, base, values, lengths, discount)
    size, pairs = len(base.pair), base.pair
    count = model.pair_count[pairs]
    others = model.state_count[pairs // model.actions] - count
    step = np.append(values, 0), np.append(lengths, 0)
    to = np.where(model.cell_outcome < model.states, model.cell_outcome, model.states)
    seen = np.stack([model.cell_reward + discount * step[0][to], 1 + discount * step[1][to]], 1)
    every = model.states * model.actions
    observed = np.stack([np.bincount(model.cell_pair, model.cell_count * column, every) for column in seen.T], 1)
    observed = observed[pairs] / count[:, None]
    # A row varies around its base, and the base was itself estimated from few outcomes.
    effective = 1 / (1 / count + 1 / (model.row_weight + 1) + 1 / (others + model.state_weight))
    weight = effective * relevance * (others > 0)

    def covariance(entry, rest, mean):
        parts = np.empty((size, 2, 2))
        for one in range(2):
            for two in range(2):
                product = (feature[:, one] - mean[base.owner, one]) * (feature[:, two] - mean[base.owner, two])
                outside = (rest_feature[:, one] - mean[:, one]) * (rest_feature[:, two] - mean[:, two])
                parts[:, one, two] = np.bincount(base.owner, entry * product, size) + rest * outside
        return parts

    entry, rest, mean, _ = tilted(base, feature, rest_feature, strength, np.zeros(2))
    average = np.einsum("p,pij->ij", count, covariance(entry, rest, mean)) / count.sum()
    basis = whitening(average, (feature**2).max(0))
    if basis.shape[1] == 0:
        return np.zeros(2), np.zeros((2, 0))
    point = np.zeros(basis.shape[1])
    for _ in range(12):
        entry, rest, mean, _ = tilted(base, feature, rest_feature, strength, basis @ point)
        parts = covariance(entry, rest, mean)
        score = basis.T @ ((weight * strength) @ (observed - mean)) - point / TILT_SCALE**2
        precision = basis.T @ np.einsum("p,pij->ij", weight * strength**2, parts) @ basis
        change = np.linalg.solve(precision + np.eye(len(point)) / TILT_SCALE**2, score)
        change *= min(1, 2 / max(np.abs(change).max(), 1e-300))
        point = point + change
        if np.abs(change).max() < 1e-4:
            break
    bread = np.linalg.inv(precision + np.eye(len(point)) / TILT_SCALE**2)
    meat = np.einsum("p,pij->ij", weight * relevance * strength**2, parts)
    spread_ = bread @ (basis.T @ meat @ basis + np.eye(len(point)) / TILT_SCALE**2) @ bread
    return basis @ point, basis @ np.linalg.cholesky(spread_ + 1e-12 * np.eye(len(point)))


def mean_chain(model: Model, base: Spread, strength, tilt, policy, discount, values, lengths):
    """Transition matrix and rewards of the policy under posterior mean rows with the tilted base."""
    states = model.states
    feature, rest_feature = features(model, base, values, lengths, discount)
    entry, rest, _, centre = tilted(base, feature, rest_feature, strength, tilt)
    chance, count = policy.ravel(), model.pair_count
    per_visit = chance / (count + model.row_weight)
    cell = per_visit[model.cell_pair] * model.cell_count
    matrix, state = np.zeros((states, model.outcomes)), model.cell_pair // model.actions
    np.add.at(matrix, (state, model.cell_outcome), cell)
    reward = np.bincount(state, cell * model.cell_reward, states)
    unseen = model.row_weight * per_visit[base.pair]
    owner_state = base.pair // model.actions
    np.add.at(matrix, (owner_state[base.owner], model.place_outcome[base.place]), unseen[base.owner] * entry)
    matrix += np.bincount(owner_state, unseen * rest, states)[:, None] * model.log_base
    reward += np.bincount(owner_state[base.owner], unseen[base.owner] * entry * base.reward, states)
    reward += np.bincount(owner_state, unseen * rest * base.rest_reward, states)
    return matrix[:, :states], reward, centre


def depart(
    model: Model, policy: np.ndarray, discount: float, tilting: bool = True, relevant: bool = False
) -> Departure:
    """Fit the tilt for a policy: mean values without it, the tilt, mean values with it, and so on."""
    states = model.states
    taken = np.flatnonzero(policy.ravel() > 0)
    visits = np.maximum(np.repeat(model.state_count, model.actions), 1e-300)
    departs = policy.ravel() - np.where(visits > 1e-200, model.pair_count / visits, 0)
    mine = spread(model, taken, leave_out=False)
    seen = np.flatnonzero((model.pair_count > 0) & (np.abs(departs) > 1e-12))
    others = spread(model, seen, leave_out=True)
    tilt, root = np.zeros(2), np.zeros((2, 0))
    values = lengths = np.zeros(states)
    start = model.starts / model.starts.sum()
    for number in range(PASSES + 1):
        chain, reward, centre = mean_chain(model, mine, departs[taken], tilt, policy, discount, values, lengths)
        inverse = np.linalg.inv(np.eye(states) - discount * chain)
        values, lengths = inverse @ reward, inverse.sum(1)
        if number == PASSES or not tilting or len(seen) == 0:
            break
        relevance = np.ones(len(seen))
        if relevant:
            ratio = (start @ inverse) / np.maximum(model.state_count, 1) * model.state_count.sum()
            ratio = ratio[seen // model.actions]
            relevance = np.minimum(ratio / max(np.average(ratio, weights=np.abs(departs[seen])), 1e-300), 4)
        tilt, root = fit_tilt(model, others, departs[seen], relevance, values, lengths, discount)
    return Departure(policy, discount, taken, departs[taken], values, lengths, inverse, tilt, root, centre)


class Draw(NamedTuple):
    """A sampled chain of the policy and its rewards."""

    chain: sparse.csr_matrix
    reward: np.ndarray
    start: np.ndarray


def sample_chain(rng: np.random.Generator, model: Model, plan: Departure, cells, main_pair, shift, kept=1.0) -> Draw:
    """One MDP, reduced to what the policy does in it; rows are multiplied by `kept` (0 leaves a pair out)."""
    states, pairs = model.states, plan.pairs
    state, rows = pairs // model.actions, len(pairs)
    weight = model.row_weight
    tilt = plan.tilt + plan.tilt_root @ rng.standard_normal(plan.tilt_root.shape[1])
    # Every state's base m_s: its places, and a few atoms of the log's base.
    extra = rng.choice(model.outcomes, size=states * LOG_ATOMS, p=model.log_base)
    outcome = np.concatenate([model.place_outcome, extra])
    owner = np.concatenate([model.place_state, np.repeat(np.arange(states), LOG_ATOMS)])
    mass = np.concatenate(
        [rng.gamma(model.place_tables), rng.gamma(model.state_weight / LOG_ATOMS, size=states * LOG_ATOMS)]
    )
    order = np.argsort(owner, kind="stable")
    outcome, owner, mass = outcome[order], owner[order], mass[order] + 1e-300
    values, lengths = np.append(plan.values, 0), np.append(plan.lengths, 0)

    def exponent(reward, to):
        step = np.minimum(to, states)
        return tilt[0] * (reward + plan.discount * values[step]) + tilt[1] * (1 + plan.discount * lengths[step])

    if np.any(tilt):
        level = exponent(predict_rewards(model, main_pair[owner], outcome), outcome)
        middle = np.bincount(owner, mass * level, states) / np.bincount(owner, mass, states)
        local = order < len(model.place_outcome)
        mass = mass * np.exp(np.where(local, np.clip(shift[owner] * (level - middle[owner]), -30, 30), 0)) + 1e-300
    cumulative = np.cumsum(mass)
    high = cumulative[np.searchsorted(owner, np.arange(states), side="right") - 1]
    low = np.concatenate([[0], high[:-1]])
    place = low[state][:, None] + rng.random((rows, ATOMS)) * (high - low)[state][:, None]
    atom = outcome[np.searchsorted(cumulative, place).clip(0, len(cumulative) - 1)]
    reward = predict_rewards(model, pairs[:, None], atom)
    # With this shape ATOMS independent atoms have the variance of the whole process.
    shape = np.full((rows, ATOMS), weight / (1 - (weight + 1) / ATOMS) / ATOMS)
    if np.any(tilt):
        level = exponent(reward, atom)
        rest = (plan.departs - shift[state])[:, None] * (level - level.mean(1, keepdims=True))
        factor = np.exp(np.clip(rest, -5, 5))
        shape = shape * factor / factor.mean(1, keepdims=True)
    ended = atom >= states
    for stratum in (0, 1):
        if np.any(model.rewards.residuals[stratum]):
            reward = reward + np.where(ended == stratum, rng.choice(model.rewards.residuals[stratum], atom.shape), 0)
    unseen = rng.gamma(shape)
    unseen *= (rng.gamma(weight, size=rows) / np.maximum(unseen.sum(1), 1e-300))[:, None]
    cell, row = cells
    seen = rng.gamma(model.cell_count[cell])
    factor = plan.policy.ravel()[pairs] / np.maximum(np.bincount(row, seen, rows) + unseen.sum(1), 1e-300)
    factor = factor * kept
    seen, unseen = seen * factor[row], unseen * factor[:, None]
    noise = np.sqrt(model.rewards.noise[cell] / model.cell_count[cell]) * rng.standard_normal(len(cell))
    total = np.bincount(state[row], seen * (model.cell_reward[cell] + noise), states)
    total += np.bincount(state, (unseen * reward).sum(1), states)
    source = np.concatenate([state[row], np.repeat(state, ATOMS)])
    target = np.concatenate([model.cell_outcome[cell], atom.ravel()])
    mass = np.concatenate([seen, unseen.ravel()])
    goes_on = target < states
    chain = sparse.csr_matrix((mass[goes_on], (source[goes_on], target[goes_on])), shape=(states, states))
    start = model.starts / model.starts.sum()
    if model.starts.sum() > 1.5:
        start = rng.gamma(model.starts)
        start = start / start.sum()
    return Draw(chain, total, start)


def solve(draw: Draw, plan: Departure) -> np.ndarray:
    """Values and remaining lengths [S, 2] in a sampled chain; the mean model's inverse is the preconditioner."""
    target = np.stack([draw.reward, np.ones(len(draw.reward))], 1)
    found = np.stack([plan.values, plan.lengths], 1)
    for _ in range(60):
        residual = target - found + plan.discount * (draw.chain @ found)
        found = found + plan.inverse @ residual
        size = np.abs(residual).max(0)
        if np.all(size <= 1e-8 * (1e-300 + np.abs(found).max(0))):
            return found
        if not np.all(np.isfinite(size)):
            break
    return np.linalg.solve((1 + 1e-12) * np.eye(len(target)) - plan.discount * draw.chain.toarray(), target)


def arrange(model: Model, plan: Departure) -> tuple:
    """What every draw needs and none changes: seen cells of the policy's pairs, each state's main pair and tilt."""
    where = np.full(model.states * model.actions, -1)
    where[plan.pairs] = np.arange(len(plan.pairs))
    cell = np.flatnonzero(where[model.cell_pair] >= 0)
    main_pair = np.arange(model.states) * model.actions + plan.policy.argmax(1)
    chance = plan.policy.ravel()[plan.pairs]
    shift = np.bincount(plan.pairs // model.actions, chance * plan.departs, model.states)
    return (cell, where[model.cell_pair[cell]]), main_pair, shift


def sample(model: Model, plan: Departure, draws: int, seed) -> tuple[np.ndarray, np.ndarray]:
    """Start values and start lengths in `draws` sampled MDPs."""
    rng = np.random.default_rng(seed)
    arranged = arrange(model, plan)
    found = np.empty((draws, 2))
    for number in range(draws):
        draw = sample_chain(rng, model, plan, *arranged)
        found[number] = draw.start @ solve(draw, plan)
    return found[:, 0], found[:, 1]


def supported(model: Model, plan: Departure, least_visits: int) -> float:
    """Share of the policy's discounted time that it spends in pairs seen at least that often, in the mean model."""
    time = (model.starts / model.starts.sum()) @ plan.inverse
    chance = plan.policy.ravel()[plan.pairs]
    share = time[plan.pairs // model.actions] * chance
    return float(share[model.pair_count[plan.pairs] >= least_visits].sum() / share.sum())


def bounds(
    model: Model, plan: Departure, least_visits: int, low: float, high: float, draws: int, seed, level: float = 0.9
) -> tuple[float, float]:
    """Value if every pair seen fewer than `least_visits` times were worth `low` or `high` from then on.

    `low` and `high` are the least and largest possible returns. Rows of the other pairs are drawn, and the outer
    quantiles of both ends are the bounds: sampling error of what was seen often is part of them, the prior of what was
    not seen is not.
    """
    rng = np.random.default_rng(seed)
    arranged = arrange(model, plan)
    kept = (model.pair_count[plan.pairs] >= least_visits).astype(float)
    chance = plan.policy.ravel()[plan.pairs] * (1 - kept)
    absorbed = np.bincount(plan.pairs // model.actions, chance, model.states)
    found = np.empty((draws, 2))
    for number in range(draws):
        draw = sample_chain(rng, model, plan, *arranged, kept)
        system = np.eye(model.states) - plan.discount * draw.chain.toarray()
        right = draw.reward[:, None] + absorbed[:, None] * np.array([low, high])
        found[number] = draw.start @ np.linalg.solve(system, right)
    tail = (1 - level) / 2
    return float(np.quantile(found[:, 0], tail)), float(np.quantile(found[:, 1], 1 - tail))
