"""Bounds and intervals that attacks and audits share."""
