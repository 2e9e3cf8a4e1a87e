"""Inferential induction: from P(V_{i+1} | data) to P(V_i | data), and policy evaluation by it."""
