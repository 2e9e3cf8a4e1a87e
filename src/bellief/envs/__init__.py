"""Environments of known dynamics: exact tables of outcomes, or pure functions where states are continuous."""

from bellief.envs.base import Environment, make, make_any

__all__ = ["Environment", "make", "make_any"]
