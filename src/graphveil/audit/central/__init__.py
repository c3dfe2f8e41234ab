"""Audits of methods that trust a curator."""
