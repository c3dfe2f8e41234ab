"""Numeric kernels that stand alone: linear in edges, no n x n."""
