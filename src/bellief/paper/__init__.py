"""The paper's experiments: every figure and table by its label, computed, drawn and judged.

An item is data (`items`): the sweeps and computations it stands on (`tasks`, `computations`), how it is drawn
(`figures`, `tables`) and what the paper says about it (`claims`). `run.run_paper` computes what is missing in a folder
and writes everything that can be made from it.
"""
