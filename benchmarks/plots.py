"""Plots of what was measured, as SVG files that any browser shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path("build")
_COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#475569")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 760, 360, 70, 46, 46
_BAR, _LABEL = 30, 250


@dataclass(frozen=True)
class Axes:
    """What a plot's axes mean."""

    across: str
    up: str
    logarithmic: bool = False
    """Both of them."""


def bars(name: str, title: str, unit: str, values: Mapping[str, float]) -> Path:
    """One bar a value. Returns where the plot was written."""
    height = _TOP + _BAR * len(values) + 20
    longest = max(values.values(), default=0.0) or 1.0
    parts = []
    for number, (label, value) in enumerate(values.items()):
        top, width = _TOP + number * _BAR, (_WIDTH - _LABEL - 110) * value / longest
        parts += [
            _text(_LABEL - 8, top + 18, label, "end"),
            f'<rect x="{_LABEL}" y="{top + 4}" width="{width:.1f}" height="{_BAR - 10}" fill="{_COLOURS[0]}"/>',
            _text(_LABEL + width + 6, top + 18, f"{value:.3g} {unit}", "start"),
        ]
    return _write(name, title, height, parts)


def lines(name: str, title: str, axes: Axes, series: Mapping[str, Sequence[tuple[float, float]]]) -> Path:
    """One line a series. Returns where the plot was written."""
    points = [point for each in series.values() for point in each]
    across, up = (_Scale([point[axis] for point in points], axes.logarithmic) for axis in (0, 1))
    parts = [*_ticks(across, up), _text(_WIDTH / 2, _HEIGHT - 8, axes.across, "middle"), _text(8, 40, axes.up, "start")]
    for number, (label, found) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = " ".join(f"{_x(across, x):.1f},{_y(up, y):.1f}" for x, y in found)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts.append(_text(_WIDTH - 14, _TOP + 12 + 16 * number, label, "end", colour))
    return _write(name, title, _HEIGHT, parts)


class _Scale:
    """Values as parts of a length: 0 for the least, 1 for the greatest."""

    def __init__(self, values: Sequence[float], logarithmic: bool) -> None:
        self._logarithmic = logarithmic
        self.low = min(values) if logarithmic else 0.0
        self.high = max(*values, self.low + 1e-9)

    def at(self, value: float) -> float:
        if self._logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        parts = [part / 4 for part in range(5)]
        if self._logarithmic:
            return [self.low * (self.high / self.low) ** part for part in parts]
        return [self.low + (self.high - self.low) * part for part in parts]


def _x(scale: _Scale, value: float) -> float:
    return _LEFT + scale.at(value) * (_WIDTH - _LEFT - 20)


def _y(scale: _Scale, value: float) -> float:
    return _HEIGHT - _BOTTOM - scale.at(value) * (_HEIGHT - _TOP - _BOTTOM)


def _ticks(across: _Scale, up: _Scale) -> list[str]:
    parts = []
    for value in across.ticks():
        parts.append(_text(_x(across, value), _HEIGHT - _BOTTOM + 16, f"{value:.3g}", "middle"))
    for value in up.ticks():
        height = _y(up, value)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{height:.1f}" y2="{height:.1f}" stroke="#e2e8f0"/>')
        parts.append(_text(_LEFT - 6, height + 4, f"{value:.3g}", "end"))
    return parts


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#0f172a") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _write(name: str, title: str, height: int, parts: Sequence[str]) -> Path:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif"'
    body = [f'{head} font-size="12">', f'<rect width="{_WIDTH}" height="{height}" fill="white"/>']
    heading = _text(12, 22, title, "start")
    path = FOLDER / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*body, heading, *parts, "</svg>", ""]), encoding="utf-8")
    return path
