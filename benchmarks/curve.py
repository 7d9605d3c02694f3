"""Curves as a plain SVG file in build/: no library needed, and a browser shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP = 720, 360, 60, 40
COLOURS = ("#0b6e99", "#c4554d", "#448361", "#9065b0", "#cb912f")


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    values: Sequence[float]


def write_svg(name: str, title: str, places: Sequence[float], lines: Sequence[Line]) -> Path:
    """Each curve in parts of its own largest value, which stands beside its name."""
    path = Path("build", f"{name}.svg")
    path.parent.mkdir(exist_ok=True)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 320}" height="{HEIGHT + 2 * TOP}" '
        'font-family="sans-serif" font-size="13">',
        f'<text x="{LEFT}" y="24" font-size="16">{title}</text>',
        f'<path d="M{LEFT} {TOP}V{TOP + HEIGHT}H{LEFT + WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{LEFT}" y="{TOP + HEIGHT + 20}">0</text>',
        f'<text x="{LEFT + WIDTH - 40}" y="{TOP + HEIGHT + 20}">{places[-1]:,.0f}</text>',
    ]
    for number, line in enumerate(lines):
        colour, most = COLOURS[number % len(COLOURS)], max(line.values) or 1.0
        points = " ".join(
            f"{LEFT + WIDTH * place / places[-1]:.0f},{TOP + HEIGHT * (1 - value / most):.0f}"
            for place, value in zip(places, line.values, strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        label = f"{line.name} (most: {most:,.4g})"
        parts.append(f'<text x="{LEFT + WIDTH + 12}" y="{TOP + 20 * (number + 1)}" fill="{colour}">{label}</text>')
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")
    return path
