"""P(MDP | data): conjugate families, one a file, and the tabular belief that is composed of them."""
