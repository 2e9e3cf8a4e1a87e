"""Representations of the value belief psi_i = P(V_i | data): fitted to weighted samples, sampled, summarised."""
