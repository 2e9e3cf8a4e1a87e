"""Backups of value samples under one policy in several MDPs, as one kernel on an NVIDIA GPU.

Elsewhere the rows of the chosen actions are gathered first and multiplied then, that is, written and read once more;
here they go straight into the matrix units.
"""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int

from bellief.mdp.tabular_mdp import TabularMDP

# States and next states that are worked on at once, and groups of 32 threads that do so.
ROWS, WIDTH, WARPS = 64, 64, 4
# Single precision from three products of shorter numbers.
TENSOR_CORES = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3


def backups(mdps: TabularMDP, actions: Int[Array, "S"], values: Float[Array, "K S"]) -> Float[Array, "J K S"]:
    """`bbi_paper.backups`."""
    return back_up(mdps.transition, mdps.reward, actions, mdps.discount.reshape(-1)[0] * values)


def back_up(
    transition: Float[Array, "J S A S"],
    reward: Float[Array, "J S A"],
    actions: Int[Array, "S"],
    values: Float[Array, "K S"],
    interpret: bool = False,
) -> Float[Array, "J K S"]:
    """r_j(s, a(s)) + sum_t P_j(t | s, a(s)) v_k(t) in single precision, put together from three shorter products."""
    mdps, states, choices, _ = transition.shape
    count = values.shape[0]
    precision = None if interpret else TENSOR_CORES
    return pallas.pallas_call(
        functools.partial(_kernel, choices, precision),
        grid=(mdps, pallas.cdiv(states, ROWS)),
        in_specs=[
            pallas.BlockSpec((1, states * choices, states), lambda mdp, _: (mdp, 0, 0)),
            pallas.BlockSpec((1, states * choices), lambda mdp, _: (mdp, 0)),
            pallas.BlockSpec((states,), lambda *_: (0,)),
            pallas.BlockSpec((count, states), lambda *_: (0, 0)),
        ],
        out_specs=pallas.BlockSpec((1, count, states), lambda mdp, _: (mdp, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((mdps, count, states), values.dtype),
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=2),
    )(transition.reshape(mdps, states * choices, states), reward.reshape(mdps, -1), actions, values)


def _kernel(choices: int, precision, transition, reward, actions, values, output):
    count, states = values.shape
    own = pallas.program_id(1) * ROWS + jnp.arange(ROWS)
    real = own < states
    row = own * choices + triton.load(actions.at[own], mask=real, other=0)
    sample = jnp.arange(max(16, pallas.next_power_of_2(count)))
    wanted = sample < count
    total, first = jnp.zeros((ROWS, sample.shape[0]), values.dtype), 0
    for width in _widths(states):
        after = first + jnp.arange(width)
        first, known = first + width, after < states
        rows = triton.load(transition.at[0, row[:, None], after[None]], mask=real[:, None] & known[None], other=0)
        later = triton.load(values.at[sample[None], after[:, None]], mask=known[:, None] & wanted[None], other=0)
        total = total + triton.dot(rows, later, precision=precision)
    total = total + triton.load(reward.at[0, row], mask=real, other=0)[:, None]
    triton.store(output.at[0, sample[:, None], own[None]], total.T, mask=wanted[:, None] & real[None])


def _widths(size: int) -> list[int]:
    """Powers of two that cover `size` with little left over."""
    found = []
    while size > 0:
        found.append(min(WIDTH, max(16, 1 << (size.bit_length() - 1))))
        size -= found[-1]
    return found
