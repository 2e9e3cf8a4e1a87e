"""Environments of known dynamics: each is an exact table of outcomes that can be stepped, solved and drawn."""

from bellief.envs.base import Environment, make

__all__ = ["Environment", "make"]
