"""Audits of methods that trust nobody."""
