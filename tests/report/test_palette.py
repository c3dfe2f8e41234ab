"""Colours and markers tell methods apart, also for readers who confuse colours."""

import itertools

import numpy as np
import pytest

from graphveil.methods.registry import BUILT_IN
from graphveil.report.palette import DARK_ROLES, HUES, INK, PAPER, STYLES, css, in_variables, style_of

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
SIGHT = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(color):
    values = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    scaled = XYZ @ np.clip(rgb, 0, 1) / (XYZ @ np.ones(3))
    root = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(one, other):
    light, dark = sorted((float(XYZ[1] @ linear(c)) for c in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_method_has_a_style_of_its_own():
    missing = sorted(name for name in BUILT_IN if name not in STYLES)
    assert not missing
    assert len({(style.hue, style.marker) for style in STYLES.values()}) == len(STYLES)


def test_a_method_of_somebody_else_keeps_its_style_and_takes_nobodys():
    assert style_of("mine") == style_of("mine")
    assert all(style_of(name) not in STYLES.values() for name in ("mine", "yours", "third", "fourth"))


@pytest.mark.parametrize("sight", sorted(SIGHT))
def test_hues_stay_apart_for_readers_who_confuse_red_and_green(sight):
    seen = {name: lab(np.array(SIGHT[sight]) @ linear(light)) for name, (light, *_) in HUES.items()}
    near = {(a, b): np.linalg.norm(seen[a] - seen[b]) for a, b in itertools.combinations(seen, 2)}
    assert min(near.values()) > 10, min(near, key=near.get)


def test_names_can_be_read_on_light_and_on_dark_paper():
    dark = DARK_ROLES[PAPER]
    for name, (light, on_dark, text) in HUES.items():
        assert contrast(text, PAPER) >= 4.5 and contrast(on_dark, dark) >= 4.5, name
        assert contrast(light, PAPER) >= 2.2, name
    assert all(contrast(color, DARK_ROLES[color]) > 1 for color in DARK_ROLES)


def test_a_picture_in_variables_follows_the_paper():
    assert in_variables(f"fill: {INK}; stroke: {HUES['blue'][0]}") == "fill: var(--ink); stroke: var(--blue)"
    assert f"--ink:{INK};" in css(False) and f"--ink:{DARK_ROLES[INK]};" in css(True)
    assert f"--blue:{HUES['blue'][1]};" in css(True)
