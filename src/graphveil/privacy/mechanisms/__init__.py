"""Mechanisms as inert descriptions: how much noise, on how many numbers, how often; what that costs, and how to check it."""

from graphveil.privacy.mechanisms.base import ADDED, Mechanism, NoisySums, mechanism_from_json, mechanism_to_json
from graphveil.privacy.mechanisms.choices import AskedFlips, EdgeFlips, GumbelTop, RandomizedResponse
from graphveil.privacy.mechanisms.numbers import DpGradient, Exact, Gaussian, Laplace

__all__ = [
    "ADDED",
    "AskedFlips",
    "DpGradient",
    "EdgeFlips",
    "Exact",
    "Gaussian",
    "GumbelTop",
    "Laplace",
    "Mechanism",
    "NoisySums",
    "RandomizedResponse",
    "mechanism_from_json",
    "mechanism_to_json",
]
